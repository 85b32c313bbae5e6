"""Windowed and unwindowed aggregates: examples W01 to W08, W25 and W27 of the semantics reference."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import Count, KTable, Max, Mean, Min, StreamsBuilder, Sum, TimeWindows, Windowed
from rewindow.errors import ConfigError
from rewindow.streams.metrics import LATE_RECORD_DROP, SKIPPED_RECORDS
from rewindow.streams.record import row_class
from rewindow.testing import TopologyTestDriver
from tests.refusals import refused

VALUE = row_class(("amount", "city"))


def hopping(size: int, advance: int | None = None, grace: int = 0) -> TimeWindows:
    windows = TimeWindows.of(f"{size}ms", grace=f"{grace}ms")
    return windows.advance_by(f"{advance}ms") if advance else windows


def texts(windows: TimeWindows | None) -> TopologyTestDriver:
    """Concatenate values as text, with or without windows. The value ``del`` deletes the state."""
    builder = StreamsBuilder()
    grouped: Any = builder.stream("in").group_by_key()
    grouped = grouped.windowed_by(windows) if windows else grouped
    table: KTable = grouped.aggregate(
        lambda: "", lambda _key, value, text: None if value == "del" else f"{text}{value}", store="texts"
    )
    table.to_stream().to("out")
    return TopologyTestDriver(builder.build())


def told(driver: TopologyTestDriver) -> list[str]:
    """Return results as ``a[0,10)=12@9``."""
    return [f"{shown(record.key)}={record.value}@{record.timestamp}" for record in driver.read("out")]


def shown(key: Any) -> str:
    return f"{key.key}[{key.window.start_ms},{key.window.end_ms})" if isinstance(key, Windowed) else str(key)


def counted(driver: TopologyTestDriver, name: str) -> int:
    return sum(row["total"] for row in driver.metrics if row["name"] == name)


def play(driver: TopologyTestDriver, steps: list[tuple[str | None, Any, int, list[str]]], *, cut: bool) -> None:
    for key, value, timestamp, expected in steps:
        driver.pipe("in", key, value, timestamp)
        assert told(driver) == expected, (key, value, timestamp)
        if cut:
            driver.cut()


EXAMPLES = {
    "W01": (
        hopping(10),
        [
            ("a", 1, 9, ["a[0,10)=1@9"]),
            ("b", 1, 10, ["b[10,20)=1@10"]),
            ("a", 2, 9, []),
            ("a", 3, 10, ["a[10,20)=3@10"]),
            ("a", 4, 19, ["a[10,20)=34@19"]),
            ("a", 5, 12, ["a[10,20)=345@19"]),
        ],
        1,
    ),
    "W02": (
        hopping(10, 5),
        [
            ("a", 1, 12, ["a[5,15)=1@12", "a[10,20)=1@12"]),
            ("a", 2, 3, []),
            ("a", 3, 15, ["a[10,20)=13@15", "a[15,25)=3@15"]),
            ("a", 4, 12, ["a[10,20)=134@15"]),
        ],
        2,
    ),
    "W03": (
        hopping(10, 4),
        [
            ("a", 1, 11, ["a[4,14)=1@11", "a[8,18)=1@11"]),
            ("a", 2, 12, ["a[4,14)=12@12", "a[8,18)=12@12", "a[12,22)=2@12"]),
        ],
        0,
    ),
    "W04": (
        hopping(10, 5, 5),
        [
            ("a", 1, 3, ["a[0,10)=1@3"]),
            ("a", 2, 0, ["a[0,10)=12@3"]),
            ("a", 3, 14, ["a[5,15)=3@14", "a[10,20)=3@14"]),
            ("a", 4, 4, ["a[0,10)=124@4"]),
            ("a", 5, 15, ["a[10,20)=35@15", "a[15,25)=5@15"]),
            ("a", 6, 9, ["a[5,15)=36@14"]),
        ],
        1,
    ),
    "W05": (
        hopping(10, grace=5),
        [
            ("a", 1, 9, ["a[0,10)=1@9"]),
            ("b", 1, 14, ["b[10,20)=1@14"]),
            ("a", 2, 9, ["a[0,10)=12@9"]),
            ("b", 2, 15, ["b[10,20)=12@15"]),
            ("a", 3, 9, []),
        ],
        1,
    ),
    "W06": (None, [("a", 1, 5, ["a=1@5"]), ("a", 2, 3, ["a=12@5"]), ("a", 3, 7, ["a=123@7"])], 0),
    "W08": (hopping(10), [("a", 1, 3, ["a[0,10)=1@3"]), (None, 1, 50, []), ("a", 2, 4, ["a[0,10)=12@4"])], 0),
    "W25": (None, [("a", 1, 3, ["a=1@3"]), ("a", "del", 4, ["a=None@4"]), ("a", 2, 2, ["a=2@2"])], 0),
}


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize(("windows", "steps", "late"), EXAMPLES.values(), ids=list(EXAMPLES))
def test_example(windows: TimeWindows | None, steps: list[Any], late: int, *, cut: bool) -> None:
    driver = texts(windows)
    play(driver, steps, cut=cut)
    assert counted(driver, LATE_RECORD_DROP) == late


def test_w07_a_windowed_count_counts_null_values_and_an_unwindowed_count_skips_them() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(hopping(10)).count(store="windowed").to_stream().to("out")
    grouped.count(store="unwindowed").to_stream().to("unwindowed")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "a", None, 3)
    driver.pipe("in", None, 1, 4)
    assert told(driver) == ["a[0,10)=1@3"]
    assert driver.read("unwindowed") == []
    reasons = {(row["node"], row["reason"]): row["total"] for row in driver.metrics if row["name"] == SKIPPED_RECORDS}
    assert reasons == {("windowed", "null-key"): 1, ("unwindowed", "null-key"): 1, ("unwindowed", "null-value"): 1}


def test_w27_filtered_records_do_not_advance_the_clock() -> None:
    builder = StreamsBuilder()
    kept = builder.stream("in").filter(lambda _key, value: value != "skip")
    kept.group_by_key().windowed_by(hopping(10)).count(store="counts").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    for value, timestamp in (("x", 3), ("skip", 50), ("x", 4)):
        driver.pipe("in", "a", value, timestamp)
    assert told(driver) == ["a[0,10)=1@3", "a[0,10)=2@4"]


def test_built_in_aggregates_skip_nulls() -> None:
    builder = StreamsBuilder()
    named = {"n": Count(), "sum": Sum("amount"), "min": Min("amount"), "max": Max("amount"), "mean": Mean("amount")}
    builder.stream("in").group_by_key().aggregate(named, store="sums").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    results = []
    for amount in (None, 4, None, 1):
        driver.pipe("in", "a", VALUE(amount, "X"), 1)
        (record,) = driver.read("out")
        results.append(tuple(record.value))
        driver.cut()
    assert results == [(1, None, None, None, None), (2, 4, 4, 4, 4.0), (3, 4, 4, 4, 4.0), (4, 5, 1, 4, 2.5)]
    assert record.value._fields == ("n", "sum", "min", "max", "mean")


def test_a_reduce_starts_with_the_first_value() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().reduce(lambda one, other: one * 10 + other, store="digits").to_stream().to(
        "out"
    )
    driver = TopologyTestDriver(builder.build())
    for value in (1, 2, 3):
        driver.pipe("in", "a", value, value)
    assert told(driver) == ["a=1@1", "a=12@2", "a=123@3"]


@pytest.mark.parametrize(
    ("size", "advance", "grace"),
    [("0s", None, "0s"), ("-1s", None, "0s"), ("1s", None, "-1ms"), ("1s", "0s", "0s"), ("1s", "2s", "0s")],
)
def test_invalid_windows_are_rejected(size: str, advance: str | None, grace: str) -> None:
    with pytest.raises(
        ConfigError, match=r"window must be at least|grace must be 0 or more|advance must be more than 0"
    ):
        TimeWindows.of(size, grace=grace).advance_by(advance or "1s")


def test_an_invalid_aggregate_is_rejected() -> None:
    grouped = StreamsBuilder().stream("in").group_by_key()
    with refused("aggregate-not-understood"):
        grouped.aggregate(3, store="s")  # type: ignore[arg-type]
    with refused("aggregate-name-invalid"):
        grouped.aggregate({"a b": Count()}, store="s")
    with refused("aggregates-missing"):
        grouped.aggregate({}, store="s")
