"""If nothing is due, `land` says what is waiting and when its interval is complete."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

from rewindow.app.cli.printing import Printer
from rewindow.config.feed import feed_spec
from rewindow.control.health.waiting_sources import next_complete
from rewindow.control.ingest.land import land
from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine
from rewindow.errors import StorageError
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.bad_input.scene import make_template, without_spark
from tests.ingest.land_by_arrow import Unused
from tests.ingest.local_engine import HOUR, LocalEngine, feed_config, land_locally, one_log, write_rows
from tests.refusals import Refusal, containing, refused

DAY = 24 * HOUR
TODAY = round(datetime(2026, 11, 22, tzinfo=UTC).timestamp() * 1000)
NOON = TODAY + 12 * HOUR
DAILY = feed_config(landing={"every": "1d"})


def write(tmp_path, name, start, count=10):
    rows = [{"user": "ann", "t": start + n, "got": start + n, "x": n} for n in range(count)]
    write_rows(tmp_path, name, rows)


@pytest.fixture
def tables(tmp_path):
    return DeltaFeedTables(f"{tmp_path}/w")


def test_rows_of_today_are_counted_and_the_end_of_the_day_is_named(tmp_path, tables, capsys):
    write(tmp_path, "d1", TODAY)
    report = land_locally(DAILY, tables, tmp_path, NOON)
    until = "the day 2026-11-22 is complete at 2026-11-23 00:00 UTC"
    Refusal("interval-not-complete", {"what": "10 rows are", "until": until}).check(report.waiting)
    Printer().landed("activity", report)
    assert capsys.readouterr().out == f"Feed activity: {report.waiting}.\n"
    assert land_locally(DAILY, tables, tmp_path, TODAY + DAY).rows == 10


@pytest.mark.parametrize("later", [0, DAY])
def test_new_files_of_today_are_counted_without_reading_them(tmp_path, tables, later):
    write(tmp_path, "d0", TODAY - DAY)
    land_locally(DAILY, tables, tmp_path, NOON)
    write(tmp_path, "d1", TODAY + later)
    report = land_locally(DAILY, tables, tmp_path, NOON + later)
    assert report.landings == ()
    until = containing(f"is complete at 2026-11-2{3 if later == 0 else 4} 00:00 UTC")
    Refusal("interval-not-complete", {"what": "1 file is", "until": until}).check(report.waiting)


def test_nothing_waits_where_nothing_is_new(tmp_path, tables, capsys):
    write(tmp_path, "d0", TODAY - DAY)
    land_locally(DAILY, tables, tmp_path, NOON)
    report = land_locally(DAILY, tables, tmp_path, NOON)
    Printer().landed("activity", report)
    assert capsys.readouterr().out == "Feed activity: nothing new to land.\n"


def test_a_call_until_a_landed_interval_says_that_new_files_wait(tmp_path, tables):
    write(tmp_path, "d0", TODAY - DAY)
    land_locally(DAILY, tables, tmp_path, TODAY)
    write(tmp_path, "d1", TODAY)
    report = land_locally(DAILY, tables, tmp_path, TODAY + DAY, until_ms=TODAY)
    assert report.landings == ()
    Refusal("intervals-landed", {"until": "2026-11-22 00:00 UTC", "files": "1 new file waits"}).check(report.waiting)
    assert land_locally(DAILY, tables, tmp_path, TODAY + DAY).rows == 10


@pytest.mark.parametrize(("landed", "said"), [(1, "1 new file waits"), (2, "10 rows wait")])
def test_a_call_until_an_interval_before_all_new_rows_says_that_they_wait(tmp_path, tables, landed, said):
    write(tmp_path, "d0", TODAY - (landed + 1) * DAY)
    land_locally(DAILY, tables, tmp_path, TODAY - landed * DAY)
    write(tmp_path, "d1", TODAY)
    report = land_locally(DAILY, tables, tmp_path, TODAY + DAY, until_ms=TODAY)
    assert report.landings == ()
    Refusal("nothing-arrived-in-time", {"until": "2026-11-22 00:00 UTC", "what": said}).check(report.waiting)


def test_a_repeated_call_until_a_landed_interval_refuses_a_landed_file_that_has_changed(tmp_path, tables):
    write(tmp_path, "d0", TODAY - DAY, count=5)
    land_locally(DAILY, tables, tmp_path, TODAY)
    assert land_locally(DAILY, tables, tmp_path, TODAY + DAY, until_ms=TODAY).waiting is None
    write(tmp_path, "d0", TODAY - DAY, count=10)
    for asked in ({"until_ms": TODAY}, {}):
        with refused("landed-file-changed", file="d0.parquet", what="has changed"):
            land_locally(DAILY, tables, tmp_path, TODAY + DAY, **asked)


def test_a_file_with_rows_of_a_later_interval_must_not_change_even_with_its_size_and_time_kept(tmp_path, tables):
    file = tmp_path / "raw" / "d0.csv"
    file.parent.mkdir()
    file.write_text("user,t,got\nann,1,2026-11-21T10:00:00Z\nbob,2,2026-11-22T10:00:00Z\n")
    daily = one_log(
        every="1d", source={"path": "raw", "format": "csv", "options": {"inferSchema": "true"}}, arrived_at="got"
    )
    engine = ArrowLandingEngine(Unused, Unused(), project_root=str(tmp_path), most_rows=10**9)
    assert land(daily, tables, engine, now_ms=TODAY).rows == 1
    facts = file.stat()
    file.write_text(file.read_text().replace("11-21", "11-22"))
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    with refused("landed-file-changed", file="d0.csv", what="has changed"):
        land(daily, tables, engine, now_ms=TODAY + DAY)


def test_a_new_file_that_is_not_complete_yet_does_not_fail_a_repeated_call(tmp_path, tables):
    class Incomplete(LocalEngine):
        def look(self, spec, position):
            raise StorageError("made-up", "d1.gz cannot be decompressed. Wait for it.")

    write(tmp_path, "d0", TODAY - DAY)
    land_locally(DAILY, tables, tmp_path, TODAY)
    engine = Incomplete(tmp_path)
    report = land_locally(DAILY, tables, tmp_path, TODAY + DAY, engine=engine, until_ms=TODAY)
    reason = "d1.gz cannot be decompressed. Wait for it"
    Refusal("later-landing-refused", {"until": "2026-11-22 00:00 UTC", "reason": reason}).check(report.waiting)
    with pytest.raises(StorageError, match=r"d1\.gz cannot be decompressed"):
        land_locally(DAILY, tables, tmp_path, TODAY + DAY, engine=engine)


@pytest.mark.parametrize(
    ("every", "zone", "said"),
    [
        ("1h", "UTC", "the interval from 2026-11-22 12:00 is complete at 13:00 UTC"),
        ("1d", "Europe/Berlin", "the day 2026-11-22 is complete at 2026-11-23 00:00 Europe/Berlin"),
        ("1w", "UTC", "the week from 2026-11-16 is complete at 2026-11-23 00:00 UTC"),
        ("1mo", "UTC", "the month 2026-11 is complete at 2026-12-01 00:00 UTC"),
        ("1y", "UTC", "the year 2026 is complete at 2027-01-01 00:00 UTC"),
    ],
)
def test_each_interval_has_its_name(every, zone, said):
    feed = feed_spec(feed_config(landing={"every": every}, zone=zone), project_root="/", warehouse="/w")
    assert next_complete(feed, NOON, NOON) == said


def test_a_first_landing_without_any_arrival_is_an_error(tmp_path, tables):
    write_rows(tmp_path, "a", [{"user": "ann", "t": TODAY, "got": None, "x": 1}])
    with refused(
        "log-without-valid-arrival",
        topic="events",
        reason="it has no arrived_at",
        fix=containing("Fix `arrived_at: got`"),
    ):
        land_locally(DAILY, tables, tmp_path, NOON)


def test_run_says_when_a_feed_that_was_never_landed_lands(tmp_path):
    with without_spark():
        bench = make_template(tmp_path / "project")
        bench.edit("conf/feeds/activity.yaml", "partitions: 2", "partitions: 2\nlanding: {every: 1d}")
        bench.edit("conf/feeds/activity.yaml", "feed: activity", "feed: other")
        (bench.root / "conf/feeds/activity.yaml").rename(bench.root / "conf/feeds/other.yaml")
        bench.edit("conf/jobs/counts.yaml", "feed: activity", "feed: other")
        refusal = bench.refuses("run counts", "feed-never-landed", feed="other")
    assert f"{datetime.now(UTC).date()} 00:00 UTC" in refusal.message
    assert "waiting" not in refusal.message
