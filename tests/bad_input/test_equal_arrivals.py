"""Records that arrived at once: none is late because of another one, whatever their keys are called (ADR-136)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from tests.bad_input.scene import FEED, Bench, project_of, topology, without_spark
from tests.ingest.local_engine import HOUR, T0

MODULE = topology(
    """
counts = builder.stream("events").group_by_key().windowed_by(TimeWindows.of("1h", grace="0s")).count(store="hours")
counts.suppress(until_window_closes()).to_stream().to("totals")
"""
)
HOURS, KEYS = 12, ("ann", "bob", "cyd", "dan", "eve")


def project(root: Path, arrival: str) -> Bench:
    """Create a project whose feed has one partition."""
    feed = FEED.replace("partitions: 2", "partitions: 1").replace(", arrived_at: got", arrival)
    return project_of(root, feed, MODULE, "totals")


@pytest.mark.parametrize("arrival", ["", ", arrived_at: got"])
def test_records_of_many_keys_that_arrive_at_once_are_all_in_their_windows(tmp_path: Path, arrival: str) -> None:
    bench = project(tmp_path, arrival)
    times = [T0 + number * HOUR // 2 for number in range(HOURS * 2)]
    rows = [{"user": key, "t": time, "got": T0 + HOURS * HOUR, "x": 0} for key in reversed(KEYS) for time in times]
    bench.rows("h0", rows)
    with without_spark():
        bench.done("land activity")
        assert bench.json("run counts --final")["dropped"] == {}
    found = read_rows(table_path(str(bench.warehouse), "shop/totals")).to_pylist()
    counts = Counter((row["user"], row["t"] // HOUR * HOUR) for row in rows)
    assert {(row["user"], row["window_start"]): row["value"] for row in found} == counts


def said(bench: Bench, times: list[int]) -> str:
    """Land records of these times, which arrive one after the other, and return what the run says."""
    bench.rows("h0", [{"user": "ann", "t": T0 + time, "got": T0 + at, "x": 0} for at, time in enumerate(times)])
    with without_spark():
        bench.done("land activity")
        return bench.done("run counts").out


@pytest.mark.parametrize(("late", "is_said"), [(11, True), (2, False)])
def test_a_run_of_which_most_records_are_late_says_where_to_look(tmp_path: Path, late: int, *, is_said: bool) -> None:
    times = [HOURS * HOUR, *(number * HOUR for number in range(late)), *(20 * HOUR for _ in range(12 - late))]
    shown = said(project(tmp_path, ", arrived_at: got"), times)
    assert f"late: {late} window-closed" in shown
    assert ("shows which grace" in shown) == is_said


def test_windows_that_overlap_count_a_late_record_several_times_and_bring_no_such_warning(tmp_path: Path) -> None:
    bench = project(tmp_path, ", arrived_at: got")
    bench.write("bench_job.py", MODULE.replace('of("1h", grace="0s")', 'of("6h", grace="0s").advance_by("1h")'))
    shown = said(bench, [24 * HOUR, 0, HOUR, *(24 * HOUR for _ in range(9))])
    assert "late: 12 window-closed" in shown
    assert "shows which grace" not in shown
