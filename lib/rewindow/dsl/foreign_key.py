"""Joins of two tables by foreign key, as nodes of the graph: three sub-topologies linked by internal logs (D21, KIP-213)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rewindow.dsl.graph import internal_ends, returned_type
from rewindow.dsl.materialized import StoreSpec, materialized
from rewindow.dsl.operators.foreign_key_join import (
    ForeignKeyJoin,
    ForeignKeyPublish,
    ForeignKeySend,
    ForeignKeySubscribe,
)
from rewindow.dsl.operators.table_join import TableJoinResult
from rewindow.dsl.operators.table_view import StoreView
from rewindow.dsl.table_joins import Joiner, view_of
from rewindow.streams.serde.binding import RowType
from rewindow.streams.state.stores import KEY_VALUE, PREFIX, StoreBuilder

if TYPE_CHECKING:
    from rewindow.dsl.table import KTable

ForeignKey = Callable[[Any, Any], Any]
"""``foreign_key(key, value)``: the key of a row in the other table, or None."""


def join_by_foreign_key(
    left: KTable,
    right: KTable,
    foreign_key: ForeignKey,
    joiner: Joiner,
    *,
    store: StoreSpec,
    keeps_left: bool,
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
    joining = ForeignKeyJoin(joiner, copy, own.name, keeps_left)
    joined = graph.add("foreign-key", joining, left_rows, answers, name=f"{name}-joined", stores=(copy, own.name))
    node = graph.add("foreign-key", TableJoinResult(own.name), joined, name=name, stores=(own.name,))
    return replace(left, node=node, value=value, view=StoreView(own.name), knows_old=True)
