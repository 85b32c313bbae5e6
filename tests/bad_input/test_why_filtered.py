"""`rewindow why --missing` of a windowed key whose records are filtered first: only those that reach the windows make them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bad_input.newcomer import daily_project
from tests.bad_input.scene import CSV_FEED, Bench, project_of, topology, without_spark
from tests.ingest.local_engine import HOUR, T0
from tests.refusals import containing, told

FEED = CSV_FEED.replace("orders", "readings").replace("t TIMESTAMP", "t TIMESTAMP, kwh DOUBLE").replace("[t]", "[kwh]")
MODULE = topology(
    """
readings = builder.stream("readings")
readings.group_by_key().count(store="all").to_stream().to("all")
high = readings.where("kwh > 1.0").group_by_key()
kinds = {
    "sessions": SessionWindows.of("20m", grace="3h"),
    "sliding": SlidingWindows.of("20m", grace="3h"),
    "tumbling": TimeWindows.of("6h", grace="3h"),
}
for name, windows in kinds.items():
    high.windowed_by(windows).count(store=name).suppress(until_window_closes()).to_stream().to(name)
"""
)
DAY = "2026-03-04"
LOW = [f"{minutes // 60:02}:{minutes % 60:02}" for minutes in range(75, 361, 15)]
"""The times of the readings of the meter m1 that the job filters."""
HIGH = "06:15"
"""The time of its only other reading."""


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    root, feed = tmp_path_factory.mktemp("filtered") / "project", f"{FEED}landing: {{every: 1d}}\n"
    bench = project_of(root, feed, MODULE, "sessions", "sliding", "tumbling", "all")
    rows = [*((f"m1,{DAY}T{time}:00Z,0.2") for time in LOW), f"m1,{DAY}T{HIGH}:00Z,1.5"]
    rows += [f"m2,{DAY}T06:00:00Z,1.5", f"m2,{DAY}T06:15:00Z,0.2", f"m3,{DAY}T06:15:00Z,0.2"]
    bench.write("data/one.csv", "user,t,kwh\n" + "".join(f"{row}\n" for row in rows))
    with without_spark():
        bench.done("land readings", "run counts")
        yield bench


def facts_of(grid: Bench, *words: str) -> dict[str, Any]:
    return grid.said(f"why {' '.join(words)} --missing")


def test_a_session_begins_with_the_first_record_that_reaches_the_windows(grid: Bench) -> None:
    for more in ((), ("--window", f"{DAY}T{HIGH}")):
        facts = facts_of(grid, "shop.sessions", "m1", *more)
        assert (facts["why"], len(facts["records"])) == ("open", 1)
        told([facts["headline"]], "window-still-open", which=f"the window from {DAY} 06:15:00Z is open")


def test_a_sliding_window_needs_a_record_that_reaches_the_windows(grid: Bench) -> None:
    facts = facts_of(grid, "shop.sliding", "m1")
    assert [(one["start_ms"], one["records"]) for one in facts["open_windows"]] == [(facts["window_start_ms"], 1)]
    told([facts["headline"]], "window-still-open", which=containing(f"{DAY} 05:55:00Z"))


def test_a_time_between_the_records_that_reach_the_windows_is_in_no_session(grid: Bench) -> None:
    facts = facts_of(grid, "shop.sessions", "m1", "--window", f"{DAY}T03:10")
    assert facts["why"] == "let_go"
    told(facts["reasons"], "key-sessions", named=f"{DAY} 06:15:00Z to {DAY} 06:15:00Z")
    told(facts["reasons"], "records-let-go", records="20 records")
    assert (len(facts["records"]), facts["window_start_ms"]) == (20, None)


def test_the_session_of_records_that_may_be_filtered_is_named_as_such(grid: Bench) -> None:
    facts = facts_of(grid, "shop.sessions", "m1", "--window", f"{DAY}T00:10")
    assert facts["why"] == "never_landed"
    told(facts["reasons"], "key-sessions", making=containing("if the job leaves none out"))


def test_the_filtered_records_of_a_window_are_counted_apart(grid: Bench) -> None:
    facts = facts_of(grid, "shop.tumbling", "m2")
    assert (facts["why"], len(facts["records"]), facts["open_windows"][0]["records"]) == ("open", 2, 1)
    told(facts["reasons"], "records-let-go", records=containing("1 of the 2 records"))


def test_records_that_reach_only_the_store_of_another_output_were_let_go(grid: Bench) -> None:
    for table in ("sessions", "sliding", "tumbling"):
        assert facts_of(grid, f"shop.{table}", "m3")["why"] == "let_go"


def test_if_no_record_reached_the_windows_the_newest_is_shown(tmp_path: Path) -> None:
    with without_spark():
        bench = daily_project(tmp_path / "project")
        bench.edit("shop_job.py", "x > 0", "x > 1000")
        rows = [{"user": "ann", "t": (at := T0 + day * 24 * HOUR), "got": at + 1, "x": day} for day in range(3)]
        bench.rows("first", rows)
        bench.done("land orders", "run daily_orders")
        facts = facts_of(bench, "daily_orders", "ann")
    assert (facts["why"], facts["open_windows"]) == ("let_go", [])
    assert [one["offset"] for one in facts["records"]] == [2]
    assert facts["window_start_ms"] <= rows[2]["t"] < facts["window_start_ms"] + 24 * HOUR
