"""A report says why a window is open: what the clock of its partition waits for, and what would advance it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.bad_input.scene import FEED, JOB, SCORE, TARGET, Bench, goes_on, hour, without_spark
from tests.ingest.local_engine import HOUR
from tests.refusals import containing, told
from tests.report.synthetic import prolong

OTHERS = "  others: {source: {path: others, format: parquet}, key: user, timestamp: t, arrived_at: got}\n"
WATERMARK = "semantics: {stream_time_from: watermark}\n"


def started(root: Path, semantics: str = "", landing: str = "", module: str = "") -> Bench:
    """Return a project of two partitions with a run of an hour. `bob` and `cyd` are alone in theirs from then on."""
    bench = Bench(root)
    bench.write("conf/feeds/activity.yaml", f"{FEED}{landing}")
    bench.write("conf/jobs/counts.yaml", f"{JOB}{semantics}")
    bench.write("conf/targets/local.yaml", TARGET)
    bench.code(SCORE)
    if module:
        bench.write("bench_job.py", module)
    bench.rows("h0", hour(0))
    goes_on(bench)
    return bench


def only_partition_1_goes_on(bench: Bench) -> dict[str, Any]:
    """Land and replay an hour without records of `bob`, who is alone in partition 0; return the report."""
    bench.rows("h1", [row for row in hour(1) if row["user"] != "bob"])
    goes_on(bench)
    found: dict[str, Any] = json.loads(bench.run("report", "counts", "--json").out)
    return found


def test_a_window_of_a_partition_without_new_records_says_what_would_close_it(tmp_path: Path) -> None:
    with without_spark():
        found = only_partition_1_goes_on(started(tmp_path))
    first = found["open_windows"]["shown"][0]
    assert first["partitions"] == [0]
    assert first["clock_ms"] < first["closes_at_ms"]
    assert (first["cause"], WATERMARK.strip() in first["why"]) == ("partition", True)


def test_with_the_watermark_as_clock_that_window_is_closed(tmp_path: Path) -> None:
    with without_spark():
        found = only_partition_1_goes_on(started(tmp_path, WATERMARK))
    assert all(one["partitions"] == [1] for one in found["open_windows"]["shown"])


def test_records_that_the_watermark_holds_back_name_the_partition_that_it_waits_for(tmp_path: Path) -> None:
    with without_spark():
        found = only_partition_1_goes_on(started(tmp_path, WATERMARK, "max_task_idle: 1d\n"))
    assert found["progress"]["slowest"] == ["events-0"]
    assert sum(one["records"] for one in found["progress"]["held"]) == 1 + 8  # the last one of the first hour too
    assert any("waits for events-0" in one["text"] for one in found["verdict"])
    first = found["open_windows"]["shown"][0]
    assert (first["cause"], "waits for events-0" in first["why"]) == ("watermark", True)


def test_the_newest_record_is_the_newest_that_was_landed_also_if_it_waits_to_be_replayed(tmp_path: Path) -> None:
    with without_spark():
        bench = started(tmp_path)
        bench.rows("h1", [{**row, "t": row["t"] + 60_000, "got": row["got"] + 60_000} for row in hour(0)[-3:]])
        assert bench.run("land", "activity").code == 0
        found = json.loads(bench.run("report", "counts", "--json").out)
    for window in found["open_windows"]["shown"]:
        assert (window["cause"], "2023-11-14 22:56:00Z" in window["why"]) == ("no_later_record", True)


def test_a_watermark_that_waits_for_no_partition_names_none(tmp_path: Path) -> None:
    with without_spark():
        found = only_partition_1_goes_on(started(tmp_path, WATERMARK, "max_task_idle: 0\nlag: 30m\n"))
    assert found["progress"]["slowest"] == []
    assert "verdict-records-held" in [one["code"] for one in found["verdict"]]
    assert {one["cause"] for one in found["open_windows"]["shown"]} == {"lag"}


def test_a_window_that_no_record_has_passed_may_wait_for_a_silent_partition_too(tmp_path: Path) -> None:
    with without_spark():
        bench = started(tmp_path, WATERMARK, "max_task_idle: forever\n")
        bench.rows("h1", [{**row, "t": row["t"] + 8 * 60_000} for row in hour(0)[-3:] if row["user"] != "bob"])
        goes_on(bench)
        found = json.loads(bench.run("report", "counts", "--json").out)
    first = found["open_windows"]["shown"][0]
    assert (first["cause"], "2023-11-14 23:03:00Z" in first["why"]) == ("watermark", True)
    assert "waits for events-0" in first["why"]


def test_held_records_of_a_key_name_the_partition_that_the_watermark_waits_for(tmp_path: Path) -> None:
    with without_spark():
        bench = started(tmp_path, WATERMARK, "max_task_idle: forever\n")
        only_partition_1_goes_on(bench)
        reasons = bench.why("counts ann --window 2023-11-14T23:45")
    reason = told(reasons, "watermark-holds-back", reason=containing("waits for events-0"))
    assert "`max_task_idle: 2h`" in reason


def test_nothing_waits_for_a_log_that_a_generation_has_removed(tmp_path: Path) -> None:
    landing = "max_task_idle: forever\n"
    with without_spark():
        bench = started(tmp_path, WATERMARK, landing)
        bench.write("conf/feeds/activity.yaml", f"{FEED}{OTHERS}{landing}")
        (tmp_path / "others").mkdir()
        pq.write_table(pa.Table.from_pylist(hour(0, 2)), tmp_path / "others/h0.parquet")
        assert bench.run("land", "activity", "--new-generation", "--keep", "1").code == 0
        bench.write("conf/feeds/activity.yaml", f"{FEED}{landing}")
        bench.rows("h1", [row for row in hour(1) if row["user"] != "bob"])
        assert bench.run("land", "activity", "--new-generation", "--keep", "2").code == 0
        assert bench.run("run", "counts").code == 0
        found = json.loads(bench.run("report", "counts", "--json").out)
    assert found["progress"]["slowest"] == ["events-0"]
    assert all("others" not in one["why"] for one in found["open_windows"]["shown"])
    assert any("waits for events-0" in one["why"] for one in found["open_windows"]["shown"])
    assert all("others" not in one["text"] for one in found["verdict"])


def test_records_of_a_log_that_the_job_does_not_read_reach_no_window(tmp_path: Path) -> None:
    with without_spark():
        bench = started(tmp_path)
        bench.write("conf/feeds/activity.yaml", f"{FEED}{OTHERS}")
        (tmp_path / "others").mkdir()
        pq.write_table(pa.Table.from_pylist(hour(5)), tmp_path / "others/h5.parquet")
        assert bench.run("land", "activity", "--new-generation", "--keep", "1").code == 0
        before = json.loads(bench.run("report", "counts", "--json").out)
        assert bench.run("run", "counts").code == 0
        after = json.loads(bench.run("report", "counts", "--json").out)
    assert before["progress"]["waiting_records"] == 0
    for found in (before, after):
        assert all("that reach" not in one["why"] for one in found["open_windows"]["shown"])
        first = found["open_windows"]["shown"][0]
        assert (first["cause"], "2023-11-14 22:50:00Z" in first["why"]) == ("partition", True)
        assert "verdict-results-wait" in [one["code"] for one in found["verdict"]]


def test_a_window_that_no_record_has_passed(tmp_path: Path) -> None:
    with without_spark():
        found = json.loads(started(tmp_path).run("report", "counts", "--json").out)
    assert found["open_windows"]["shown"][-1]["cause"] == "no_later_record"


JOINS = """\
from rewindow import JoinWindows, StreamsBuilder, versioned_store


