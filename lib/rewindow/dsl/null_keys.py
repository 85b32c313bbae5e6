"""Null keys above joins that send a record without a match: repartitions let them pass (KIP-962)."""

from __future__ import annotations

from dataclasses import replace

from rewindow.dsl.finals import ancestors_of
from rewindow.dsl.graph import Graph
from rewindow.dsl.operators.stateless import KeyedOnly
from rewindow.streams.nodes import ProcessorNode


def let_null_keys_pass(graph: Graph, join: str) -> None:
    """Stop dropping records with a null key at all repartitions above a left or outer join, which sends them."""
    nodes = graph.topology.nodes
    for name in ancestors_of(graph, join):
        node = nodes[name]
        if isinstance(node, ProcessorNode) and isinstance(node.supplier, KeyedOnly):
            nodes[name] = replace(node, supplier=replace(node.supplier, lets_pass=True))
