"""Types bound to columns: column names are distinct, and values round-trip."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import Count, Mean, Stamped, StoreBuilder, StreamsBuilder, Sum, TimeWindows, Window, Windowed
from rewindow.errors import ConfigError
from rewindow.streams.nodes import SinkNode
from rewindow.streams.record import row_class
from rewindow.streams.serde.schema import Column, shape_of
from rewindow.streams.serde.types_to_columns import (
    FieldType,
    LogType,
    RowType,
    WindowedType,
    bind,
    bind_sink,
    bind_store,
    log_shape,
)
from rewindow.streams.state.stores import BUFFER, KEY_VALUE, WINDOW
from rewindow.streams.state.suppress_buffer import Buffered
from tests.refusals import Refusal, refused


class Visit(NamedTuple):
    """A row whose field names clash with a changelog's columns."""

    timestamp: int | None
    is_null: bool | None
    value: str | None
    tags: list[str] | None = None


LOGS = {
    "events": (
        log_shape((Column("user", "string"),), is_scalar=True),
        log_shape((Column("user", "string"), Column("amount", "double"), Column("note", "json")), is_scalar=False),
    ),
}
TEXT = st.text(max_size=5)
VISITS = st.builds(
    Visit,
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.booleans(),
    st.none() | TEXT,
    st.none() | st.lists(TEXT, max_size=2),
)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | TEXT
    | st.binary(max_size=4)
    | st.decimals(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=6,
)
DECLARED = st.sampled_from(
    [
        (str, TEXT),
        (int, st.integers(-(2**63), 2**63 - 1)),
        (bool, st.booleans()),
        (float, st.floats(allow_nan=False)),
        (bytes, st.binary(max_size=5)),
        (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=2)),
        (None, JSON_VALUES),
        (list[str], st.lists(TEXT)),
    ]
)


@given(st.data(), DECLARED)
def test_a_declared_value_comes_back(data: st.DataObject, declared: tuple[Any, st.SearchStrategy[Any]]) -> None:
    type_, values = declared
    value = data.draw(st.none() | values)
    shape = shape_of(type_, "value")
    values = shape.encode(value)
    assert len(values) == len(shape.columns) == 1
    assert shape.decode(values) == value


@given(VISITS)
def test_a_row_comes_back_as_its_own_class(visit: Visit) -> None:
    shape = shape_of(Visit, "value")
    assert shape.columns == (
        Column("timestamp", "long"),
        Column("is_null", "boolean"),
        Column("value", "string"),
        Column("tags", "json"),
    )
    back = shape.decode(shape.encode(visit))
    assert back == visit
    assert isinstance(back, Visit)


KINDS = [
    (StoreBuilder("s", KEY_VALUE, Visit, Visit), Visit(1, True, "x"), Visit(2, None, None)),
    (StoreBuilder("s", KEY_VALUE, str, Visit, is_stamped=True), "k", Stamped(Visit(2, None, None), 7)),
    (StoreBuilder("s", BUFFER, str, Visit), "k", Buffered(Visit(None, None, None), 7, 5)),
    (StoreBuilder("s", BUFFER, str, Visit), "k", Buffered(None, 7, 5, Visit("x", 1, None), 70)),
    (StoreBuilder("s", WINDOW, str, int, is_stamped=True), Windowed("k", Window(0, 10)), Stamped(3, 9)),
    (
        StoreBuilder("s", WINDOW, WindowedType(str), int, is_stamped=True),
        Windowed(Windowed("k", Window(0, 10)), Window(0, 60)),
        Stamped(3, 9),
    ),
    (
        StoreBuilder("s", KEY_VALUE, LogType("events", "key"), LogType("events", "value"), is_stamped=True),
        "ann",
        Stamped(row_class(("user", "amount", "note"))("ann", 1.5, {"a": [1]}), 3),
    ),
]


@pytest.mark.parametrize(("builder", "key", "value"), KINDS)
def test_a_changelog_has_distinct_columns_and_gives_its_rows_back(builder: StoreBuilder, key: Any, value: Any) -> None:
    key_shape, value_shape = bind_store(builder, LOGS)
    names = [*key_shape.names, *value_shape.names, "_run", "_tombstone"]
    assert len(set(names)) == len(names)
    assert key_shape.decode(key_shape.encode(key)) == key
    assert value_shape.decode(value_shape.encode(value)) == value


