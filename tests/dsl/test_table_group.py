"""Grouped tables: examples K02, K03, K10, K12 (D13), K13 and S13 (D13) of the semantics reference."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from rewindow import (
    Count,
    KGroupedTable,
    KTable,
    Mean,
    Min,
    StreamsBuilder,
    Sum,
    until_time_limit,
    versioned_store,
)
from rewindow.streams.metrics import LATE_RECORD_DROP, SKIPPED_RECORDS
from rewindow.testing import TopologyTestDriver
from tests.dsl.test_tables import Steps, both_modes, driver_of, dropped, play
from tests.refusals import containing, refused


def by_value(table: KTable) -> KGroupedTable:
    return table.group_by(lambda _key, value: (value, value))


def trace(grouped: KGroupedTable) -> KTable:
    return grouped.aggregate(
        lambda: "", lambda _k, v, state: f"{state}+{v}", lambda _k, v, state: f"{state}-{v}", store="traces", value=str
    )


@both_modes
def test_k02_a_row_that_moves_between_groups_makes_two_results(cut: bool) -> None:  # noqa: FBT001 - pytest gives it
    driver = driver_of(lambda b: by_value(b.table("t", store="t")).count(store="n"))
    steps: Steps = [
        ("k1", "g1", 10, ["g1=1@10"]),
        ("k2", "g1", 5, ["g1=2@10"]),
        ("k1", "g2", 7, ["g1=1@10", "g2=1@7"]),
        ("k2", None, 8, ["g1=0@10"]),
        ("k1", "g2", 9, ["g2=1@9"]),
        ("k9", None, 9, []),
    ]
    play(driver, steps, cut=cut)


@both_modes
def test_k03_an_update_within_a_group_makes_one_result(cut: bool) -> None:  # noqa: FBT001
    driver = driver_of(lambda b: trace(b.table("t", store="t").group_by(lambda _k, v: (v[0], v))))
    steps: Steps = [
        ("k", "a1", 10, ["a=+a1@10"]),
        ("k", "a2", 20, ["a=+a1-a1+a2@20"]),
        ("k", "b1", 15, ["a=+a1-a1+a2-a2@20", "b=+b1@15"]),
        ("k", None, 5, ["b=+b1-b1@15"]),
    ]
    play(driver, steps, cut=cut)


@both_modes
def test_k10_late_updates_of_a_versioned_table_do_not_reach_a_group(cut: bool) -> None:  # noqa: FBT001
    driver = driver_of(lambda b: by_value(b.table("t", store=versioned_store("t", history="1h"))).count(store="n"))
    steps: Steps = [
        ("k", "g1", 10, ["g1=1@10"]),
        ("k", "g2", 5, []),
        ("k", "g3", 11, ["g1=0@11", "g3=1@11"]),
    ]
    play(driver, steps, cut=cut)
    assert dropped(driver, LATE_RECORD_DROP) == {"not-latest": 1}


@both_modes
def test_k12_the_first_update_subtracts_nothing(cut: bool) -> None:  # noqa: FBT001
    """Kafka's first old value is the initializer, so a count of counts stays at 1 (D13)."""

    def make(builder: StreamsBuilder) -> KTable:
        counts = builder.stream("t").group_by_key().count(store="counts")
        return counts.group_by(lambda _key, count: ("all", count)).count(store="n")

    steps: Steps = [
        ("a", "x", 1, ["all=1@1"]),
        ("b", "x", 2, ["all=2@2"]),
        ("a", "x", 3, ["all=2@3"]),
        ("c", "x", 4, ["all=3@4"]),
    ]
    play(driver_of(make), steps, cut=cut)


@both_modes
def test_k13_a_row_without_a_group_or_a_value_is_skipped(cut: bool) -> None:  # noqa: FBT001
    driver = driver_of(lambda b: trace(b.table("t", store="t").group_by(lambda _k, v: v)))
    steps: Steps = [
        ("k", (None, 1), 1, []),
        ("k", ("g", 1), 2, ["g=+1@2"]),
        ("k", ("g", None), 3, ["g=+1-1@3"]),
        ("k", (None, 1), 4, []),
    ]
    play(driver, steps, cut=cut)
    assert dropped(driver, SKIPPED_RECORDS) == {}


@both_modes
def test_s13_below_a_suppress_only_sent_values_are_subtracted(cut: bool) -> None:  # noqa: FBT001
    """Kafka subtracts v2, which was never added (D13)."""

    def make(builder: StreamsBuilder) -> KTable:
        held = builder.table("t", store="t").suppress(until_time_limit("2ms"), name="held")
        return trace(held.group_by(lambda _key, value: ("all", value)))

    steps: Steps = [
        ("A", "v1", 0, []),
        ("B", "x", 2, ["all=+v1@2"]),
        ("A", "v2", 3, []),
        ("A", "v3", 4, ["all=+v1+x@4"]),
        ("C", "y", 10, ["all=+v1+x-v1+v3@10"]),
    ]
    driver = driver_of(make)
    for key, value, at, _ in steps:
        driver.pipe("t", key, value, at)
        if cut:
            driver.cut()
    assert driver.read("out")[-1].value in ("+v1+x-v1+v3+y", "+v1+x-v1+v3")


class Order(NamedTuple):
    """A row."""

    user: str
    price: Decimal


@both_modes
@pytest.mark.parametrize(
    ("aggregate", "results"),
    [
        (Count(), [1, 2, 2, 1, 0]),
        (Sum("price"), [Decimal("1.50"), 4, Decimal("3.25"), Decimal("0.75"), 0]),
        (Mean("price"), [1.5, 2.0, 1.625, 0.75, None]),
        (
            {"n": Count(), "total": Sum("price")},
            [(1, Decimal("1.50")), (2, 4), (2, Decimal("3.25")), (1, Decimal("0.75")), (0, 0)],
        ),
    ],
)
def test_built_in_aggregates_subtract_what_they_added(aggregate: Any, results: list[Any], cut: bool) -> None:  # noqa: FBT001
    builder = StreamsBuilder()
    orders = builder.table("t", store="t")
    grouped = orders.group_by(lambda _key, order: (order[0], Order(*order)), key=str, value=Order)
    grouped.aggregate(aggregate, store="s").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    given = [("1", "1.5"), ("2", "2.5"), ("1", "0.75"), ("2", None), ("1", None)]
    for (key, price), result in zip(given, results, strict=True):
        driver.pipe("t", key, price and ("u", Decimal(price)), 1)
        (record,) = driver.read("out")
        assert record.value == result
        if cut:
            driver.cut()


@pytest.mark.parametrize("aggregate", [Min(), {"n": Count(), "least": Min()}, 3])
def test_an_aggregate_that_cannot_subtract_is_rejected(aggregate: Any) -> None:
    grouped = by_value(StreamsBuilder().table("t", store="t"))
    with refused("aggregate-cannot-subtract"):
        grouped.aggregate(aggregate, store="s")


def test_a_mapper_must_return_a_group_and_a_value() -> None:
    wrong: Callable[[Any, Any], Any] = lambda _key, value: value  # noqa: E731
    driver = driver_of(lambda b: b.table("t", store="t").group_by(wrong).count(store="n"))
    with refused("node-failed", error=containing("must return")):
        driver.pipe("t", "k", "abc", 1)
