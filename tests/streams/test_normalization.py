"""L2 in stores: after `put`, a value reads as after a restart, equal and of the same class, or `put` refuses it."""

from __future__ import annotations

import enum
import math
from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import Change, Record, Stamped, StoreBuilder, Window, Windowed, key_value_store, window_store
from rewindow.errors import DataError
from rewindow.streams.checkpoint import new_store
from rewindow.streams.record import row_class
from rewindow.streams.serde.schema import Column, row_shape, shape_of
from rewindow.streams.serde.types_to_columns import bind_store, bound, log_shape
from rewindow.streams.state.stores import BUFFER
from rewindow.streams.state.suppress_buffer import Update
from rewindow.streams.topology import SubTopology
from tests.properties.told import told
from tests.refusals import refused

LOGS = {"in": (log_shape((Column("k", "string"),), is_scalar=True), row_shape([Column("x", "long")]))}


class Inner(NamedTuple):
    """A row within a row."""

    number: int
    ratio: float


class Outer(NamedTuple):
    """A row with every kind of field."""

    name: str | None
    inner: Inner | None
    many: list[Inner]
    by_name: dict[str, Inner]
    pair: tuple[Inner, int] | None = None
    price: Decimal | None = None

    def loud(self) -> str:
        """A method, as user rows may have."""
        return f"{self.name}!"


class Colour(enum.StrEnum):
    """A class whose members are equal to a str."""

    RED = "red"


def empty_store(builder: StoreBuilder) -> Any:
    """Return an empty store whose types are bound."""
    return new_store(bound(SubTopology(0, (), (builder,)), LOGS).stores[0])


def restarted(builder: StoreBuilder, store: Any) -> Any:
    """Return the store restored from a checkpoint of this one, through its column values."""
    key_shape, value_shape = bind_store(builder, LOGS)
    rows = [(key_shape.encode_checked(k), value_shape.encode_checked(v)) for k, v in store.rows()]
    again = empty_store(builder)
    again.restore([(key_shape.decode(k), value_shape.decode(v)) for k, v in rows], store.clock_ms)
    return again


FLOATS = st.floats() | st.sampled_from([0.0, -0.0])
INNERS = st.builds(Inner, st.integers(), FLOATS | st.integers(-(2**53), 2**53))
OUTERS = st.builds(
    Outer,
    st.none() | st.text(max_size=3),
    st.none() | INNERS,
    st.lists(INNERS, max_size=2),
    st.dictionaries(st.text(max_size=2), INNERS, max_size=3),
    st.none() | st.tuples(INNERS, st.integers()),
    st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9),
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(max_size=3) | st.binary(max_size=3) | st.decimals(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2) | st.integers(0, 3), inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(row_class(("a", "b")), inner, inner)
        | st.builds(Windowed, inner, st.just(Window(0, 10)))
        | st.builds(Change, inner, inner)
        | st.builds(Record, inner, inner, st.integers(0, 9))
    ),
    max_leaves=6,
)
DECLARED = [
    (None, JSON_VALUES),
    (str, st.text(max_size=5)),
    (int, st.integers(-(2**63), 2**63 - 1)),
    (float, FLOATS | st.integers(-(2**53), 2**53)),
    (bool, st.booleans()),
    (bytes, st.binary(max_size=5)),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9)),
    (Outer, OUTERS),
    (list[Outer], st.lists(OUTERS, max_size=2)),
    (dict[str, float], st.dictionaries(st.text(max_size=2), FLOATS, max_size=3)),
]


@given(st.data(), st.sampled_from(DECLARED))
def test_a_value_reads_as_a_restart_gives_it_back(data: st.DataObject, declared: tuple[Any, Any]) -> None:
    type_, values = declared
    builder = key_value_store("s", key=str, value=type_)
    store = empty_store(builder)
    store.put("k", data.draw(values))
    assert told(restarted(builder, store).get("k")) == told(store.get("k"))


@given(st.data(), st.sampled_from(DECLARED[1:]))
def test_values_of_tables_and_buffers_read_as_a_restart_gives_them_back(
    data: st.DataObject, declared: tuple[Any, Any]
) -> None:
    type_, values = declared
    table = StoreBuilder("t", key=str, value=type_, is_stamped=True)
    stamped = empty_store(table)
    stamped.put("k", Stamped(data.draw(values), 5))
    assert told(restarted(table, stamped).get("k")) == told(stamped.get("k"))
    held = StoreBuilder("b", BUFFER, str, type_)
    buffer = empty_store(held)
    given, prior = data.draw(st.none() | values), data.draw(st.none() | values)
    buffer.put("k", Update(given, prior, 5), 3)
    assert told(list(restarted(held, buffer).rows())) == told(list(buffer.rows()))


