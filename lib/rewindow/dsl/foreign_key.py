"""The foreign-key join, as nodes of the graph: three sub-topologies, tied by internal logs with typed columns (D21)."""

from __future__ import annotations

from collections.abc import Callable
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
"""Takes key and value, gives the key of the other table's row, or None."""


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
    """Join a table with the rows of another that its own rows name. See `KTable.join`."""
    from rewindow.dsl.table import KTable  # noqa: PLC0415 - tables and their joins make each other

    graph, topology, own = left.graph, left.graph.topology, materialized(store)
    name, value = name or own.name, value or returned_type(joiner)
    left.check_old("a foreign-key join")
    copy, subscribers, numbers = f"{name}-left", f"{name}-subscribers", f"{name}-updates"

    def crossing(log: str, key: Any, *parents: str, **fields: Any) -> str:
        return topology.add_repartition(f"{name}-{log}", *parents, key=key, value=RowType(tuple(fields.items())))

    to_copy, to_right = (internal_ends(f"{name}-{log}")[0] for log in ("left", "subscription"))
    send = ForeignKeySend(foreign_key, to_copy, to_right, keeps_left, numbers)
    topology.add_store(StoreBuilder(numbers, KEY_VALUE, str, int))
    sending = graph.add("foreign-key", send, left.node, name=f"{name}-send", stores=(numbers,))
    left_again = crossing("left", left.key, sending, number=int, is_row=bool, value=left.value, needs_no_answer=bool)
    asked = crossing("subscription", right.key, sending, left_key=left.key, number=int, answered=str)

    pair = RowType((("foreign_key", right.key), ("left_key", left.key)))
    topology.add_store(StoreBuilder(subscribers, PREFIX, pair, int))
    view = view_of(right, name)
    subscribe, publish = ForeignKeySubscribe(view, subscribers), ForeignKeyPublish(subscribers)
    asking = graph.add("foreign-key", subscribe, asked, name=f"{name}-subscribe", stores=(subscribers, *view.stores))
    telling = graph.add("foreign-key", publish, right.node, name=f"{name}-publish", stores=(subscribers,))
    answered = crossing("answer", left.key, asking, telling, number=int, is_row=bool, is_quiet=bool, value=right.value)

    topology.add_store(StoreBuilder(copy, KEY_VALUE, left.key, RowType((("number", int), ("value", left.value)))))
    topology.add_store(own.key_values(left.key, value))
    joining = ForeignKeyJoin(joiner, copy, own.name, keeps_left)
    joined = graph.add("foreign-key", joining, left_again, answered, name=f"{name}-joined", stores=(copy, own.name))
    node = graph.add("foreign-key", TableJoinResult(own.name), joined, name=name, stores=(own.name,))
    return KTable(graph, node, left.key, value, left.windows, StoreView(own.name))
