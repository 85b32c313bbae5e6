"""Splits a topology at its repartitions into sub-topologies, which a run processes one after the other."""

from __future__ import annotations

from collections.abc import Collection

from rewindow.errors import TopologyError
from rewindow.streams.nodes import Node, ProcessorNode, SinkNode, SourceNode


def connected(nodes: Collection[Node]) -> list[list[Node]]:
    """Group the nodes that are connected by edges or stores, ordered by their first node."""
    group_of: dict[str, int] = {}

    def join(one: str, other: str) -> None:
        low, high = sorted((group_of[one], group_of[other]))
        for name, group in group_of.items():
            if group == high:
                group_of[name] = low

    users: dict[str, str] = {}
    for number, node in enumerate(nodes):
        group_of[node.name] = number
        for parent in node.parents:
            join(parent, node.name)
        for store in node.stores if isinstance(node, ProcessorNode) else ():
            join(users.setdefault(store, node.name), node.name)
    return [[node for node in nodes if group_of[node.name] == group] for group in dict.fromkeys(group_of.values())]


def in_run_order(parts: list[list[Node]]) -> list[list[Node]]:
    """Order the parts so that an internal topic is written before it is read. Raises `TopologyError` for a cycle."""
    ordered: list[list[Node]] = []
    waiting = parts
    while waiting:
        unwritten = {node.topic for part in waiting for node in part if isinstance(node, SinkNode) and node.is_internal}
        ready = [
            part for part in waiting if not any(getattr(n, "topic", None) in unwritten for n in _internal_sources(part))
        ]
        if not ready:
            names = ", ".join(sorted(unwritten))
            message = (
                f"the repartitions {names} form a cycle, but a run processes sub-topologies one after the other: send "
                "each stream that is joined below them through its own .repartition(name=...)"
            )
            raise TopologyError(message)
        ordered.append(ready[0])
        waiting = [part for part in waiting if part is not ready[0]]
    return ordered


def _internal_sources(part: list[Node]) -> list[SourceNode]:
    return [node for node in part if isinstance(node, SourceNode) and node.is_internal]


def check_written_once(parts: list[list[Node]]) -> None:
    """Raise `TopologyError` for a topic that two parts write."""
    writer: dict[str, int] = {}
    for index, part in enumerate(parts):
        for node in part:
            if isinstance(node, SinkNode) and not node.is_internal and writer.setdefault(node.topic, index) != index:
                message = (
                    f"topic {node.topic!r} is written by two sub-topologies, whose order would be arbitrary: "
                    "merge the streams before the sink, or write two topics"
                )
                raise TopologyError(message)
