"""Stores: reads, checkpoints and restores."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import Stamped, StoreBuilder, Window, Windowed, key_value_store, window_store
from rewindow.streams.checkpoint import new_store
from rewindow.streams.record import row_class
from rewindow.streams.serde.key_bytes import encode_key, encoded_size
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.stores import BUFFER
from rewindow.streams.state.suppress_buffer import Buffered, TimeOrderedBuffer, Update
from rewindow.streams.state.window_store import WindowStore
from tests.refusals import refused

KEYS = st.sampled_from(["a", "aa", "b", "B", "é"])
VALUES = st.one_of(st.none(), st.integers(0, 5), st.lists(st.integers(0, 3), max_size=2))


def key_values() -> KeyValueStore:
    store = new_store(key_value_store("s"))
    assert isinstance(store, KeyValueStore)
    return store


def windows(size: int = 10, retention: int = 20) -> WindowStore:
    store = new_store(window_store("s", size=f"{size}ms", retention=f"{retention}ms"))
    assert isinstance(store, WindowStore)
    return store


def buffer(*, sends_tombstones: bool = True) -> TimeOrderedBuffer:
    store = new_store(StoreBuilder("s", BUFFER, sends_tombstones=sends_tombstones))
    assert isinstance(store, TimeOrderedBuffer)
    return store


@given(st.lists(st.one_of(st.tuples(KEYS, VALUES), st.just("checkpoint"))))
def test_a_key_value_store_equals_a_dict_and_its_changes_restore_it(steps: list[Any]) -> None:
    store, model, log = key_values(), {}, []
    for step in steps:
        if step == "checkpoint":
            log += store.take_changes()
            continue
        key, value = step
        store.put(key, value)
        model[key] = value
        if value is None:
            del model[key]
        assert store.get(key) == value
    log += store.take_changes()
    restored = key_values()
    restored.restore(log)
    assert dict(store.all()) == dict(restored.all()) == model
    assert [key for key, _ in store.all()] == sorted(model, key=str.encode)
    assert len(store) == len(model)


@given(st.lists(st.one_of(st.tuples(KEYS, VALUES, st.integers(0, 6)), st.just("checkpoint"))))
def test_a_window_store_expires_windows_live_and_restored(steps: list[Any]) -> None:
    store, log = windows(), []
    model: dict[tuple[int, str], Any] = {}
    newest = -1
    for step in steps:
        if step == "checkpoint":
            log += store.take_changes()
            continue
        key, value, number = step
        start = 10 * number
        newest = max(newest, start)
        store.put(key, value, start)
        model[start, key] = value
        model = {row: held for row, held in model.items() if row[0] > newest - 20 and held is not None}
    log += store.take_changes()
    restored = windows()
    restored.restore(log, store.clock_ms)
    expected = [
        (Windowed(k, Window(s, s + 10)), model[s, k]) for s, k in sorted(model, key=lambda p: (p[0], p[1].encode()))
    ]
    assert list(store.rows()) == list(restored.rows()) == expected
    assert restored.clock_ms == newest
    for start, key in model:
        assert store.fetch(key, start) == restored.fetch(key, start) == model[start, key]


@given(st.lists(st.one_of(st.tuples(KEYS, VALUES, st.integers(0, 9)), st.integers(0, 9), st.just("checkpoint"))))
def test_a_buffer_evicts_the_oldest_first_live_and_restored(steps: list[Any]) -> None:
    store, model, log = buffer(sends_tombstones=False), {}, []
    for step in steps:
        if step == "checkpoint":
            log += store.take_changes()
        elif isinstance(step, int):
            due = sorted(
                (entry.buffer_time, key.encode(), key) for key, entry in model.items() if entry.buffer_time <= step
            )
            assert list(store.pop_until(step)) == [(key, model.pop(key)) for _, _, key in due]
        else:
            key, value, time = step
            store.put(key, Update(value, None, time), time)
            size = 28 + len(key.encode()) + encoded_size(value)
            model[key] = Buffered(value, time, model[key].buffer_time if key in model else time, None, size)
    log += store.take_changes()
    restored = buffer(sends_tombstones=False)
    restored.restore(log)
    assert dict(store.rows()) == dict(restored.rows()) == model
    assert store.results == restored.results == sum(entry.value is not None for entry in model.values())
    assert list(store.pop_until(9)) == list(restored.pop_until(9))
    assert len(store) == 0


def test_a_checkpoint_has_one_row_per_changed_key() -> None:
    store = key_values()
    store.put("b", 1)
    store.put("a", 1)
    store.put("a", 2)
    assert store.take_changes() == [("a", 2), ("b", 1)]
    assert store.take_changes() == []
    store.delete("a")
    assert store.take_changes() == [("a", None)]


def test_a_row_put_and_deleted_between_two_checkpoints_leaves_no_trace() -> None:
    store = key_values()
    store.put("a", 1)
    store.delete("a")
    store.delete("never there")
    assert store.take_changes() == []
    held = buffer()
    held.put("a", Update(1, None, 5), 5)
    assert [key for key, _ in held.pop_until(5)] == ["a"]
    assert held.take_changes() == []


def test_a_value_that_can_be_changed_in_place_is_copied_in_and_out() -> None:
    store, given_list = key_values(), [1]
    store.put("a", given_list)
    given_list.append(2)
    store.get("a").append(3)
    next(store.all())[1].append(4)
    assert store.get("a") == [1]
    by_window = windows()
    by_window.put("a", given_list, 0)
    given_list.append(5)
    by_window.fetch("a", 0).append(6)
    assert by_window.fetch("a", 0) == [1, 2]


def test_writes_during_an_iteration_are_safe_and_not_seen() -> None:
    store = key_values()
    for key in "abc":
        store.put(key, key)
    seen = []
    for key, value in store.all():
        seen.append((key, value))
        for other in "abc":
            store.delete(other)
        store.put("d", "d")
    assert seen == [("a", "a"), ("b", "b"), ("c", "c")]
    for key in "abc":
        store.put(key, key)
    seen = []
    for key, value in store.range("a", "b"):
        seen.append((key, value))
        store.delete("b")
    assert seen == [("a", "a"), ("b", "b")]


def test_windows_that_expire_while_they_are_read_stay_expired() -> None:
    store = windows()
    for start in (0, 10):
        store.put("a", start, start)
        store.put("b", start, start)
    seen = []
    for windowed, value in store.fetch_all(0, 100):
        seen.append((windowed.window.start_ms, windowed.key, value))
        store.put("a", "new", 100)
    assert seen == [(0, "a", 0), (0, "b", 0), (10, "a", 10), (10, "b", 10)]
    store.put("a", "too late", 10)
    assert [windowed.window.start_ms for windowed, _ in store.fetch_all(0, 100)] == [100]
    assert store.fetch("a", 10) is None


class Total(NamedTuple):
    """A user's class."""

    amount: int