def test_an_internal_topic_distinguishes_null_from_a_row_of_nulls() -> None:
    sink = SinkNode("s", ("p",), "t-repartition", str, Visit, is_internal=True)
    key, value = bind_sink(sink, LOGS)
    assert value.decode(value.encode(None)) is None
    assert value.decode(value.encode(Visit(None, None, None))) == Visit(None, None, None)
    assert key.decode(key.encode(None)) is None
    assert len({*key.names, *value.names}) == len(key.names) + len(value.names)


def test_a_windowed_table_names_its_window() -> None:
    builder = StreamsBuilder()
    table = builder.stream("events").group_by_key().windowed_by(TimeWindows.of("1h", grace="0s"))
    counted = table.aggregate({"events": Count(), "mean": Mean("amount"), "most": Sum("amount")}, store="hours")
    counted.to_stream().to("hours")
    (part,) = builder.build().sub_topologies()
    key, value = bind_sink(part.sinks[0], LOGS)
    assert key.names == ("user", "window_start", "window_end")
    assert value.columns == (Column("events", "long"), Column("mean", "double"), Column("most", "double"))


def test_a_key_gives_way_to_a_value_of_the_same_name() -> None:
    key, value = bind_sink(SinkNode("s", ("p",), "out", LogType("events", "key"), LogType("events", "value")), LOGS)
    assert (key.names, value.names) == (("key_user",), ("user", "amount", "note"))


@pytest.mark.parametrize(
    ("declared", "refusal"),
    [
        (LogType("clicks", "key"), refused("topic-not-in-feed", topic="clicks", topics="events")),
        (
            FieldType(LogType("events", "value"), "price"),
            refused("aggregate-field-unknown", field="price", fields="user, amount, note"),
        ),
        (
            RowType((("total", FieldType(LogType("events", "value"), "price")),)),
            refused("aggregate-field-unknown", field="price"),
        ),
        (object, refused("type-without-columns")),
    ],
)
def test_a_type_that_cannot_be_bound_names_the_fix(declared: Any, refusal: Refusal) -> None:
    with refusal:
        bind(declared, "value", LOGS)


class Keyed(NamedTuple):
    """A row whose field names clash with those of a key."""

    key: int
    key_key: int


class Cased(NamedTuple):
    """A row with two field names that Spark does not distinguish."""

    Name: int
    name: int


@pytest.mark.parametrize(
    ("builder", "words"),
    [
        (StoreBuilder("s", KEY_VALUE, str, Keyed), "changelog of the store 's' would have the column 'key_key' twice"),
        (StoreBuilder("s", KEY_VALUE, str, Cased), "the column 'Name' and 'name' twice"),
    ],
)
def test_a_table_with_a_column_twice_is_refused(builder: StoreBuilder, words: str) -> None:
    with pytest.raises(ConfigError, match=f"{words}: give the key, field or aggregate another name"):
        bind_store(builder, LOGS)


def test_aggregates_whose_columns_clash_are_refused() -> None:
    builder = StreamsBuilder()
    table = builder.stream("events").group_by_key()
    table.aggregate({"a": Mean("amount"), "a_total": Sum("amount")}, store="s")
    with refused("column-named-twice", columns="'a_total'"):
        bind_store(builder.build().stores["s"], LOGS)


def test_an_output_with_a_column_of_rewindow_is_refused() -> None:
    logs = {"in": (log_shape((Column("_Epoch", "string"),), is_scalar=True), LOGS["events"][1])}
    with refused("column-named-twice", table="the table of 'out'", columns="'_Epoch' and '_epoch'"):
        bind_sink(SinkNode("s", ("p",), "out", LogType("in", "key"), LogType("in", "value")), logs)


BARE = log_shape((Column("user", "string"),), is_scalar=True)


@pytest.mark.parametrize(
    ("left", "right", "types"),
    [
        (BARE, BARE, ["string"]),
        (BARE, log_shape((Column("name", "string"),), is_scalar=True), ["string"]),
        (BARE, log_shape((Column("user", "long"),), is_scalar=True), ["json"]),
        (LOGS["events"][1], log_shape(LOGS["events"][1].columns, is_scalar=False), ["string", "double", "json"]),
        (LOGS["events"][1], BARE, ["json"]),
    ],
)
def test_merged_streams_keep_their_common_columns(left: Any, right: Any, types: list[str]) -> None:
    builder = StreamsBuilder()
    builder.stream("left").merge(builder.stream("right")).to("out")
    sink = builder.build().nodes["out-sink"]
    assert isinstance(sink, SinkNode)
    _, value = bind_sink(sink, {"left": (BARE, left), "right": (BARE, right)})
    assert [column.type for column in value.columns] == types
