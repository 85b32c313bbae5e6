"""Columns of tables through Arrow: old and new values, versions, and the messages of a foreign-key join."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from rewindow import Change, StoreBuilder, StreamsBuilder, Window, Windowed, versioned_store
from rewindow.dsl.operators.foreign_key_join import Answer, Sent, Subscription
from rewindow.engine.worker.arrow_rows import arrow_schema, decode, encode_values
from rewindow.streams.serde.schema import Shape
from rewindow.streams.serde.types_to_columns import ChangeType, WindowedType, bind, bind_sink, bind_store
from rewindow.streams.state.stores import PREFIX
from rewindow.streams.state.versioned_store import Version, VersionKey
from tests.refusals import refused


class Price(NamedTuple):
    """A row whose fields may be null."""

    amount: Decimal | None
    tags: list[str] | None


def through_arrow(shape: Shape, values: list[Any]) -> list[Any]:
    columns = encode_values(shape, values, "test")
    assert [column.type for column in columns] == [field.type for field in arrow_schema(shape.columns)]
    return list(decode(shape, columns, len(values)))


@pytest.mark.parametrize(
    ("declared", "one", "other"),
    [(int, 1, 2), (None, {"a": [1]}, (1, None)), (Price, Price(None, None), Price(Decimal(1), ["x"])), (str, "", "x")],
)
def test_an_update_comes_back_with_both_sides(declared: Any, one: Any, other: Any) -> None:
    changes = [Change(one, other), Change(one), Change(None, other), Change(None, None)]
    shape = bind(ChangeType(declared), "value", {})
    assert through_arrow(shape, changes) == changes
    assert [shape.normalize(change) for change in changes] == changes
    assert all(name.startswith(("new_", "old_")) for name in shape.names)


def test_a_value_that_is_not_an_update_is_refused() -> None:
    with refused("value-not-table-update"):
        bind(ChangeType(int), "value", {}).encode(7)


@pytest.mark.parametrize(
    "key", [(str, "a"), (int, 7), (None, (1, "a")), (WindowedType(str), Windowed("a", Window(0, 5)))]
)
def test_a_version_comes_back_with_its_time(key: tuple[Any, Any]) -> None:
    store = versioned_store("s", history="1h", key=key[0], value=Price)
    keys, values = bind_store(store, {})
    assert through_arrow(keys, [VersionKey(key[1], 5)]) == [VersionKey(key[1], 5)]
    versions = [Version(None), Version(Price(None, None)), Version(Price(Decimal(2), []))]
    assert through_arrow(values, versions) == versions


def test_foreign_key_join_messages_round_trip() -> None:
    builder = StreamsBuilder()
    left, right = (
        builder.stream(name).map(lambda k, v: (k, v), key=key, value=Price).to_table(store=name)
        for name, key in (("L", str), ("R", int))
    )
    left.join(right, lambda one, _other: one, foreign_key=lambda _k, _v: 1, store="j", value=Price)
    topology = builder.build()
    logs = dict.fromkeys(("L", "R"), (bind(None, "key", {}), bind(None, "value", {})))
    sinks = {
        sink.topic: bind_sink(sink, logs)
        for part in topology.sub_topologies()
        for sink in part.sinks
        if sink.is_internal
    }
    nothing = Price(None, None)
    sent = {
        "j-left-repartition": [Sent(1, True, nothing, False), Sent(2, False, None, True)],
        "j-subscription-repartition": [Subscription("a", 1, "always")],
        "j-answer-repartition": [Answer(1, True, False, nothing), Answer(2, False, True, None)],
    }
    for topic, values in sent.items():
        back = through_arrow(sinks[topic][1], values)
        assert [one.__class__ for one in back] == [one.__class__ for one in values]
        assert [one[:2] for one in back] == [one[:2] for one in values]
    assert through_arrow(sinks["j-answer-repartition"][1], sent["j-answer-repartition"])[0] == Answer(
        1, True, False, nothing
    )
    subscribers = next(store for part in topology.sub_topologies() for store in part.stores if store.kind == PREFIX)
    assert isinstance(subscribers, StoreBuilder)
    keys, _ = bind_store(subscribers, logs)
    assert through_arrow(keys, [(7, "a")]) == [(7, "a")]
