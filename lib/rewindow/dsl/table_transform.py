"""`KTable.transform_values`, and which transformers above a verb must be called for old values, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rewindow.dsl.graph import function_of
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.suppress import SuppressUntilTimeLimit, SuppressUntilWindowCloses
from rewindow.dsl.operators.table_join import TableJoinResult, TableJoinSide
from rewindow.dsl.operators.table_transform import TableTransform, TransformedView
from rewindow.dsl.operators.table_verbs import TableDerive
from rewindow.dsl.operators.table_view import StoreView, TableView
from rewindow.streams.legacy import ValueTransformerWithKey
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.state.stores import StoreBuilder
from rewindow.streams.topology import Topology

if TYPE_CHECKING:
    from rewindow.dsl.table import KTable

_JOINS_AND_SUPPRESSES = (TableJoinSide, TableJoinResult, SuppressUntilTimeLimit, SuppressUntilWindowCloses)


def transform_values(
    table: KTable,
    supplier: Callable[[], ValueTransformerWithKey],
    *,
    name: str,
    stores: Iterable[StoreBuilder | str],
    store: StoreSpec | None,
    value: Any,
) -> KTable:
    """Transform the values of a table by user code. See `KTable.transform_values`."""
    graph, function_ = table.graph, function_of(supplier, "transform_values")
    names = graph.add_user_stores(f"transform_values {name!r}", stores)
    made, view = TableTransform(function_, bool(names)), _view(table, function_, names)
    if store is not None:
        kept = materialized(store)
        graph.topology.add_store(kept.key_values(table.key, value))
        made, names, view = replace(made, store=kept.name), (*names, kept.name), StoreView(kept.name)
    node = graph.add("transform-values", made, table.node, name=name, stores=names)
    return replace(table, node=node, value=value, view=view, knows_old=table.knows_old or store is not None)


def ask_for_old_values(topology: Topology, name: str) -> None:
    """Have the transformers that make the updates of a node called for old values, as Kafka does.

    A node with a store knows its old values. Only a join asks its tables even then.
    """
    node = topology.nodes[name]
    supplier = node.supplier if isinstance(node, ProcessorNode) else None
    is_derived = isinstance(supplier, TableTransform | TableDerive) and supplier.store is None
    if not is_derived and not isinstance(supplier, _JOINS_AND_SUPPRESSES):
        return
    if isinstance(node, ProcessorNode) and isinstance(supplier, TableTransform):
        topology.nodes[name] = replace(node, supplier=replace(supplier, calls_old=True))
    for parent in node.parents:
        ask_for_old_values(topology, parent)


def _view(table: KTable, supplier: Callable[[], ValueTransformerWithKey], stores: tuple[str, ...]) -> TableView | None:
    """Return a view that transforms what it looks up. A join has no access to a transformer's own stores."""
    return None if table.view is None or stores else TransformedView(table.view, supplier)
