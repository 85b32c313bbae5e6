"""Joins of two tables as nodes of the graph.

A join by key has a processor for each side and a processor for the result. A join by foreign key has three sub-topologies that
are linked by internal logs (D21, KIP-213).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rewindow.dsl.annotations import returned_type
from rewindow.dsl.graph import JOIN, internal_ends
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.foreign_key_join import (
    ForeignKeyJoin,
    ForeignKeyPublish,
    ForeignKeySend,
    ForeignKeySubscribe,
)
from rewindow.dsl.operators.table_join import TableJoinResult, TableJoinSide, ValueJoiner
from rewindow.dsl.operators.table_view import JoinedView, StoreView, TableView
from rewindow.dsl.type_checks import EqualKeys
from rewindow.errors import TopologyError
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.serde.types_to_columns import RowType
from rewindow.streams.state.stores import KEY_VALUE, PREFIX, StoreBuilder
from rewindow.streams.topology import Topology
from rewindow.streams.windows.calendar import CalendarWindows

if TYPE_CHECKING:
    from rewindow.dsl.table import KTable


Joiner = Callable[..., Any]
"""``joiner(left_value, right_value)`` returns the joined value; with ``with_key``, ``joiner(key, left_value, right_value)``.

In left and outer joins, the value of a missing row is None."""
ForeignKey = Callable[[Any, Any], Any]
"""``foreign_key(key, value)`` returns the key of a row in the other table; None for no row."""


class Unmatched(NamedTuple):
    """For each side of a join, whether its records or rows are in the result even without a match on the other side."""

    left: bool = False
    right: bool = False


INNER, LEFT, OUTER = Unmatched(), Unmatched(left=True), Unmatched(left=True, right=True)


def join_tables(
    left: KTable,
    right: KTable,
    joiner: Joiner,
    unmatched: Unmatched,
    *,
    store: StoreSpec | None,
    with_key: bool,
    value: Any,
    name: str | None,
) -> KTable:
    """Join two tables by key. See `KTable.join`."""
    _check_same_calendar(left, right)
    graph, value = left.graph, value or returned_type(joiner)
    own = None if store is None else materialized(store)
    name = name or (own.name if own is not None else graph.number("table-join"))
    left_view, right_view = view_of(left, name), view_of(right, name)
    if unmatched.left:
        left.check_old("a left or outer join")
    if unmatched.right:
        right.check_old("an outer join")
    joined = ValueJoiner(joiner, with_key)
    inputs = (
        (f"{name}-left", left, right_view, joined, unmatched.left, unmatched.right),
        (f"{name}-right", right, left_view, joined.turned, unmatched.right, unmatched.left),
    )
    for side, table, other, of_side, keeps_own, keeps_other in inputs:
        is_versioned = view_of(table, name).history_ms is not None
        supplier = TableJoinSide(other, of_side, keeps_own, keeps_other, is_versioned)
        graph.add("table-join", supplier, table.node, name=side, stores=other.stores)
    graph.topology.reads.append((f"{name}-left", EqualKeys("join", left.key, right.key)))
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
        typed_by=JOIN,
    )
    graph.calls(node, "join", joiner, with_key=with_key, key=left.key, left=left.value, right=right.value)
    shares_updates = _is_below(graph.topology, right.node, left_view) or _is_below(
        graph.topology, left.node, right_view
    )
    knows_old = own is not None or (left.knows_old and right.knows_old and not shares_updates)
    view: TableView = (
        StoreView(own.name)
        if own is not None
        else JoinedView(left_view, right_view, joined, unmatched.left, unmatched.right)
    )
    windows = max(
        (left.windows, right.windows),
        key=lambda table_windows: table_windows.final_after_end_ms if table_windows else -1,
    )
    return replace(left, node=node, value=value, windows=windows, view=view, knows_old=knows_old)


def _check_same_calendar(left: KTable, right: KTable) -> None:
    """Raise `TopologyError` for two windowed tables if one has windows in local time and the other one not the same windows.

    The windows of such tables would have equal starts at some times only, so their rows would be joined by accident.
    """
    if left.windows is None or right.windows is None:
        return
    windows = left.windows, right.windows
    if not any(isinstance(one, CalendarWindows) for one in windows):
        return
    defined = [replace(one, grace_ms=0) if isinstance(one, CalendarWindows) else one for one in windows]
    if defined[0] != defined[1]:
        raise TopologyError(
            "calendar-windows-differ",
            "the join of {left!r} and {right!r} needs the same windows in local time on both sides, and these are {left_windows} "
            "and {right_windows}: use the same size, zone, offset and advance",
            left=left.node,
            right=right.node,
            left_windows=windows[0].in_words(),
            right_windows=windows[1].in_words(),
        )


def view_of(table: KTable, name: str) -> TableView:
    """Return the view that looks up a table's values, for the join ``name``. Raises `TopologyError` if the table has none."""
    if table.view is None:
        raise TopologyError(
            "joined-table-without-store",
            "the join {join!r} looks values up in {node!r}, which keeps none: give it a store=...",
            join=name,
            node=table.node,
        )
    return table.view


