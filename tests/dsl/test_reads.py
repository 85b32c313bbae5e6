"""What a topology's code reads is checked against the columns before any record is read, without false alarms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from rewindow import (
    Count,
    FixedKeyProcessor,
    KGroupedTable,
    KStream,
    LegacyProcessor,
    Processor,
    Record,
    SessionWindowedKStream,
    SessionWindows,
    StreamsBuilder,
    TimeWindowedKStream,
    TimeWindows,
    Transformer,
    ValueTransformer,
    ValueTransformerWithKey,
)
from rewindow.dsl.type_checks import ReadsError
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import LogShapes, LogType, log_shape

ROW = log_shape(
    (Column("amount", "double"), Column("country", "string"), Column("is_test", "boolean")), is_scalar=False
)
LOGS: LogShapes = {
    "orders": (log_shape((Column("user", "string"),), is_scalar=True), ROW),
    "numbers": (
        log_shape((Column("user", "string"),), is_scalar=True),
        log_shape((Column("n", "long"),), is_scalar=True),
    ),
    "users": (
        log_shape((Column("user", "string"),), is_scalar=True),
        log_shape((Column("name", "string"), Column("age", "long")), is_scalar=False),
    ),
    "unknown": (
        log_shape((Column("user", "string"),), is_scalar=True),
        log_shape((Column("value", "json"),), is_scalar=True),
    ),
}


class Money(NamedTuple):
    cents: int


def check(builder: StreamsBuilder) -> None:
    for _, reads in builder.build().reads:
        reads.check(LOGS)


def rebound(_key: Any, row: Any) -> bool:
    row = {"total": row.amount}
    return bool(row.get("total"))


def asking(_key: Any, row: Any) -> bool:
    return row.total > 0 if hasattr(row, "total") else row.amount > 0


def caught(_key: Any, row: Any) -> bool:
    try:
        return bool(row.total)
    except AttributeError:
        return False


def copied(_key: Any, row: Any) -> bool:
    new = row._replace(amount=1.0)
    return len(row) == row.count(1) or new.amount > row[0]


@pytest.mark.parametrize(
    "predicate", [rebound, asking, caught, copied, lambda key, row: key.upper() < row.country.lower()]
)
def test_code_that_can_work_is_accepted(predicate: Callable[[Any, Any], bool]) -> None:
    builder = StreamsBuilder()
    builder.stream("orders").filter(predicate)
    builder.stream("unknown").filter(lambda _key, row: row.anything["at"].all)
    builder.stream("unknown").where("anything > 5 and other = 'x'")
    check(builder)


class Aliased(Processor):
    def process(self, record: Record) -> None:
        row, key = record.value, record.key
        if key:
            value = record.value
            self.context.forward(record.with_value(value.amont))
        self.context.forward(record.with_value(row))


class AliasedValues(FixedKeyProcessor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(record.value.amont))


class Transformed(ValueTransformerWithKey):
    def transform(self, _key: Any, value: Any) -> Any:  # type: ignore[override]
        return value.amont


class Own:
    """An aggregator, a mapper and a callable of a user."""

    def start(self) -> int:
        return 0

    def add(self, _key: Any, value: Any, state: int) -> int:
        return state + int(value.amont)

    def result(self, state: int) -> int:
        return state

    def state_type(self, _value: Any) -> Any:
        return int

    result_type = state_type

    def of(self, value: Any) -> Any:
        return value.amont

    __call__ = of


def deprecated(verb: Callable[[], Any]) -> None:
    with pytest.warns(DeprecationWarning, match="deprecated"):
        verb()


def legacy() -> Any:
    """Return the classes of ported code, whose definitions warn."""

    class Old(LegacyProcessor):
        def process(self, _key: Any, value: Any) -> None:  # type: ignore[override]
            self.context.forward(value.amont)

    class Transformed(Transformer):
        def transform(self, key: Any, value: Any) -> Any:
            return key, value.amont

    class TransformedValues(ValueTransformer):
        def transform(self, value: Any) -> Any:
            return value.amont

    return SimpleNamespace(Old=Old, Transformed=Transformed, TransformedValues=TransformedValues)


def grouped(stream: KStream) -> KGroupedTable:
    return stream.to_table(store="t").group_by(lambda key, row: (key, row), key=str, value=LogType("orders", "value"))


def windowed(stream: KStream) -> TimeWindowedKStream:
    return stream.group_by_key().windowed_by(TimeWindows.of("1h", grace="0s"))


def sessions(stream: KStream) -> SessionWindowedKStream:
    return stream.group_by_key().windowed_by(SessionWindows.of("5m", grace="0s"))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "filter": lambda s: s.filter(lambda _key, row: row.amont > 0),
    "filter_not": lambda s: s.filter_not(lambda _key, row: row.amont > 0),
    "map_values": lambda s: s.map_values(lambda row: row.amont),
    "map_values with the key": lambda s: s.map_values(lambda _key, row: row.amont, with_key=True),
    "flat_map_values": lambda s: s.flat_map_values(lambda row: [row.amont]),
    "map": lambda s: s.map(lambda key, row: (key, row.amont)),
    "flat_map": lambda s: s.flat_map(lambda key, row: [(key, row.amont)]),
    "select_key": lambda s: s.select_key(lambda _key, row: row.amont),
    "group_by": lambda s: s.group_by(lambda _key, row: row.amont),
    "peek": lambda s: s.peek(lambda _key, row: print(row.amont)),
    "foreach": lambda s: s.foreach(lambda _key, row: print(row.amont), name="f"),
    "branch": lambda s: s.split().branch(lambda _key, row: row.amont > 0),
    "process": lambda s: s.process(Aliased, name="p"),
    "aggregate": lambda s: s.group_by_key().aggregate(lambda: 0, lambda _key, row, total: total + row.amont, store="s"),
    "map_values of a table": lambda s: s.to_table(store="t").map_values(lambda row: row.amont),
    "filter of a table": lambda s: s.to_table(store="t").filter(lambda _key, row: row.amont > 0),
    "join": lambda s: s.join(s.to_table(store="t"), lambda left, right: left.amount + right.amont),
    "reduce": lambda s: s.group_by_key().reduce(lambda total, row: row if row.amont else total, store="s"),
    "reduce of windows": lambda s: windowed(s).reduce(lambda total, row: total.amont and row, store="s"),
    "reduce of sessions": lambda s: sessions(s).reduce(lambda total, row: row if row.amont else total, store="s"),
    "aggregate of windows": lambda s: windowed(s).aggregate(int, lambda _key, row, n: n + row.amont, store="s"),
    "aggregate of sessions": lambda s: sessions(s).aggregate(
        int, lambda _key, row, n: n + row.amont, lambda _key, one, later: one + later, store="s"
    ),
    "the aggregate": lambda s: s.group_by_key().aggregate(
        lambda: Money(0), lambda _key, _row, money: Money(money.amont), store="s", value=Money
    ),
    "merger": lambda s: sessions(s).aggregate(
        lambda: Money(0), lambda _key, _row, one: one, lambda _key, one, _: Money(one.amont), store="s", value=Money
    ),
    "cogroup": lambda s: s.group_by_key().cogroup(lambda _key, row, n: n + row.amont).aggregate(int, store="s"),
    "merger of a cogroup": lambda s: (
        s.group_by_key()
        .cogroup(lambda _key, _row, one: one)
        .windowed_by(SessionWindows.of("5m", grace="0s"))
        .aggregate(lambda: Money(0), lambda _key, one, _: Money(one.amont), store="s", value=Money)
    ),
    "own aggregator": lambda s: s.group_by_key().aggregate(Own(), store="s"),
    "one of several aggregators": lambda s: s.group_by_key().aggregate({"n": Count(), "own": Own()}, store="s"),
    "group_by of a table": lambda s: s.to_table(store="t").group_by(lambda key, row: (key, row.amont)),
    "adder": lambda s: grouped(s).aggregate(
        int, lambda _key, row, n: n + row.amont, lambda _key, _row, n: n, store="s"
    ),
    "subtractor": lambda s: grouped(s).aggregate(
        int, lambda _key, _row, n: n, lambda _key, row, n: n - row.amont, store="s"
    ),
    "reduce of a grouped table": lambda s: grouped(s).reduce(
        lambda one, _row: one, lambda one, row: row if row.amont else one, store="s"
    ),
    "partitioner": lambda s: s.repartition(name="r", partitioner=lambda _topic, _key, row, n: row.amont % n),
    "to": lambda s: s.to(lambda _key, row: row.amont, outputs=["a"]),
    "process_values": lambda s: s.process_values(AliasedValues, name="p"),
    "transform_values of a table": lambda s: s.to_table(store="t").transform_values(Transformed, name="p"),
    "transform": lambda s: deprecated(lambda: s.transform(legacy().Transformed, name="p")),
    "transform_values": lambda s: deprecated(lambda: s.transform_values(legacy().TransformedValues, name="p")),
    "an old processor": lambda s: deprecated(lambda: s.process(legacy().Old, name="p")),
    "a comprehension": lambda s: s.flat_map(lambda key, row: [(key, row.amont + n) for n in range(3)]),
    "inside a comprehension": lambda s: s.flat_map_values(lambda row: [row.amont + n for n in range(3)]),
    "an inner function": lambda s: s.map_values(lambda row: sorted([1], key=lambda n: n + row.amont)),
    "a bound method": lambda s: s.map_values(Own().of),
    "a partial": lambda s: s.map_values(partial(Own.of, Own())),
    "a callable object": lambda s: s.map_values(Own()),
    "a declared type": lambda s: s.map_values(lambda _: Money(1), value=Money).map_values(lambda money: money.amont),
    "a key": lambda s: s.filter(lambda key, _row: key.amont > 0),
    "a row as a dict": lambda s: s.map_values(lambda row: row["amont"]),
}
JOINS: dict[str, Callable[[StreamsBuilder], Any]] = {
    "the key selector of a global table": lambda b: b.stream("orders").join(
        b.global_table("users", store="u"), lambda _key, row: row.amont, lambda left, _right: left
    ),
    "join of a global table": lambda b: b.stream("orders").left_join(
        b.global_table("users", store="u"), lambda key, _row: key, lambda left, right: (left.amount, right.amont)
    ),
    "join of tables": lambda b: b.table("orders", store="t").join(
        b.table("users", store="u"), lambda left, right: (left.amont, right.name)
    ),
    "outer join of tables": lambda b: b.table("orders", store="t").outer_join(
        b.table("users", store="u"), lambda _left, right: right.amont
    ),
    "foreign key": lambda b: b.table("orders", store="t").join(
        b.table("users", store="u"), lambda left, _right: left, foreign_key=lambda _key, row: row.amont, store="j"
    ),
    "join by foreign key": lambda b: b.table("orders", store="t").left_join(
        b.table("users", store="u"), lambda _left, right: right.amont, foreign_key=lambda key, _row: key, store="j"
    ),
}


@pytest.mark.parametrize("verb", [*FUNCTIONS, *JOINS])
def test_a_field_that_no_record_has_is_named_before_the_run(verb: str) -> None:
    builder = StreamsBuilder()
    if verb in JOINS:
        JOINS[verb](builder)
    else:
        FUNCTIONS[verb](builder.stream("orders"))
    with pytest.raises(ReadsError) as error:
        check(builder)
    assert error.value.code in ("unknown-attribute", "row-is-no-dict", "value-is-no-row")
    assert error.value.line is not None
    file, _, line = error.value.line.rpartition(":")
    assert file == __file__
    assert "amont" in Path(file).read_text(encoding="utf-8").splitlines()[int(line) - 1]


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("amont > 0", "unknown-field"),
        ("timestamp > '2026-11-01'", "unequal-types"),
        ("is_test = 'true'", "unequal-types"),
        ("country", "unequal-types"),
    ],
)
def test_a_condition_that_no_record_can_meet_is_named_before_the_run(condition: str, code: str) -> None:
    builder = StreamsBuilder()
    builder.stream("orders").where(condition)
    with pytest.raises(ReadsError) as error:
        check(builder)
    assert error.value.code == code


def test_a_field_that_a_select_dropped_is_named() -> None:
    builder = StreamsBuilder()
    builder.stream("orders").select("amount as a").where("amount > 0")
    with pytest.raises(ReadsError):
        check(builder)


def test_a_bare_value_has_no_fields() -> None:
    builder = StreamsBuilder()
    builder.stream("numbers").filter(lambda _key, value: value.n > 0)
    with pytest.raises(ReadsError):
        check(builder)


def test_keys_of_other_types_do_not_join() -> None:
    builder = StreamsBuilder()
    amounts = builder.stream("orders").select_key(lambda _key, row: row.amount, key=float).repartition(name="amounts")
    table = builder.stream("numbers").to_table(store="t")
    amounts.join(table, lambda left, right: left.amount + right)
    with pytest.raises(ReadsError) as error:
        check(builder)
    assert error.value.code == "unequal-keys"


def test_a_condition_by_itself_may_be_a_truth() -> None:
    builder = StreamsBuilder()
    builder.stream("orders").where("is_test").where("not is_test and amount >= 1 and is_test = 1")
    check(builder)
