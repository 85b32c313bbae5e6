"""Find outputs and stores whose keys or values have no declared type, and the call that should declare the type. Pure.

Such keys and values are columns of JSON text, in which a text is in quotation marks: `"ann"`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rewindow.control.plan.spec import OUTPUT, JobBinding
from rewindow.errors import HintMessage
from rewindow.streams.nodes import Node, ProcessorNode, SinkNode
from rewindow.streams.serde.types_to_columns import (
    ChangeType,
    EqualType,
    FieldType,
    OptionalType,
    SumType,
    WindowedType,
)
from rewindow.streams.state.stores import KEY_VALUE, SESSION, VERSIONED, WINDOW
from rewindow.streams.topology import Topology


def undeclared_types(topology: Topology, before: JobBinding | None = None) -> Iterator[HintMessage]:
    """Yield a hint for each call that should declare a type, with the outputs and stores that lack the type.

    Outputs and stores in ``before`` are left out, because an earlier run has already yielded their hints.
    """
    known = {*before.stores, *before.tables} if before is not None else set()
    calls: dict[tuple[str, str], dict[str, str]] = {}
    for node in topology.nodes.values():
        if isinstance(node, SinkNode) and not node.is_internal and f"{OUTPUT}{node.topic}" not in known:
            for part in _undeclared(node):
                call = _maker(topology, node, part) or ("to", f"node {node.name}")
                calls.setdefault(_line_of(topology, call), {})[f"the {part} of output {node.topic}"] = part
        for store in map(topology.stores.__getitem__, node.stores if isinstance(node, ProcessorNode) else ()):
            if store.name in known or store.kind not in {KEY_VALUE, WINDOW, SESSION, VERSIONED}:
                continue
            for part in _undeclared(store):
                is_own = isinstance(node, ProcessorNode) and node.typed_by.method in {"process", "process_values"}
                own = (f"{store.kind.replace('-', '_')}_store", f"store {store.name}") if is_own else None
                if made := own or _maker(topology, node, part):
                    calls.setdefault(_line_of(topology, made), {})[f"the {part} of store {store.name}"] = part
    for (verb, where), targets in calls.items():
        yield HintMessage(
            "type-undeclared",
            "Without a declared type, {targets} {are} JSON text, in which a text stands in quotes. Declare it as str, int or a "
            "NamedTuple: `{call}`{where}",
            targets=" and ".join([", ".join(list(targets)[:-1]), list(targets)[-1]] if len(targets) > 1 else targets),
            are="is" if len(targets) == 1 else "are",
            call=f"{verb}(..., {', '.join(f'{part}=TYPE' for part in sorted({*targets.values()}))})",
            where=f" ({where})" if where else "",
        )


def _line_of(topology: Topology, call: tuple[str, str]) -> tuple[str, str]:
    """Return a step's verb and line. Steps of the same call, such as a cogroup, have the same verb and line."""
    verb, step = call
    return verb, topology.lines.get(step, "")


def _undeclared(typed: Any) -> list[str]:
    return [part for part in ("key", "value") if _is_undeclared(getattr(typed, part))]


def _is_undeclared(declared: Any) -> bool:
    match declared:
        case WindowedType():
            return _is_undeclared(declared.key)
        case FieldType() | OptionalType() | SumType():
            return _is_undeclared(declared.row)
        case EqualType():
            return any(map(_is_undeclared, declared.types))
        case ChangeType():
            return _is_undeclared(declared.value)
    return declared is None or declared is Any


def _maker(topology: Topology, node: Node, part: str) -> tuple[str, str] | None:
    """Find the node that creates the keys or values (``part``) of a node.

    Return its method and its name in `Topology.lines`; None if the search reaches a merge.
    """
    for above in topology.above(node):
        if isinstance(above, ProcessorNode) and part in above.typed_by.parts:
            return above.typed_by.method, f"node {above.name}"
        if len(above.parents) > 1:
            return None
    return None
