"""What a topology's code reads is checked against the columns before any record is read, without false alarms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from rewindow import Processor, Record, StreamsBuilder
from rewindow.errors import ConfigError
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


@pytest.mark.parametrize(
    ("add", "says"),
    [
        pytest.param(lambda s: s.filter(lambda _key, row: row.amont > 0), "did you mean 'amount'?", id="filter"),
        pytest.param(lambda s: s.filter_not(lambda _key, row: row.amont > 0), "'amont'", id="filter_not"),
        pytest.param(lambda s: s.map_values(lambda row: row.amont), "'amont'", id="map_values"),
        pytest.param(lambda s: s.map_values(lambda _k, row: row.amont, with_key=True), "'amont'", id="with key"),
        pytest.param(lambda s: s.flat_map_values(lambda row: [row.amont]), "'amont'", id="flat_map_values"),
        pytest.param(lambda s: s.map(lambda key, row: (key, row.amont)), "'amont'", id="map"),
        pytest.param(lambda s: s.flat_map(lambda key, row: [(key, row.amont)]), "'amont'", id="flat_map"),
        pytest.param(lambda s: s.select_key(lambda _key, row: row.amont), "'amont'", id="select_key"),
        pytest.param(lambda s: s.group_by(lambda _key, row: row.amont), "'amont'", id="group_by"),
        pytest.param(lambda s: s.peek(lambda _key, row: print(row.amont)), "'amont'", id="peek"),
        pytest.param(lambda s: s.foreach(lambda _key, row: print(row.amont), name="f"), "'amont'", id="foreach"),
        pytest.param(lambda s: s.split().branch(lambda _key, row: row.amont > 0), "'amont'", id="branch"),
        pytest.param(lambda s: s.process(Aliased, name="p"), "'amont'", id="processor"),
        pytest.param(
            lambda s: s.group_by_key().aggregate(lambda: 0, lambda _k, row, sum_: sum_ + row.amont, store="s"),
            "'amont'",
            id="agg",
        ),
        pytest.param(
            lambda s: s.to_table(store="t").map_values(lambda row: row.amont), "'amont'", id="table map_values"
        ),
        pytest.param(
            lambda s: s.to_table(store="t").filter(lambda _k, row: row.amont > 0), "'amont'", id="table filter"
        ),
        pytest.param(
            lambda s: s.join(s.to_table(store="t"), lambda left, right: left.amount + right.amont), "'amont'", id="join"
        ),
        pytest.param(lambda s: s.where("amont > 0"), "did you mean 'amount'?", id="where"),
        pytest.param(lambda s: s.where("timestamp > '2026-11-01'"), "epoch milliseconds", id="a time as text"),
        pytest.param(
            lambda s: s.where("is_test = 'true'"), "is_test is true or false and 'true' is text", id="a truth as text"
        ),
        pytest.param(
            lambda s: s.map_values(lambda row: Money(1), value=Money).map_values(lambda m: m.cent),
            "'cents'",
            id="declared type",
        ),
        pytest.param(
            lambda s: s.select("amount as a").where("amount > 0"), "no field 'amount'", id="where after select"
        ),
    ],
)
def test_a_field_that_no_record_has_is_named_before_the_run(add: Callable[[Any], Any], says: str) -> None:
    builder = StreamsBuilder()
    add(builder.stream("orders"))
    with pytest.raises(ConfigError, match=r"test_reads\.py:\d+|where") as caught_error:
        check(builder)
    assert says in str(caught_error.value)


def test_a_bare_value_has_no_fields() -> None:
    builder = StreamsBuilder()
    builder.stream("numbers").filter(lambda _key, value: value.n > 0)
    with pytest.raises(ConfigError, match="the value is a whole number, not a row, so it has no field 'n'"):
        check(builder)


def test_a_condition_by_itself_may_be_a_truth() -> None:
    builder = StreamsBuilder()
    builder.stream("orders").where("is_test").where("not is_test and amount >= 1 and is_test = 1")
    check(builder)
