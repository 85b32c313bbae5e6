"""Tables that keep the records of a node in a store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rewindow.dsl.graph import Graph
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.table_verbs import TableSource
from rewindow.dsl.operators.table_view import StoreView
from rewindow.dsl.table import KTable
from rewindow.streams.nodes import SourceNode
from rewindow.streams.state.stores import VERSIONED


def kept_table(graph: Graph, parent: str, key: Any, value: Any, store: StoreSpec, *, name: str | None = None) -> KTable:
    """Keep the records of a node as a table. ``store`` is a name or a ready-made store, such as a `versioned_store`.

    Raises `TopologyError` for a window or session store.
    """
    kept = materialized(store)
    made = kept.ready_made
    is_versioned = made is not None and made.kind == VERSIONED
    if made is not None and is_versioned:
        builder = replace(made, key=made.key or key, value=made.value or value)
    else:
        builder = kept.key_values(key, value)
    graph.topology.add_store(builder)
    taken = isinstance(graph.topology.nodes.get(builder.name), SourceNode)
    name = name or (f"{builder.name}-table" if taken else builder.name)
    supplier = TableSource(builder.name, is_versioned=is_versioned)
    node = graph.add("table", supplier, parent, name=name, stores=(builder.name,))
    view = StoreView(builder.name, builder.retention_ms if is_versioned else None)
    return KTable(graph, node, key, value, view=view)
