"""Stores of records by key and time: order, expiry and restarts."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import join_store
from rewindow.streams.serde.types_to_columns import bind_store
from rewindow.streams.state.join_store import JoinStore, RecordKey, RecordStore
from rewindow.streams.state.stores import JOIN, RECORDS, StoreBuilder
from tests.refusals import Refusal, refused


class Pair(NamedTuple):
    """A value of two columns."""

    one: str | None
    other: int | None


def records(**declared: Any) -> RecordStore:
    return RecordStore(StoreBuilder("waiting", RECORDS, **declared))


def kept(retention_ms: int) -> JoinStore:
    return JoinStore(join_store("kept", retention=f"{retention_ms}ms"))


def restarted(store: Any, rows: list[tuple[Any, Any]]) -> Any:
    """Return the store restored from all changes so far. New changes are added to ``rows``."""
    rows += store.take_changes()
    again = type(store)(store.builder)
    again.restore(rows, store.clock_ms)
    return again


def test_records_of_a_key_are_ordered_by_time_and_arrival() -> None:
    store = records()
    for value, timestamp in [("late", 9), ("first", 3), ("second", 3), ("other", 5)]:
        store.put("a", value, timestamp)
    store.put("b", "not a", 4)
    assert store.fetch("a", 3, 9) == [(3, "first"), (3, "second"), (5, "other"), (9, "late")]
    assert store.fetch("a", 4, 8) == [(5, "other")]
    assert store.fetch("c", 0, 99) == []


def test_records_before_a_time_are_popped_by_time_key_bytes_and_arrival() -> None:
    store = records()
    for key, value, timestamp in [
        ("b", 1, 5),
        ("é", 2, 5),
        ("a", 3, 5),
        ("AA", 4, 5),
        ("a", 5, 5),
        ("z", 6, 2),
        ("a", 7, 6),
    ]:
        store.put(key, value, timestamp)
    gone = store.pop_before(6)
    assert [(one.timestamp, one.key, one.value) for one in gone] == [
        (2, "z", 6), (5, "AA", 4), (5, "a", 3), (5, "a", 5), (5, "b", 1), (5, "é", 2),
    ]  # fmt: skip
    assert store.pop_before(6) == []
    assert list(store.rows()) == [(RecordKey("a", 6, 0), 7)]


def test_all_records_of_a_key_and_time_are_removed_together_and_may_be_put_again() -> None:
    store, rows = records(), []
    store.put("a", 1, 5)
    store.put("a", 2, 5)
    store.put("a", 3, 6)
    store = restarted(store, rows)
    store.remove("a", 5)
    store.remove("a", 5)
    store.remove("b", 6)
    store.put("a", 4, 5)
    assert store.take_changes() == [(RecordKey("a", 5, 0), 4), (RecordKey("a", 5, 1), None)]
    assert [one.value for one in store.pop_before(99)] == [4, 3]


def test_a_record_put_and_removed_between_two_checkpoints_leaves_no_trace() -> None:
    store = records()
    store.put("a", 1, 5)
    store.remove("a", 5)
    store.put("b", 1, 5)
    store.pop_before(9)
    assert store.take_changes() == []


def test_a_join_store_expires_records_a_retention_behind_the_newest() -> None:
    store = kept(10)
    store.put("a", "old", 5)
    store.put("b", "newest", 14)
    assert store.fetch("a", 0, 99) == [(5, "old")]
    store.put("b", "newer", 15)
    assert store.fetch("a", 0, 99) == []
    assert (store.clock_ms, len(store), store.expired.count) == (15, 2, 0)


def test_an_expired_record_is_dropped_counted_and_reported() -> None:
    store, lost = kept(10), []
    store.lost = lambda key, value: lost.append((key, value))
    store.put("a", "now", 20)
    store.put("a", "at the bound", 10)
    store.put("a", "just live", 11)
    assert store.fetch("a", 0, 99) == [(11, "just live"), (20, "now")]
    assert (lost, store.expired.count) == ([("a", "at the bound")], 1)


def test_expired_records_need_no_tombstone_and_are_not_restored() -> None:
    store, rows = kept(10), []
    store.put("a", 1, 5)
    store = restarted(store, rows)
    store.put("a", 2, 8)
    store.put("b", 3, 30)
    again = restarted(store, rows)
    assert rows == [(RecordKey("a", 5, 0), 1), (RecordKey("b", 30, 0), 3)]
    assert list(again.rows()) == [(RecordKey("b", 30, 0), 3)]


def test_values_that_can_be_changed_in_place_are_copied() -> None:
    store, value = records(), [1]
    store.put("a", value, 5)
    value.append(2)
    store.fetch("a", 0, 9)[0][1].append(3)
    assert store.fetch("a", 0, 9) == [(5, [1])]


@pytest.mark.parametrize(
    ("key", "value", "refusal"),
    [
        ("a", None, refused("join-store-value-null")),
        ({}, 1, refused("store-key-types-differ")),
        ("a", object(), refused("value-type-undeclared")),
        (1, 1, refused("store-key-types-differ")),
    ],
)
def test_an_unsupported_key_or_value_is_refused_when_it_is_put(key: Any, value: Any, refusal: Refusal) -> None:
    store = records()
    store.put("a", 1, 1)
    with refusal:
        store.put(key, value, 5)


def test_a_negative_retention_is_refused() -> None:
    with refused("join-retention-negative"):
        join_store("kept", retention="-1s")


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "remove", "pop", "restart"]), st.sampled_from("ab"), st.integers(0, 20)
    ),
    max_size=30,
)


@given(ACTIONS, st.none() | st.integers(0, 15))
def test_a_store_equals_a_list_of_all_puts(actions: list[tuple[str, str, int]], retention: int | None) -> None:
    store: Any = records() if retention is None else kept(retention)
    rows: list[tuple[Any, Any]] = []
    model: list[tuple[str, int, int]] = []
    clock = -1
    for number, (action, key, timestamp) in enumerate(actions):
        if action == "restart":
            store = restarted(store, rows)
        elif action == "put":
            store.put(key, number, timestamp)
            clock = max(clock, timestamp)
            model.append((key, timestamp, number))
        elif retention is None and action == "remove":
            store.remove(key, timestamp)
            model = [one for one in model if one[:2] != (key, timestamp)]
        elif retention is None and action == "pop":
            gone = sorted((one for one in model if one[1] < timestamp), key=lambda one: (one[1], one[0], one[2]))
            assert [(one.key, one.timestamp, one.value) for one in store.pop_before(timestamp)] == gone
            model = [one for one in model if one[1] >= timestamp]
        if retention is not None:
            model = [one for one in model if one[1] > clock - retention]
        for wanted in "ab":
            found = sorted((at, value) for k, at, value in model if k == wanted)
            assert store.fetch(wanted, 0, 99) == found
        assert len(store) == len(model)


@pytest.mark.parametrize("kind", [RECORDS, JOIN])
def test_the_changelog_has_columns_for_time_and_number(kind: str) -> None:
    key, value = bind_store(StoreBuilder("s", kind, str, Pair, retention_ms=9), {})
    assert key.names == ("key", "_record_time", "_record_number")
    assert value.names == ("one", "other")
    where, row = RecordKey("a", 5, 1), Pair(None, None)
    assert key.decode(key.encode(where)) == where
    assert value.decode(value.encode(row)) == row
    assert json.dumps(key.encode(where)) == '["a", 5, 1]'