def either(one, other):
    return one or other


def build_topology():
    builder = StreamsBuilder()
    events = builder.stream("events")
    few = events.where("x > 10")
    windows = JoinWindows.of("1h", grace="10m").before("20m")
    JOIN.to("totals")
    return builder.build()
"""
TABLE = 'few.to_table(store=versioned_store("known", history="1d"))'


@pytest.mark.parametrize(
    ("join", "waits_ms", "waits_for"),
    [
        ('events.left_join(few, either, windows, name="both")', 70 * 60_000 + 1, "a partner"),
        ('few.outer_join(events, either, windows, name="both")', 30 * 60_000 + 1, "a partner"),
        (f'events.left_join({TABLE}, either, name="both", grace="2h")', 2 * HOUR, "the grace"),
    ],
)
def test_records_that_wait_in_a_join_are_results_of_a_final_run(
    tmp_path: Path, join: str, waits_ms: int, waits_for: str
) -> None:
    with without_spark():
        bench = started(tmp_path, module=JOINS.replace("JOIN", join))
        page = bench.root / "report-counts.html"
        found = json.loads(bench.run("report", "counts", "--out", str(page), "--json").out)["open_windows"]
        final = json.loads(bench.run("run", "counts", "--final", "--json").out)["summary"]["rows"]
    assert (found["results"], found["windows"], len(found["shown"])) == (sum(final.values()), 0, 1)
    first = found["shown"][0]
    assert first["closes_at_ms"] in {row["t"] + waits_ms for row in hour(0)}
    assert first["closes_at_ms"] > first["clock_ms"]
    assert (first["waits_for"], first["window"], first["keys"]) == (waits_for, None, found["results"])
    assert "The clock of both in partition" in first["why"]
    text = page.read_text(encoding="utf-8")
    assert f"{found['results']} results are not final" in text
    assert f"records that wait for {waits_for}, the last until" in text
    assert "No result waits" not in text


@pytest.mark.slow
def test_of_many_runs_the_tasks_of_the_last_ones_are_read_and_the_page_says_so(tmp_path: Path) -> None:
    with without_spark():
        bench = started(tmp_path)
        bench.rows("h1", hour(1))
        goes_on(bench)
        prolong(bench.warehouse, "activity", "counts", 600, journals=410)
        out = tmp_path / "r.html"
        found = json.loads(bench.run("report", "counts", "--json", "--out", str(out)).out)
    assert (found["progress"]["runs"], found["detailed_runs"]) == (600, 400)
    assert found["progress"]["records"] == 600 * 12
    assert [run["dropped"] is None for run in found["runs"]] == [True] * 200 + [False] * 400
    text = out.read_text(encoding="utf-8")
    assert "Drops and lateness are those of the last 400 of 600 runs" in text
    assert "Store closed was not read" in text  # its changelog lacks the made-up runs
    assert len(text) < 200_000