def join_by_foreign_key(
    left: KTable,
    right: KTable,
    foreign_key: ForeignKey,
    joiner: Joiner,
    *,
    store: StoreSpec,
    keeps_left: bool,
    with_key: bool,
    value: Any,
    name: str | None,
) -> KTable:
    """Join each row of a table with the row of another table that its foreign key names. See `KTable.join`."""
    graph, topology, own = left.graph, left.graph.topology, materialized(store)
    name, value = name or own.name, value or returned_type(joiner)
    left.check_old("a foreign-key join")
    copy, subscribers, numbers = f"{name}-left", f"{name}-subscribers", f"{name}-updates"

    def repartition(log: str, key: Any, *parents: str, **fields: Any) -> str:
        return topology.add_repartition(f"{name}-{log}", *parents, key=key, value=RowType(tuple(fields.items())))

    to_copy, to_right = (internal_ends(f"{name}-{log}")[0] for log in ("left", "subscription"))
    send = ForeignKeySend(foreign_key, to_copy, to_right, keeps_left, numbers)
    topology.add_store(StoreBuilder(numbers, KEY_VALUE, str, int))
    sending = graph.add("foreign-key", send, left.node, name=f"{name}-send", stores=(numbers,))
    graph.calls(sending, "foreign_key=", foreign_key, key=left.key, value=left.value)
    left_rows = repartition("left", left.key, sending, number=int, is_row=bool, value=left.value, needs_no_answer=bool)
    subscriptions = repartition("subscription", right.key, sending, left_key=left.key, number=int, answered=str)

    pair = RowType((("foreign_key", right.key), ("left_key", left.key)))
    topology.add_store(StoreBuilder(subscribers, PREFIX, pair, int))
    view = view_of(right, name)
    subscribe, publish = ForeignKeySubscribe(view, subscribers), ForeignKeyPublish(subscribers)
    subscribing = graph.add(
        "foreign-key", subscribe, subscriptions, name=f"{name}-subscribe", stores=(subscribers, *view.stores)
    )
    publishing = graph.add("foreign-key", publish, right.node, name=f"{name}-publish", stores=(subscribers,))
    answers = repartition(
        "answer", left.key, subscribing, publishing, number=int, is_row=bool, is_quiet=bool, value=right.value
    )

    topology.add_store(StoreBuilder(copy, KEY_VALUE, left.key, RowType((("number", int), ("value", left.value)))))
    topology.add_store(own.key_values(left.key, value))
    joining = ForeignKeyJoin(ValueJoiner(joiner, with_key), copy, own.name, keeps_left)
    joined = graph.add(
        "foreign-key", joining, left_rows, answers, name=f"{name}-joined", stores=(copy, own.name), typed_by=JOIN
    )
    graph.calls(joined, "join", joiner, with_key=with_key, key=left.key, left=left.value, right=right.value)
    node = graph.add("foreign-key", TableJoinResult(own.name), joined, name=name, stores=(own.name,), typed_by=JOIN)
    return replace(left, node=node, value=value, view=StoreView(own.name), knows_old=True)


def _is_below(topology: Topology, node: str, view: TableView) -> bool:
    """Return whether a store of the view is written by a node above ``node``.

    If so, an update of that store is in the view before it reaches ``node``, so it is joined twice.
    """
    upstream, waiting = {node}, [node]
    while waiting:
        parents = [parent for parent in topology.nodes[waiting.pop()].parents if parent not in upstream]
        upstream.update(parents)
        waiting += parents
    return any(_writer_of(topology, store) in upstream for store in view.stores)


def _writer_of(topology: Topology, store: str) -> str:
    """Return the node that writes a store. It is the first node that was connected to the store."""
    nodes = topology.nodes.values()
    return next(node.name for node in nodes if isinstance(node, ProcessorNode) and store in node.stores)
