"""What must be kept a moment longer, so that a final result is complete when it leaves (D10, D11)."""

from __future__ import annotations

from dataclasses import replace

from rewindow.dsl.graph import Graph
from rewindow.dsl.operators.session_aggregate import SessionAggregate
from rewindow.dsl.operators.sliding_aggregate import SlidingAggregate
from rewindow.streams.nodes import ProcessorNode, SinkNode, SourceNode


def keep_until_final(graph: Graph, node: str) -> None:
    """Let the stores of all sessions and sliding windows at and above a node keep them for as long as they may change.

    A record takes sessions that end exactly gap and grace before the clock, and with the retention that Kafka gives by
    default its store has just forgotten them: the session begins anew. So does a sliding window that is made from an
    older one. Nothing below notices while every update is sent; but a final result would lack records.
    """
    for name in _ancestors(graph, node):
        supplier = getattr(graph.topology.nodes[name], "supplier", None)
        if isinstance(supplier, SessionAggregate | SlidingAggregate):
            keep_longer(graph, supplier.store)


def keep_longer(graph: Graph, store: str) -> None:
    """Let a store keep windows a millisecond longer, once."""
    if store not in graph.kept_longer:
        graph.kept_longer[store] = None
        builder = graph.topology.stores[store]
        graph.topology.stores[store] = replace(builder, retention_ms=builder.retention_ms + 1)


def _ancestors(graph: Graph, node: str) -> list[str]:
    """Return a node and all above it, across repartitions too."""
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