KEYS = [
    (None, st.text(max_size=2)),
    (None, st.integers(-3, 3)),
    (None, st.decimals(min_value=-2, max_value=2, places=1)),
    (None, st.sampled_from([0.0, -0.0, 1.0, 2.5])),
    (float, st.sampled_from([0.0, -0.0, 1.0, 2.5, 1, 2])),
    (Decimal, st.sampled_from([Decimal("1.5"), Decimal("1.50"), Decimal(0), Decimal("-0.0")])),
    (None, st.tuples(st.none() | st.text(max_size=1), st.none() | st.integers(0, 2))),
    (Inner, st.builds(Inner, st.integers(0, 2), st.sampled_from([0.0, -0.0, 1.5, 1]))),
]


@given(st.data(), st.sampled_from(KEYS))
def test_repeated_restarts_keep_the_same_keys(data: st.DataObject, of: tuple[Any, Any]) -> None:
    type_, keys = of
    builder = key_value_store("s", key=type_, value=int)
    one, many = empty_store(builder), empty_store(builder)
    for number, (key, deletes) in enumerate(data.draw(st.lists(st.tuples(keys, st.booleans()), max_size=8))):
        for store in (one, many):
            if deletes:
                store.delete(key)
            else:
                store.put(key, number)
        many = restarted(builder, many)
    assert told(list(one.all())) == told(list(many.all()))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (int, 1.5),
        (int, 2.0),
        (int, True),
        (int, 2**63),
        (float, 2**53 + 1),
        (float, "1"),
        (str, b"a"),
        (str, Colour.RED),
        (str, "\ud800"),
        (bytes, "a"),
        (bool, 1),
        (Decimal, 1),
        (Decimal, Decimal("NaN")),
        (Decimal, Decimal(1).scaleb(-19)),
        (Decimal, Decimal(10) ** 20),
        (Inner, {"number": 1, "ratio": 1.0}),
        (Inner, Window(1, 2)),
        (Inner, (1, 2, 3)),
        (Inner, (1.0, 2.0)),
        (list[Inner], [{"number": 1}]),
        (None, Counter("a")),
        (None, Inner(1, 2.0)),
        (None, [Colour.RED]),
        (None, date(2020, 1, 1)),
        (None, {1, 2}),
        (None, bytearray(b"a")),
    ],
)
def test_a_value_that_would_come_back_as_another_is_refused(type_: Any, value: Any) -> None:
    store = empty_store(key_value_store("totals", key=str, value=type_))
    with pytest.raises(DataError, match=r"store 'totals', key 'k': .*declare"):
        store.put("k", value)
    assert store.get("k") is None


@pytest.mark.parametrize(
    ("type_", "first", "second"),
    [
        (None, 1, 1.0),
        (None, 1, True),
        (None, "a", b"a"),
        (None, 1.0, Decimal(1)),
        (None, (1, "a"), (1.0, "a")),
        (None, ("a",), row_class(("a",))("a")),
        (int, 1, 1.0),
        (str, "a", 1),
        (None, "a", date(2020, 1, 1)),
        (None, "a", None),
        (None, "a", ("a", ["b"])),
        (None, "a", Inner(1, 1.0)),
        (None, 1.0, math.nan),
        (None, 1, 2**63),
    ],
)
def test_a_key_of_another_type_is_refused_live_and_restarted(type_: Any, first: Any, second: Any) -> None:
    builder = key_value_store("totals", key=type_, value=int)
    store = empty_store(builder)
    store.put(first, 1)
    for one in (store, restarted(builder, store)):
        with pytest.raises((DataError, TypeError)):
            one.put(second, 2)
        assert list(one.all()) == [(first, 1)]
    windows = empty_store(window_store("hours", size="10ms", retention="20ms", key=type_, value=int))
    windows.put(first, 1, 0)
    with pytest.raises((DataError, TypeError)):
        windows.put(second, 2, 10)


def test_an_emptied_store_accepts_keys_of_another_type() -> None:
    store = empty_store(key_value_store("s"))
    store.put(1, "x")
    store.delete(1)
    store.put("a", "y")
    assert list(store.all()) == [("a", "y")]


def test_the_message_names_the_conflicting_keys_and_the_fix() -> None:
    store = empty_store(key_value_store("totals"))
    store.put(1, 1)
    with refused("store-key-types-differ", store="totals", other="1", other_type="int", key="'a'", type="str"):
        store.put("a", 1)
    with refused("value-not-declared-row", declared="Inner", fields="number, ratio"):
        shape_of(Inner, "value").encode({"number": 1, "ratio": 2})


def test_a_dropped_write_to_an_expired_window_is_counted() -> None:
    store = empty_store(window_store("hours", size="10ms", retention="10ms", key=str, value=int))
    store.put("a", 1, 100)
    store.put("a", 1, 90)
    store.put("a", 1, 100)
    assert store.expired.count == 1
    assert [windowed.window.start_ms for windowed, _ in store.rows()] == [100]
    with refused("window-start-invalid", start="1.5"):
        store.put("a", 1, 1.5)
