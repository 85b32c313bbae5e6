"""Longer retention for stores below which only final results are sent, so that these are complete (D10, D11)."""

from __future__ import annotations

from dataclasses import replace

from rewindow.dsl.graph import Graph
from rewindow.dsl.operators.session_aggregate import SessionAggregate
from rewindow.dsl.operators.sliding_aggregate import SlidingAggregate
from rewindow.streams.nodes import ProcessorNode, SinkNode, SourceNode


def keep_until_final(graph: Graph, node: str) -> None:
    """Extend the retention of all session and sliding window stores at and above a node by a millisecond.

    A record may extend a session that ended exactly gap + grace before the clock, but with Kafka's default retention
    the store has just expired that session, so a new one begins. The same holds for a sliding window that is derived
    from an older one. While every update is sent this goes unnoticed, but a final result would lack records.
    """
    for name in ancestors_of(graph, node):
        supplier = getattr(graph.topology.nodes[name], "supplier", None)
        if isinstance(supplier, SessionAggregate | SlidingAggregate):
            keep_longer(graph, supplier.store)


def keep_longer(graph: Graph, store: str) -> None:
    """Extend a store's retention by a millisecond, once."""
    if store not in graph.kept_longer:
        graph.kept_longer[store] = None
        builder = graph.topology.stores[store]
        graph.topology.stores[store] = replace(builder, retention_ms=builder.retention_ms + 1)


def ancestors_of(graph: Graph, node: str) -> list[str]:
    """Return a node and all nodes above it, including those above repartitions."""
    nodes = graph.topology.nodes
    found: list[str] = []
    waiting = [node]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.append(name)
        one = nodes[name]
        if isinstance(one, SourceNode) and one.is_internal:
            waiting += [
                other.name for other in nodes.values() if isinstance(other, SinkNode) and other.topic == one.topic
            ]
        elif isinstance(one, ProcessorNode | SinkNode):
            waiting += one.parents
    return found