@pytest.mark.parametrize("value", [Total(1), [Total(1)], {"a": (Total(1), 2)}, object(), {1}])
def test_what_a_restart_would_change_is_refused_when_it_is_put(value: Any) -> None:
    with refused("value-type-undeclared"):
        key_values().put("a", value)
    with refused("value-type-undeclared") as caught:
        buffer().put("a", Update(value, None, 1), 1)
    assert "store 's'" in str(caught.value)
    with refused("value-type-undeclared") as caught:
        windows().put("a", Stamped(value, 3), 0)
    assert "store 's'" in str(caught.value)


def test_a_declared_class_is_preserved() -> None:
    store = new_store(key_value_store("s", value=Total))
    assert isinstance(store, KeyValueStore)
    store.put("a", Total(1))
    assert isinstance(store.get("a"), Total)
    for data in (Decimal(1), {"a": [1, (2, None)]}, Windowed("a", Window(0, 1)), row_class(("amount",))(1)):
        key_values().put("a", data)


def test_ranges() -> None:
    store = windows(retention=100)
    for start in (0, 10, 20, 30):
        store.put("a", start, start)
    assert list(store.fetch_range("a", 10, 20)) == [(10, 10), (20, 20)]
    assert list(store.fetch_range("b", 0, 30)) == []
    kept = key_values()
    for number in (-1, 0, 1, 2):
        kept.put(number, str(number))
    assert list(kept.range(0, 1)) == [(0, "0"), (1, "1")]
    assert kept.put_if_absent(0, "other") == "0"
    assert kept.put_if_absent(7, "seven") is None
    assert kept.get(7) == "seven"


class Customer(NamedTuple):
    """A key of several fields."""

    country: str
    number: int


@given(st.data())
def test_a_range_has_the_keys_whose_bytes_are_in_it_in_the_order_of_all(data: st.DataObject) -> None:
    numbers = st.integers(-300, 300)
    kind, keys = data.draw(
        st.sampled_from(
            [
                (str, st.text(max_size=3)),
                (int, numbers),
                (bytes, st.binary(max_size=3)),
                (Customer, st.builds(Customer, st.text(max_size=2), numbers)),
                (None, numbers),
            ]
        )
    )
    store = new_store(key_value_store("s", key=kind, value=int))
    assert isinstance(store, KeyValueStore)
    for number, key in enumerate(data.draw(st.lists(keys, max_size=20))):
        store.put(key, number)
    for key in data.draw(st.lists(keys, max_size=5)):
        store.delete(key)
    first, last = data.draw(keys), data.draw(keys)
    low, high = encode_key(first), encode_key(last)
    assert list(store.range(first, last)) == [row for row in store.all() if low <= encode_key(row[0]) <= high]


def test_a_range_is_that_of_the_call() -> None:
    store = key_values()
    store.put("a", ["first"])
    found = store.range("a", "b")
    store.put("a", ["second"])
    store.put("b", ["new"])
    assert list(found) == [("a", ["first"])]
    assert list(store.range("b", "a")) == []
    with refused("key-type-without-bytes"):
        store.range("a", {})


def test_a_retention_below_the_size_is_refused() -> None:
    with refused("window-store-times-invalid"):
        window_store("s", size="10ms", retention="9ms")


def test_a_window_store_takes_durations_in_words() -> None:
    store = window_store("s", size="1h", retention=timedelta(days=1))
    assert (store.window_size_ms, store.retention_ms) == (3_600_000, 86_400_000)
