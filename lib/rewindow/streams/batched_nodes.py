"""Which nodes get batches of several records, and why the others get batches of one.

A batch is processed before what it sends passes on, so nothing that happens in between may be seen by the processor: no
other node of its topic's records, no store that a node below it shares, no policy that handles records one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rewindow.errors import RewindowError
from rewindow.streams.batch_processor import BatchProcessor
from rewindow.streams.nodes import Node, ProcessorNode, SourceNode
from rewindow.streams.state.stores import KEY_VALUE
from rewindow.streams.topology import SubTopology

MANY = ""
"""The reason of a node that gets several records at once."""


def batch_limits(part: SubTopology, policies: Collection[str], *, keeps_dropped: bool) -> dict[str, str]:
    """Return for each `BatchProcessor` why it gets one record at a time, or `MANY`.

    ``policies`` names the nodes with an error policy, ``keeps_dropped``: whether dropped records are kept.
    """
    nodes = [node for node in part.nodes if isinstance(node, ProcessorNode) and makes_batches(node)]
    return {node.name: _reason(part, node, policies, keeps_dropped=keeps_dropped) for node in nodes}


def batched_sources(part: SubTopology, limits: Mapping[str, str]) -> dict[int, str]:
    """Return the sources whose records go in batches to a node, by rank, with that node."""
    readers = {source.name: _children(part, source.name) for source in part.sources}
    return {
        rank: readers[source.name][0].name
        for rank, source in enumerate(part.sources)
        if len(readers[source.name]) == 1 and not source.is_global and limits.get(readers[source.name][0].name) == MANY
    }


def makes_batches(node: ProcessorNode) -> bool:
    """Return whether a node's supplier makes a `BatchProcessor`."""
    if isinstance(node.supplier, type):
        return issubclass(node.supplier, BatchProcessor)
    try:
        made: object = node.supplier()
    except RewindowError:
        return False
    except Exception:  # noqa: BLE001 - user code; the task reports it when it makes its processors
        return False
    return isinstance(made, BatchProcessor)


def _reason(part: SubTopology, node: ProcessorNode, policies: Collection[str], *, keeps_dropped: bool) -> str:
    kinds = {store.name: store.kind for store in part.stores}
    sources = [one for one in part.sources if one.name in node.parents]
    below = _below(part, node)
    shared = [store for one in below if isinstance(one, ProcessorNode) for store in one.stores if store in node.stores]
    if node.name in policies:
        return "its error policy handles records one by one"
    if shared:
        return f"a node below it uses its store {shared[0]!r}"
    if keeps_dropped and any(kinds[store] != KEY_VALUE for store in node.stores):
        return "dropped records are kept, and each that its store drops is named"
    if not sources:
        return f"it gets its records from {', '.join(node.parents)} and not from a topic"
    if all(len(_children(part, source.name)) > 1 for source in sources):
        return f"other nodes read the topic {sources[0].topic!r} too"
    return MANY


def _children(part: SubTopology, name: str) -> list[Node]:
    return [node for node in part.nodes if name in node.parents]


def _below(part: SubTopology, node: Node) -> list[Node]:
    names, below = {node.name}, []
    for other in part.nodes:
        if not isinstance(other, SourceNode) and names.intersection(other.parents):
            names.add(other.name)
            below.append(other)
    return below
