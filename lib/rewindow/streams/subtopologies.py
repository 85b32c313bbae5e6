"""Splits a topology at its repartitions into sub-topologies, which a run processes one after the other.

The nodes of a global table, its internal source and the node that keeps its store, connect nothing: each sub-topology that
reads the store has them.
"""

from __future__ import annotations

from collections.abc import Collection

from rewindow.errors import TopologyError
from rewindow.streams.nodes import Node, ProcessorNode, SinkNode, SourceNode


def connected(nodes: Collection[Node]) -> list[list[Node]]:
    """Group the nodes that are connected by edges or stores, ordered by their first node."""
    tables = global_tables(nodes)
    shared = {name for names in tables.values() for name in names}
    groups = _connected([node for node in nodes if node.name not in shared], tables)
    read = [{store for node in group for store in _stores(node)} for group in groups]
    unread = [store for store in tables if not any(store in stores for stores in read)]
    found = []
    for group, stores in [*zip(groups, read, strict=True), *(([], {store}) for store in unread)]:
        names = {node.name for node in group}.union(*(tables[store] for store in tables if store in stores))
        found.append([node for node in nodes if node.name in names])
    return found


def global_tables(nodes: Collection[Node]) -> dict[str, tuple[str, ...]]:
    """Return the store of each global table with the names of its source and of the node that keeps it."""
    sources = {node.name for node in nodes if isinstance(node, SourceNode) and node.is_global}
    owners = [node for node in nodes if isinstance(node, ProcessorNode) and sources.intersection(node.parents)]
    return {store: (*node.parents, node.name) for node in owners for store in node.stores}


def check_global_tables(nodes: Collection[Node]) -> None:
    """Raise `TopologyError` for a node that could change a global table: its copies would differ between tasks."""
    tables = global_tables(nodes)
    for node in nodes:
        for store in _stores(node):
            if store in tables and node.name not in tables[store] and not _only_reads(node):
                message = (
                    f"node {node.name!r} uses the store {store!r} of a global table, which only joins with that table "
                    "read: give the node a store of its own"
                )
                raise TopologyError(message)


def _only_reads(node: Node) -> bool:
    return isinstance(node, ProcessorNode) and getattr(node.supplier, "only_reads", False) is True


def _stores(node: Node) -> tuple[str, ...]:
    return node.stores if isinstance(node, ProcessorNode) else ()


def _connected(nodes: Collection[Node], excluded: Collection[str]) -> list[list[Node]]:
    """Group nodes; the ``excluded`` stores do not connect them."""
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
        for store in (store for store in _stores(node) if store not in excluded):
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
