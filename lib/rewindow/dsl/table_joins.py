"""Joins of tables, as nodes of the graph: a processor for each side, and one for the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rewindow.dsl.graph import returned_type
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.table_join import TableJoinResult, TableJoinSide
from rewindow.dsl.operators.table_view import JoinedView, StoreView, TableView
from rewindow.errors import TopologyError
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.topology import Topology

if TYPE_CHECKING:
    from rewindow.dsl.table import KTable

Joiner = Callable[[Any, Any], Any]
"""Takes the left and the right value; the missing one of an outer join is None."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Which rows stay without the other side."""

    left: bool = False
    right: bool = False


def join_tables(
    left: KTable, right: KTable, joiner: Joiner, kept: Kept, *, store: StoreSpec | None, value: Any, name: str | None
) -> KTable:
    """Join two tables by their keys. See `KTable.join`."""
    from rewindow.dsl.table import KTable  # noqa: PLC0415 - tables and their joins make each other

    graph, value = left.graph, value or returned_type(joiner)
    own = None if store is None else materialized(store)
    name = name or (own.name if own is not None else graph.number("table-join"))
    left_view, right_view = view_of(left, name), view_of(right, name)
    if kept.left:
        left.check_old("a left or outer join")
    if kept.right:
        right.check_old("an outer join")
    sides = (
        (f"{name}-left", left, right_view, joiner, kept.left, kept.right),
        (f"{name}-right", right, left_view, lambda value, other: joiner(other, value), kept.right, kept.left),
    )
    for side, table, other, joined, keeps_own, keeps_other in sides:
        is_versioned = view_of(table, name).history_ms is not None
        supplier = TableJoinSide(other, joined, keeps_own, keeps_other, is_versioned)
        graph.add("table-join", supplier, table.node, name=side, stores=other.stores)
    if own is not None:
        graph.topology.add_store(own.key_values(left.key, value))
    stores = (own.name,) if own is not None else ()
    node = graph.add(
        "table-join",
        TableJoinResult(own.name if own is not None else None),
        f"{name}-left",
        f"{name}-right",
        name=name,
        stores=stores,
    )
    is_ring = _reaches(graph.topology, left_view, right.node) or _reaches(graph.topology, right_view, left.node)
    exact = own is not None or (left.knows_old and right.knows_old and not is_ring)
    view: TableView = (
        StoreView(own.name) if own is not None else JoinedView(left_view, right_view, joiner, kept.left, kept.right)
    )
    windows = max((left.windows, right.windows), key=lambda one: one.final_after_end_ms if one else -1)
    return KTable(graph, node, left.key, value, windows, view, exact)


def _reaches(topology: Topology, view: TableView, node: str) -> bool:
    """Return whether an update that a view shows at once goes on to a node: it is joined twice then."""
    upstream, waiting = {node}, [node]
    while waiting:
        parents = [one for one in topology.nodes[waiting.pop()].parents if one not in upstream]
        upstream.update(parents)
        waiting += parents
    return any(_writer_of(topology, store) in upstream for store in view.stores)


def _writer_of(topology: Topology, store: str) -> str:
    """Return the node that was connected to a store first."""
    nodes = topology.nodes.values()
    return next(node.name for node in nodes if isinstance(node, ProcessorNode) and store in node.stores)


def view_of(table: KTable, name: str) -> TableView:
    """Return how a table's values are looked up. Raises `TopologyError` if they cannot be."""
    if table.view is None:
        message = f"the join {name!r} looks values up in {table.node!r}, which keeps none: give it a store=..."
        raise TopologyError(message)
    return table.view
