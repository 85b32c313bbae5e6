"""D20 without Spark: hourly calls and one bulk call write the same landings, whenever they are made."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindow.control.ingest.feed_progress import fold_progress
from rewindow.control.ingest.intervals import later_rows
from rewindow.control.ingest.landings import LANDING, fold_feed
from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import HOUR, T0, feed_config, land_locally, landings, log_rows, write_rows
from tests.refusals import refused

HOURS = 5


@st.composite
def growing_sources(draw):
    """Draw the rows that arrive in each hour. Most timestamps are before the arrival, some after it."""
    row = st.fixed_dictionaries(
        {
            "user": st.sampled_from(["ann", "bob", "cid", "dan", None]),
            "t": st.integers(-HOUR, HOUR // 4),
            "got": st.integers(0, HOUR - 1),
            "x": st.integers(0, 3) | st.none(),
        }
    )
    hours = draw(st.lists(st.lists(row, max_size=6), min_size=HOURS, max_size=HOURS))
    return [
        [{**row, "got": T0 + hour * HOUR + row["got"], "t": T0 + hour * HOUR + row["got"] + row["t"]} for row in rows]
        for hour, rows in enumerate(hours)
    ]


feeds = st.builds(
    lambda waiting, lag, end: feed_config(
        max_task_idle=waiting, lag=lag, landing={"every": "1h", **({"watermark": "interval_end"} if end else {})}
    ),
    st.sampled_from([0, "forever", "2h"]),
    st.sampled_from([0, "20m"]),
    st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 4)
@given(growing_sources(), feeds, st.sets(st.integers(1, HOURS - 1)))
def test_any_calls_write_the_same_landings(hours, feed, calls):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        some, bulk = DeltaFeedTables(f"{folder}/some"), DeltaFeedTables(f"{folder}/bulk")
        for hour, rows in enumerate(hours, start=1):
            write_rows(root, f"hour-{hour}", rows)
            if hour in calls or hour == HOURS:
                late = T0 + hour * HOUR + 1234
                land_locally(feed, some, root, late)
                assert land_locally(feed, some, root, late).landings == ()
        land_locally(feed, some, root, T0 + HOURS * HOUR, until_ms=T0 + HOURS * HOUR)
        land_locally(feed, bulk, root, T0 + 1000 * HOUR, until_ms=T0 + HOURS * HOUR)
        assert landings(some) == landings(bulk)
        if landings(bulk):
            assert log_rows(some) == log_rows(bulk)
        check(hours, bulk)


@settings(max_examples=settings().max_examples // 4)
@given(
    st.lists(st.lists(st.integers(-HOUR, 3 * HOUR), max_size=4), min_size=HOURS, max_size=HOURS),
    st.sets(st.integers(1, HOURS + 2)),
    st.booleans(),
)
def test_any_calls_land_each_row_once_from_files_with_rows_of_earlier_and_later_intervals(hours, calls, by_arrow):
    """Each landing reads only the landed files that the ledger names (ADR-122); status knows the same from the ledger."""
    with tempfile.TemporaryDirectory() as folder:
        root, tables, written = Path(folder), DeltaFeedTables(f"{folder}/w"), []
        engine = ArrowLandingEngine(None, None, project_root=folder, most_rows=10**6) if by_arrow else None
        for hour in range(1, HOURS + 5):
            end = T0 + hour * HOUR
            if hour <= HOURS:
                got = [end - HOUR + offset for offset in hours[hour - 1]]
                write_rows(root, f"hour-{hour}", [{"user": "ann", "t": T0, "got": at, "x": hour} for at in got])
                written += got
            if hour not in calls and hour < HOURS + 4:
                continue
            land_locally(feed_config(), tables, root, end, engine=engine)
            rows = log_rows(tables) if landings(tables) else []
            assert sorted(row["arrived_at"] for row in rows) == sorted(at for at in written if at < end)
            ledger = tables.state("activity")
            before = copy.deepcopy([row.body for row in ledger])
            progress = fold_progress(ledger)
            assert [row.body for row in ledger] == before
            if progress.through_ms == end:
                later = later_rows(progress.positions["events"])
                assert min(later.values(), default=None) == min((at for at in written if at >= end), default=None)


def check(hours, tables):
    """Check that exactly the arrived rows were landed, in order, without gaps, and released up to the watermarks."""
    rows = log_rows(tables) if landings(tables) else []
    names = ("user", "x", "arrived_at", "timestamp")
    landed = sorted((tuple(row[name] for name in names) for row in rows), key=repr)
    assert landed == sorted(((r["user"], r["x"], r["got"], r["t"]) for rows in hours for r in rows), key=repr)
    feed = fold_feed((row.kind, row.body) for row in tables.state("activity"))
    for partition in {row["partition"] for row in rows}:
        mine = [row for row in rows if row["partition"] == partition]
        assert [row["offset"] for row in mine] == list(range(len(mine)))
        assert [row["arrived_at"] for row in mine] == sorted(row["arrived_at"] for row in mine)
        for landing in feed.landings:
            landed_range = (
                next(r for tp, r in landing.ranges.items() if tp.partition == partition)
                if any(tp.partition == partition for tp in landing.ranges)
                else None
            )
            if landed_range is None:
                continue
            times = [row["timestamp"] for row in mine[: landed_range.end]]
            assert all(row["landing"] == landing.number for row in mine[landed_range.start : landed_range.end])
            assert landed_range.max_timestamp == max(times)
            above = [at for at, time in enumerate(times) if time > landing.watermark_ms]
            assert landed_range.release == (above[0] if above else len(times))


def test_rows_of_a_landed_interval_go_to_the_next_and_are_counted(tmp_path):
    tables, feed = DeltaFeedTables(f"{tmp_path}/w"), feed_config()
    write_rows(tmp_path, "a", [{"user": "ann", "t": T0, "got": T0 + 1, "x": 1}])
    land_locally(feed, tables, tmp_path, T0 + HOUR)
    write_rows(tmp_path, "b", [{"user": "ann", "t": T0, "got": T0 + 2, "x": 2}])
    assert land_locally(feed, tables, tmp_path, T0 + 2 * HOUR - 1).landings == ()
    report = land_locally(feed, tables, tmp_path, T0 + 2 * HOUR)
    assert (report.landings, report.rows, report.behind) == ((2,), 1, 1)
    assert [(row["landing"], row["x"]) for row in log_rows(tables)] == [(1, 1), (2, 2)]


def test_rows_that_arrive_later_in_a_landed_file_are_still_due(tmp_path):
    tables, feed = DeltaFeedTables(f"{tmp_path}/w"), feed_config()
    rows = [{"user": "ann", "t": T0 + h * HOUR, "got": T0 + h * HOUR, "x": h} for h in range(3)]
    write_rows(tmp_path, "all", rows)
    for hour in range(1, 4):
        report = land_locally(feed, tables, tmp_path, T0 + hour * HOUR)
        assert (report.rows, report.behind) == (1, 0)


def test_an_empty_interval_makes_no_landing_but_one_that_is_declared_complete_does(tmp_path):
    write_rows(tmp_path, "a", [{"user": "ann", "t": T0 + h * HOUR, "got": T0 + h * HOUR, "x": h} for h in (0, 3)])
    unbounded, ends = DeltaFeedTables(f"{tmp_path}/plain"), DeltaFeedTables(f"{tmp_path}/ends")
    assert land_locally(feed_config(), unbounded, tmp_path, T0 + 5 * HOUR).landings == (1, 2)
    feed = feed_config(landing={"every": "1h", "watermark": "interval_end"})
    assert land_locally(feed, ends, tmp_path, T0 + 5 * HOUR).landings == (1, 2, 3)  # no row follows the fourth
    assert land_locally(feed, ends, tmp_path, T0 + 5 * HOUR, until_ms=T0 + 5 * HOUR).landings == (4, 5)
    assert [landing["watermark"] for landing in landings(ends)] == [T0 + h * HOUR for h in range(1, 6)]
    assert land_locally(feed, ends, tmp_path, T0 + 7 * HOUR).landings == ()
    assert land_locally(feed, ends, tmp_path, T0 + 8 * HOUR, until_ms=T0 + 7 * HOUR).landings == (6, 7)


def test_a_quiet_partition_is_left_out_after_a_while_even_in_an_interval_without_rows(tmp_path):
    feed = feed_config(max_task_idle="2h", partitions=16)
    rows = [("ann", 0), ("bob", 0), ("bob", 1), ("bob", 2), ("bob", 5)]
    write_rows(tmp_path, "a", [{"user": u, "t": T0 + h * HOUR, "got": T0 + h * HOUR, "x": 0} for u, h in rows])
    bulk, hourly = DeltaFeedTables(f"{tmp_path}/bulk"), DeltaFeedTables(f"{tmp_path}/hourly")
    land_locally(feed, bulk, tmp_path, T0 + 6 * HOUR)
    for hour in range(1, 7):
        land_locally(feed, hourly, tmp_path, T0 + hour * HOUR)
    assert landings(hourly) == landings(bulk)
    assert log_rows(hourly) == log_rows(bulk)
    assert [landing["watermark"] - T0 for landing in landings(bulk)] == [0, 0, 2 * HOUR, 5 * HOUR]


def test_numbers_that_were_guessed_wrong_are_written_again(tmp_path):
    """One idle partition holds the watermark back. It is given up in an empty interval, which therefore becomes a landing."""
    feed = feed_config(max_task_idle="2h", partitions=16)
    rows = [("ann", 0), ("bob", 1), ("cid", 5)]
    write_rows(tmp_path, "a", [{"user": u, "t": T0 + h * HOUR, "got": T0 + h * HOUR, "x": 0} for u, h in rows])
    tables, writes = DeltaFeedTables(f"{tmp_path}/w"), []
    land_locally(
        feed, tables, tmp_path, T0 + 6 * HOUR, on_step=lambda step: writes.append(step) if "write" in step else None
    )
    assert len(writes) == 2
    staged = [path for path in (tmp_path / "w" / "logs").glob("**/*.parquet") if "_delta_log" not in path.parts]
    assert len(staged) == 3, "the files with wrong numbers are removed"
    assert [row.body["landing"] for row in tables.state("activity") if row.kind == LANDING] == [1, 2, 3, 4]
    assert sorted((row["user"], row["landing"]) for row in log_rows(tables)) == [("ann", 1), ("bob", 2), ("cid", 4)]


def test_without_every_each_call_is_one_landing(tmp_path):
    feed, tables = feed_config(landing={}), DeltaFeedTables(f"{tmp_path}/w")
    write_rows(tmp_path, "a", [{"user": "ann", "t": T0, "got": T0 + 10 * HOUR, "x": 1}])
    assert land_locally(feed, tables, tmp_path, T0).landings == (1,)
    assert land_locally(feed, tables, tmp_path, T0).landings == ()
    write_rows(tmp_path, "b", [{"user": "ann", "t": T0 - 5, "got": T0, "x": 2}])
    assert land_locally(feed, tables, tmp_path, T0).landings == (2,)
    assert [row["x"] for row in log_rows(tables)] == [1, 2]


@pytest.mark.parametrize("every", [None, "1h"])
def test_a_declared_watermark_holds_for_the_last_landing_and_makes_one_of_nothing(tmp_path, every):
    feed, tables = feed_config(landing={"every": every} if every else {}), DeltaFeedTables(f"{tmp_path}/w")
    rows = [{"user": "ann", "t": T0 + h * HOUR, "got": T0 + h * HOUR, "x": h} for h in range(2)]
    write_rows(tmp_path, "a", rows)
    land_locally(feed, tables, tmp_path, T0 + 2 * HOUR, watermark_ms=T0 + HOUR // 2)
    marks = [landing["watermark"] - T0 for landing in landings(tables)]
    assert marks == ([0, HOUR // 2] if every else [HOUR // 2])
    assert landings(tables)[-1]["ranges"][-1][-1] == 1
    report = land_locally(feed, tables, tmp_path, T0 + 3 * HOUR, watermark_ms=T0 + 3 * HOUR)
    assert (len(report.landings), report.rows, report.watermark_ms) == (1, 0, T0 + 3 * HOUR)
    assert landings(tables)[-1]["ranges"][-1][-1] == 2
    assert report.warnings == ()
    report = land_locally(feed, tables, tmp_path, T0 + 3 * HOUR, watermark_ms=T0)
    assert report.landings == ()
    assert [warning.code for warning in report.warnings] == ["declared-watermark-too-low"]


def test_a_declared_watermark_in_the_far_future_is_refused_unless_there_is_no_bound(tmp_path):
    tables = DeltaFeedTables(f"{tmp_path}/w")
    write_rows(tmp_path, "a", [{"user": "ann", "t": T0, "got": T0, "x": 1}])
    with refused("watermark-in-future"):
        land_locally(feed_config(landing={}), tables, tmp_path, T0, watermark_ms=T0 + 25 * HOUR)
    feed = feed_config(landing={"max_ahead": "none"})
    assert land_locally(feed, tables, tmp_path, T0, watermark_ms=T0 + 25 * HOUR).watermark_ms == T0 + 25 * HOUR


def test_an_interval_that_has_not_ended_is_not_landed_whatever_time_is_requested(tmp_path):
    feed = feed_config(landing={"every": "1h", "watermark": "interval_end"})
    tables, now = DeltaFeedTables(f"{tmp_path}/w"), T0 + HOUR + HOUR // 2
    write_rows(tmp_path, "a", [{"user": "ann", "t": T0 + h * HOUR, "got": T0 + h * HOUR, "x": h} for h in range(2)])
    report = land_locally(feed, tables, tmp_path, now, until_ms=T0 + 1000 * HOUR)
    assert (report.rows, report.watermark_ms) == (1, T0 + HOUR)  # otherwise all later rows would be late
    write_rows(tmp_path, "b", [{"user": "ann", "t": now + 1, "got": now + 1, "x": 2}])
    report = land_locally(feed, tables, tmp_path, T0 + 2 * HOUR, until_ms=T0 + 2 * HOUR)
    assert (report.rows, report.behind, report.watermark_ms) == (2, 0, T0 + 2 * HOUR)


def test_a_shorter_lag_holds_from_the_next_call_on_rows_or_not(tmp_path):
    tables = DeltaFeedTables(f"{tmp_path}/w")
    write_rows(tmp_path, "a", [{"user": "ann", "t": T0 + h, "got": T0 + h, "x": h} for h in range(2)])
    assert (
        land_locally(feed_config(lag="10m", landing={}), tables, tmp_path, T0 + HOUR).watermark_ms == T0 + 1 - 600_000
    )
    assert land_locally(feed_config(lag="10m", landing={}), tables, tmp_path, T0 + HOUR).landings == ()
    report = land_locally(feed_config(lag=0, landing={}), tables, tmp_path, T0 + HOUR)
    assert (report.landings, report.rows, report.watermark_ms) == ((2,), 0, T0 + 1)
    assert landings(tables)[-1]["ranges"][-1][-1] == 2
