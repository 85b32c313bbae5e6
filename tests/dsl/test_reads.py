"""What a topology's code reads is checked against the columns before any record is read, without false alarms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rewindow import Processor, Record, StreamsBuilder
from rewindow.dsl.reads import ReadsError
from rewindow.streams.serde.binding import LogShapes, log_shape
from rewindow.streams.serde.schema import Column

ROW = log_shape(
    (Column("amount", "double"), Column("country", "string"), Column("is_test", "boolean")), is_scalar=False
)
LOGS: LogShapes = {
    "orders": (log_shape((Column("user", "string"),), is_scalar=True), ROW),
    "numbers": (
        log_shape((Column("user", "string"),), is_scalar=True),
        log_shape((Column("n", "long"),), is_scalar=True),
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


FUNCTIONS = {
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
    "a declared type": lambda s: s.map_values(lambda _: Money(1), value=Money).map_values(lambda money: money.amont),
    "a key": lambda s: s.filter(lambda key, _row: key.amont > 0),
    "a row as a dict": lambda s: s.map_values(lambda row: row["amont"]),
}


@pytest.mark.parametrize("verb", FUNCTIONS)
def test_a_field_that_no_record_has_is_named_before_the_run(verb: str) -> None:
    builder = StreamsBuilder()
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
