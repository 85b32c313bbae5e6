"""The part of a sub-topology that leads to an output: what the others do changes none of its rows, and need not be replayed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from rewindow.streams.nodes import Node, ProcessorNode
from rewindow.streams.processor import Processor
from rewindow.streams.record import Record
from rewindow.streams.topology import SubTopology


def leading_to(part: SubTopology, ends: Collection[str]) -> SubTopology:
    """Return a sub-topology with only the nodes that lead to these ones, and their stores.

    A node leads to another one above which it is, and to those that share a store with it, such as a table and its joins. All
    sources stay, because their records advance the time.
    """
    nodes: set[str] = {*ends, *(source.name for source in part.sources)}
    stores: set[str] = set()
    before = -1
    while before != len(nodes):
        before = len(nodes)
        for node in reversed(part.nodes):
            if node.name in nodes or not stores.isdisjoint(_stores_of(node)):
                nodes |= {node.name, *node.parents}
                stores |= {*_stores_of(node)}
    return replace(
        part,
        nodes=tuple(node for node in part.nodes if node.name in nodes),
        stores=tuple(store for store in part.stores if store.name in stores),
    )


def with_children(pruned: SubTopology, part: SubTopology) -> SubTopology:
    """Return what `leading_to` made of ``part`` with all children of its processors, which may be forwarded to by name.

    Those that lead nowhere take records and do nothing.
    """
    known = {node.name for node in pruned.nodes}
    nodes = [
        node if node.name in known else ProcessorNode(node.name, parents, _Ignores)
        for node in part.nodes
        if node.name in known or (parents := tuple(name for name in node.parents if name in known))
    ]
    return replace(pruned, nodes=tuple(nodes))


class _Ignores(Processor):
    """Takes records and does nothing."""

    def process(self, record: Record) -> None:
        """Ignore a record."""


def _stores_of(node: Node) -> tuple[str, ...]:
    return node.stores if isinstance(node, ProcessorNode) else ()
