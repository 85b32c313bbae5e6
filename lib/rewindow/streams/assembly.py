"""The running graph of one epoch. Suppliers make its processors, and `assemble` connects them in the topology's order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rewindow.errors import ConfigError, RewindowError
from rewindow.streams.batch_processor import BatchContext, BatchProcessor, refuse_both_forms
from rewindow.streams.error_context import line_of
from rewindow.streams.error_policy import ErrorPolicy
from rewindow.streams.forwarding import Take, to_all
from rewindow.streams.nodes import ProcessorNode, SinkNode, SourceNode
from rewindow.streams.process_results import returns_nothing, with_checked_results
from rewindow.streams.processor import AdaptedProcessor, Processor, ProcessorContext
from rewindow.streams.sink import Sink
from rewindow.streams.state.stores import Store
from rewindow.streams.task_context import TaskContext
from rewindow.streams.topology import SubTopology


@dataclass(frozen=True, slots=True)
class Assembly:
    """The processors and contexts by node name, upstream first.

    ``entries`` has one function per source, which is called with a record.
    """

    processors: dict[str, Processor]
    contexts: dict[str, ProcessorContext]
    entries: list[Take]


def assemble(
    part: SubTopology,
    task_context: TaskContext,
    sinks: Mapping[str, Sink],
    policies: Mapping[str, ErrorPolicy],
) -> Assembly:
    """Make and connect a sub-topology's processors. Raises `ConfigError` (78) if a supplier fails."""
    processors = {node.name: _make(node) for node in part.nodes if isinstance(node, ProcessorNode)}
    contexts = {name: _context(processor, name, task_context) for name, processor in processors.items()}
    for name, processor in processors.items():
        if isinstance(processor, BatchProcessor) and isinstance(context := contexts[name], BatchContext):
            processor.context = context
    entries: dict[str, list[Take]] = {source.name: [] for source in part.sources}
    for node in part.nodes:
        if isinstance(node, SourceNode):
            continue
        take = _take(sinks[node.topic] if isinstance(node, SinkNode) else processors[node.name])
        if node.name in policies:
            take = policies[node.name].before(take)
        for parent in node.parents:
            if parent in entries:
                entries[parent].append(take)
            else:
                policy = policies.get(parent)
                contexts[parent].attach(node.name, policy.behind(take) if policy else take)
    _connect_columns(part, contexts, sinks, policies)
    return Assembly(processors, contexts, [to_all(entries[source.name]) for source in part.sources])


def _connect_columns(
    part: SubTopology,
    contexts: Mapping[str, ProcessorContext],
    sinks: Mapping[str, Sink],
    policies: Mapping[str, ErrorPolicy],
) -> None:
    """Connect a batch processor directly to its sink if the sink accepts columns and is the processor's only child."""
    for name, context in contexts.items():
        children = [node for node in part.nodes if name in node.parents]
        if isinstance(context, BatchContext) and name not in policies and len(children) == 1:
            (child,) = children
            if isinstance(child, SinkNode) and sinks[child.topic].takes_columns:
                context.sink = sinks[child.topic]


def connections(part: SubTopology, stores: Mapping[str, Store]) -> dict[str, tuple[Store, tuple[str, ...]]]:
    """Return each store and the names of the nodes that are connected to it, by the store's name."""
    users: dict[str, list[str]] = {name: [] for name in stores}
    for node in part.nodes:
        for store in node.stores if isinstance(node, ProcessorNode) else ():
            users[store].append(node.name)
    return {name: (store, tuple(users[name])) for name, store in stores.items()}


def check_suppliers(part: SubTopology) -> None:
    """Raise `ConfigError` (78) if a supplier returns the same processor twice, instead of a new one in every call."""
    made: list[Processor] = []
    for node in part.nodes:
        if isinstance(node, ProcessorNode):
            for _ in range(2):
                processor = _make(node)
                if any(processor is other for other in made):
                    raise ConfigError(
                        "supplier-result-reused",
                        "node {node!r}: its supplier returned the same processor twice, whose fields would outlive "
                        "the epoch: pass the class, or a function that makes a new one",
                        node=node.name,
                    )
                made.append(processor)
            refuse_both_forms(node.name, type(processor))


def _make(node: ProcessorNode) -> Processor:
    try:
        # User code may return any object.
        processor: object = node.supplier()
    except RewindowError:
        raise
    except Exception as error:
        raise ConfigError(
            "supplier-failed",
            "node {node!r}: its supplier failed, {error}: pass a class without arguments, or a function that makes a new one",
            node=node.name,
            error=f"{type(error).__name__}: {error}",
        ).at_line(line_of(error)) from error
    if not isinstance(processor, Processor):
        raise ConfigError(
            "supplier-result-not-processor",
            "node {node!r}: its supplier returned an instance of {type}: return a Processor",
            node=node.name,
            type=type(processor).__name__,
        )
    return processor


def _context(processor: Processor, name: str, task_context: TaskContext) -> ProcessorContext:
    return (processor.context_type if isinstance(processor, AdaptedProcessor) else ProcessorContext)(name, task_context)


def _take(target: Processor | Sink) -> Take:
    if isinstance(target, AdaptedProcessor):
        return target.take
    if isinstance(target, Sink) or returns_nothing(target.process):
        return target.process
    return with_checked_results(target.process)
