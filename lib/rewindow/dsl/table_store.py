"""Tables that keep what they are sent in a store of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rewindow.core.stores import KEY_VALUE, VERSIONED, StoreBuilder
from rewindow.core.topology import SourceNode
from rewindow.dsl.graph import Graph
from rewindow.dsl.table import KTable
from rewindow.errors import TopologyError
from rewindow.operators.table_verbs import TableSource
from rewindow.operators.table_view import StoreView


def kept_table(
    graph: Graph, parent: str, key: Any, value: Any, store: str | StoreBuilder, *, name: str | None = None
) -> KTable:
    """Keep the records of a node as a table. ``store``: a name, or a `versioned_store`.

    Raises `TopologyError` for a store of another kind.
    """
    builder = StoreBuilder(store, KEY_VALUE, key, value, is_stamped=True) if isinstance(store, str) else store
    is_versioned = builder.kind == VERSIONED
    if not is_versioned and not isinstance(store, str):
        message = (
            f"a table cannot be kept in {builder.name!r}: give store= a name, or versioned_store(name, history=...)"
        )
        raise TopologyError(message)
    if is_versioned:
        builder = replace(builder, key=builder.key or key, value=builder.value or value)
    graph.topology.add_store(builder)
    taken = isinstance(graph.topology.nodes.get(builder.name), SourceNode)
    name = name or (f"{builder.name}-table" if taken else builder.name)
    supplier = TableSource(builder.name, is_versioned=is_versioned)
    node = graph.add("table", supplier, parent, name=name, stores=(builder.name,))
    view = StoreView(builder.name, builder.retention_ms if is_versioned else None)
    return KTable(graph, node, key, value, view=view)
