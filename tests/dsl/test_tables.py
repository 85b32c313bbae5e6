"""Tables: sources, filters and mappings, by examples K01, K06 and K09 of the semantics reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rewindow import KTable, StreamsBuilder, key_value_store, versioned_store, window_store
from rewindow.streams.metrics import EXPIRED_WINDOW_DROP, SKIPPED_RECORDS
from rewindow.testing import TopologyTestDriver
from tests.refusals import refused

Steps = list[tuple[str, Any, int, list[str]]]
"""Key, value, timestamp, what is sent."""


def driver_of(make: Callable[[StreamsBuilder], KTable]) -> TopologyTestDriver:
    builder = StreamsBuilder()
    make(builder).to_stream().to("out")
    return TopologyTestDriver(builder.build())


def play(driver: TopologyTestDriver, steps: Steps, *, cut: bool, topic: str = "t") -> None:
    for key, value, at, expected in steps:
        driver.pipe(topic, key, value, at)
        sent = [f"{record.key}={record.value}@{record.timestamp}" for record in driver.read("out")]
        assert sent == expected, (key, value, at)
        if cut:
            driver.cut()


def dropped(driver: TopologyTestDriver, name: str) -> dict[str, int]:
    rows = [row for row in driver.metrics if row["name"] == name]
    return {
        reason: sum(row["total"] for row in rows if row["reason"] == reason) for reason in {r["reason"] for r in rows}
    }


both_modes = pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])


@both_modes
def test_k01_a_table_follows_the_order_of_offsets(cut: bool) -> None:  # noqa: FBT001 - pytest gives it
    driver = driver_of(lambda builder: builder.table("t", store="t"))
    steps: Steps = [
        ("a", 1, 10, ["a=1@10"]),
        ("b", 2, 5, ["b=2@5"]),
        ("a", 3, 3, ["a=3@3"]),
        ("z", None, 4, ["z=None@4"]),
        ("a", None, 1, ["a=None@1"]),
        (None, 1, 1, []),  # type: ignore[list-item] # a null key
    ]
    play(driver, steps, cut=cut)
    assert dropped(driver, SKIPPED_RECORDS) == {"null-key": 1}


@both_modes
@pytest.mark.parametrize("store", [None, "kept"])
def test_k06_a_filter_sends_a_tombstone_only_for_a_row_it_sent(store: str | None, cut: bool) -> None:  # noqa: FBT001
    driver = driver_of(lambda b: b.table("t", store="t").filter(lambda _k, v: v.startswith("y"), store=store))
    steps: Steps = [
        ("a", "n1", 1, []),
        ("a", "y1", 2, ["a=y1@2"]),
        ("a", "n2", 3, ["a=None@3"]),
        ("a", "n3", 4, []),
        ("a", None, 5, []),
    ]
    play(driver, steps, cut=cut)


@both_modes
def test_filter_not_and_a_mapping_to_none(cut: bool) -> None:  # noqa: FBT001
    driver = driver_of(
        lambda b: (
            b.table("t", store="t")
            .filter_not(lambda _k, v: v > 8)
            .map_values(lambda k, v: f"{k}{v}" if v else None, with_key=True, store="mapped")
        )
    )
    steps: Steps = [("a", 9, 1, []), ("a", 5, 2, ["a=a5@2"]), ("a", 0, 3, ["a=None@3"]), ("a", 9, 4, ["a=None@4"])]
    play(driver, steps, cut=cut)
    assert driver.store("mapped") == {}


@both_modes
def test_a_stream_becomes_a_table_in_the_partition_of_its_new_key(cut: bool) -> None:  # noqa: FBT001
    builder = StreamsBuilder()
    by_value = builder.stream("in").select_key(lambda _key, value: value and value[0])
    by_value.to_table(store="latest").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    steps: Steps = [("1", "ab", 5, ["a=ab@5"]), ("2", "ac", 3, ["a=ac@3"]), ("3", None, 4, [])]
    play(driver, steps, cut=cut, topic="in")
    assert driver.store("latest") == {"a": ("ac", 3)}
    assert dropped(driver, SKIPPED_RECORDS) == {"null-key": 1}


@both_modes
def test_k09_a_versioned_table_sends_late_updates_and_drops_those_older_than_its_history(cut: bool) -> None:  # noqa: FBT001
    driver = driver_of(lambda b: b.table("t", store=versioned_store("t", history="100ms")))
    steps: Steps = [
        ("k", "a", 10, ["k=a@10"]),
        ("k", "b", 5, ["k=b@5"]),
        ("z", "x", 110, ["z=x@110"]),
        ("k", "c", 10, ["k=c@10"]),
        ("k", "d", 9, []),
    ]
    play(driver, steps, cut=cut)
    assert dropped(driver, EXPIRED_WINDOW_DROP) == {"history-expired": 1}


@both_modes
def test_a_filter_of_a_versioned_table_repeats_its_tombstones(cut: bool) -> None:  # noqa: FBT001
    driver = driver_of(lambda b: b.table("t", store=versioned_store("t", history="100ms")).filter(lambda _k, v: v > 5))
    play(driver, [("a", 1, 1, ["a=None@1"]), ("a", 9, 2, ["a=9@2"]), ("a", 2, 1, ["a=None@1"])], cut=cut)


def test_a_table_rejects_a_store_of_another_kind() -> None:
    StreamsBuilder().table("t", store=key_value_store("t", key=str))
    with refused("store-kind-wrong", kind="window", needed="key-value"):
        StreamsBuilder().table("t", store=window_store("t", size="1ms", retention="1ms"))
