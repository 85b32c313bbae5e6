"""Changes to the nodes and stores above a node that sends only final results, so that these are complete (D10, D11)."""

from __future__ import annotations

from dataclasses import replace

from rewindow.dsl.graph import Graph
from rewindow.dsl.operators.session_aggregate import SessionAggregate
from rewindow.dsl.operators.sliding_aggregate import SlidingAggregate
from rewindow.dsl.operators.window_aggregate import CogroupMerge, WindowAggregate
from rewindow.streams.nodes import ProcessorNode

_CLOCKED = (CogroupMerge, WindowAggregate, SlidingAggregate, SessionAggregate)


def keep_until_final(graph: Graph, node: str) -> None:
    """Extend the retention of all session and sliding window stores at and above a node, and share the clocks of cogroups.

    A record may extend a session that ended exactly gap + grace before the clock. With Kafka's default retention, the store
    has just expired this session, so the record begins a new session. Similarly, a new sliding window may need an older
    window that the store has just expired. If every update is sent, no record is lost downstream. A final result, however,
    would lack records. So these stores retain windows for one more millisecond.
    """
    for above in graph.topology.above(graph.topology.nodes[node]):
        supplier = above.supplier if isinstance(above, ProcessorNode) else None
        if isinstance(supplier, SessionAggregate | SlidingAggregate):
            keep_longer(graph, supplier.store)
        elif isinstance(supplier, CogroupMerge):
            # In Kafka, each input of a cogroup has its own clock. A record may be late only by another input's clock. Because
            # the common store has expired the record's window, the record would start the window again. Then a second final
            # result would be sent, which is made of a single record.
            _share_clock(graph, above.name)


def keep_longer(graph: Graph, store: str) -> None:
    """Extend a store's retention by one millisecond, unless it has been extended before."""
    if store not in graph.kept_longer:
        graph.kept_longer[store] = None
        builder = graph.topology.stores[store]
        graph.topology.stores[store] = replace(builder, retention_ms=builder.retention_ms + 1)


def _share_clock(graph: Graph, merge: str) -> None:
    """Let all inputs of a windowed cogroup use one clock: the clock of the node that merges their results."""
    nodes = graph.topology.nodes
    for name in (merge, *nodes[merge].parents):
        node = nodes[name]
        if isinstance(node, ProcessorNode) and isinstance(node.supplier, _CLOCKED):
            nodes[name] = replace(node, supplier=replace(node.supplier, clock=merge))
