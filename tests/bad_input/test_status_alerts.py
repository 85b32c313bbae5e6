"""`rewindow status` compares a job with the bounds in its file and with its schedule."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import pytest

from tests.bad_input.scene import FEED, HOURLY, JOB, Bench, goes_on, hour
from tests.bad_input.statuses import alerts, only, status
from tests.ingest.local_engine import HOUR, T0


@pytest.mark.parametrize(
    ("bound", "about", "command", "says"),
    [
        ("freshness: 2h", "freshness", "run", "at most 2h are allowed"),
        ("waiting: 0", "waiting", "run", "1 landing not taken, at most 0 may wait"),
        ("waiting: 1", None, "", ""),
        ("files: 1000, size: 1GiB, restore: 100, late: 1%", None, "", ""),
    ],
)
def test_a_bound_that_is_exceeded_is_an_alert(
    bench: Bench, bound: str, about: str | None, command: str, says: str
) -> None:
    assert bench.run("land", "activity").code == 0
    alerts(bench, bound)
    job = status(bench, code=1 if about else 0)[1]["counts"]
    if about is None:
        assert job["findings"] == []
        return
    finding = only(job)
    assert (finding["level"], finding["about"], finding["command"]) == ("alert", about, f"rewindow {command} counts")
    assert says in finding["message"]


@pytest.mark.parametrize(
    ("bound", "says", "advice"),
    [
        ("files: 1", "after 2 runs, at most 1 are allowed", "2 of the journal, and `gc` would forget none of them now"),
        (
            "restore: 1",
            "the changelogs of 2 runs, at most 1 are allowed",
            "after 30 runs, and no command writes one earlier",
        ),
    ],
)
def test_gc_is_not_advised_where_it_would_change_nothing(bench: Bench, bound: str, says: str, advice: str) -> None:
    alerts(bench, bound)
    finding = only(status(bench, code=1)[1]["counts"])
    assert (finding["about"], finding["command"]) == (bound.partition(":")[0], None)
    assert says in finding["message"]
    assert advice in finding["advice"]
    assert "`rewindow gc" not in bench.run("status").out


def test_gc_is_advised_if_a_snapshot_is_due(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    alerts(bench, "restore: 1")
    monkeypatch.setattr("rewindow.app.status.overview.EVERY", 2)
    assert only(status(bench, code=1)[1]["counts"])["command"] == "rewindow gc counts"


def test_few_changed_rows_make_a_snapshot_late(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    alerts(bench, "restore: 1")
    monkeypatch.setattr("rewindow.app.status.overview.EVERY", 0)
    monkeypatch.setattr("rewindow.app.status.overview.is_due", lambda *_of: False)
    assert "They changed so few rows" in only(status(bench, code=1)[1]["counts"])["advice"]


def test_gc_is_advised_if_it_would_forget_state(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (("backfill", "counts", "--from", "1", "--branch", "fix"), ("branch", "drop", "counts", "fix")):
        assert bench.run(*words).code == 0
    alerts(bench, "files: 1")
    assert only(status(bench, code=1)[1]["counts"])["command"] is None
    later = time.time() + 31 * 24 * HOUR / 1000
    monkeypatch.setattr("rewindow.app.listing.time", SimpleNamespace(time=lambda: later))
    assert only(status(bench, code=1)[1]["counts"])["command"] == "rewindow gc counts"


def test_shares_of_dropped_records_are_those_of_the_last_runs(bench: Bench) -> None:
    alerts(bench, "late: 10%, quarantined: 5%, runs: 1")
    status(bench)
    late = [{**row, "got": T0 + 3 * HOUR, "t": T0} for row in hour(0, 6)]
    bench.rows("h3", [*hour(3), *late])
    goes_on(bench)
    job = status(bench, code=1)[1]["counts"]
    finding = only(job)
    assert (finding["about"], finding["command"]) == ("late", "rewindow report counts")
    assert (job["records"], job["late"]) == (30, 6)
    assert "6 late records of 30 in the last run, 20.0 %, at most 10 % are allowed" in finding["message"]
    bench.rows("h4", hour(4))
    goes_on(bench)
    status(bench)


REGROUPED = """\
from rewindow import StreamsBuilder, TimeWindows, until_window_closes


def build():
    builder = StreamsBuilder()
    regrouped = builder.stream("events").group_by(lambda key, row: row.x % 2)
    counts = regrouped.windowed_by(TimeWindows.of("30m", grace="5m")).count(store="regrouped")
    counts.suppress(until_window_closes()).to_stream().to("regrouped")
    return builder.build()
"""


def test_records_that_cross_a_repartition_count_once(bench: Bench) -> None:
    bench.write("regrouped.py", REGROUPED)
    bench.write(
        "conf/jobs/regrouped.yaml",
        "job: regrouped\ntopology: regrouped:build\nfeed: activity\nalerts: {late: 20%, runs: 1}\n"
        "outputs: {regrouped: {table: alerts.regrouped, expect: [{late: 20%, on_fail: warn}]}}\n",
    )
    assert bench.run("run", "regrouped", "--land").code == 0
    late = [{**row, "got": T0 + 3 * HOUR, "t": T0} for row in hour(0, 6)]
    bench.rows("h3", [*hour(3), *late])
    ran = bench.run("run", "regrouped", "--land")
    assert "33.3333% of 18 records were late (6)" in ran.out, ran
    job = status(bench, code=1)[1]["regrouped"]
    assert (job["records"], job["late"]) == (18, 6)
    shown = json.loads(bench.run("show", "regrouped", "--json").out)
    assert [run["records"] for run in shown["runs"]] == [36, 18]


KEPT = """\
from rewindow import Processor, StreamsBuilder, window_store


class Keep(Processor):
    def __init__(self, names):
        self.names = names

    def process(self, record):
        for name in self.names:
            self.context.store(name).put(record.key, record.value, record.timestamp)
        self.context.forward(record)


def kept(stream, **retentions):
    stores = [window_store(name, size="1m", retention=one, key=str, value=int) for name, one in retentions.items()]
    return stream.process(lambda: Keep([*retentions]), name="-".join(retentions), stores=stores, key=str, value=int)


def build():
    builder = StreamsBuilder()
    first = kept(builder.stream("events").map_values(lambda row: row.x, name="xs"), long="30m", short="5m")
    moved = first.select_key(lambda key, x: key[::-1], key=str).repartition(name="moved")
    kept(moved, other="30m").to("kept")
    return builder.build()
"""


def test_expired_records_are_those_of_the_store_that_drops_most(bench: Bench) -> None:
    bench.write("rides_job.py", KEPT)
    bench.write(
        "conf/jobs/kept.yaml",
        "job: kept\ntopology: rides_job:build\nfeed: activity\nalerts: {expired: 10%, runs: 1}\n"
        "outputs: {kept: {table: alerts.kept}}\n",
    )
    assert bench.run("run", "kept", "--land").code == 0
    late = [{**row, "got": T0 + 3 * HOUR, "t": T0 + (3 * 60 - 5 - 10 * n) * 60_000} for n, row in enumerate(hour(0, 6))]
    bench.rows("h3", [*hour(3), *late])
    assert bench.run("run", "kept", "--land").code == 0
    drops = json.loads(bench.run("report", "kept", "--run", "main/2", "--json").out)["drops"]
    by_store = {one["where"]: one["records"] for one in drops if one["kind"] == "expired"}
    assert by_store.keys() == {"long", "short", "other"}
    assert by_store["short"] > by_store["long"]
    job = status(bench, code=1)[1]["kept"]
    assert (job["records"], job["expired"]) == (18, by_store["short"])
    assert only(job)["about"] == "expired"


def test_landings_that_quarantine_too_much_are_an_alert_of_the_job(bench: Bench) -> None:
    alerts(bench, "quarantined: 5%")
    far = [{**row, "t": row["t"] + 90 * 24 * HOUR} for row in hour(3, 4)]
    bench.rows("h3", [*hour(3), *far])
    goes_on(bench)
    feeds, jobs = status(bench, code=1)
    assert only(jobs["counts"])["about"] == "quarantined"
    assert (jobs["counts"]["quarantined"], feeds["activity"]["quarantined"]) == (4, 4)


def test_a_landing_that_is_in_quarantine_as_a_whole_is_a_note_until_the_next_one(bench: Bench) -> None:
    goes_on(bench)
    bench.rows("h3", [{**row, "t": row["t"] + 90 * 24 * HOUR} for row in hour(3, 4)])
    assert bench.run("land", "activity").code == 0
    finding = only(status(bench)[0]["activity"])
    assert (finding["level"], finding["about"]) == ("note", "quarantined")
    assert finding["message"] == "all 4 records of the log events in the last landing were quarantined"
    assert finding["command"] == "rewindow head rewindow.quarantine --of activity"
    assert bench.run(*finding["command"].split()[1:]).out.startswith("rewindow.quarantine: 4 rows")
    assert "all is well, with 1 note." in bench.run("status").out
    far = {**hour(4, 1)[0], "t": hour(4, 1)[0]["t"] + 90 * 24 * HOUR}
    bench.rows("h4", [*hour(4, 4), far])
    assert bench.run("land", "activity").code == 0
    assert status(bench)[0]["activity"]["findings"] == []


def test_a_job_without_runs_is_not_fresh(bench: Bench) -> None:
    bench.write("conf/feeds/other.yaml", FEED.replace("feed: activity", "feed: other"))
    sums = JOB.replace("job: counts", "job: sums").replace("alerts.totals", "sums.totals").replace("activity", "other")
    bench.write("conf/jobs/sums.yaml", sums)
    assert status(bench)[1]["sums"]["status"] == "never_run"
    bench.write("conf/jobs/sums.yaml", f"{sums}alerts: {{freshness: 1h, waiting: 0}}\n")
    finding = only(status(bench, code=1)[1]["sums"])
    assert "complete through no time yet" in finding["message"]


def test_a_scheduled_run_that_did_not_happen_is_an_alert(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bench.run("land", "activity").code == 0
    now = time.time()
    bench.edit(
        "conf/jobs/counts.yaml", "on_code_change: accept\n", 'on_code_change: accept\nschedule: "*/10 * * * *"\n'
    )
    status(bench)
    monkeypatch.setattr("rewindow.app.listing.time.time", lambda: now + 1_300)
    finding = only(status(bench, code=1)[1]["counts"])
    assert (finding["level"], finding["about"], finding["command"]) == ("alert", "schedule", "rewindow run counts")
    assert "landing 3 of 20" in finding["message"]
    assert "*/10 * * * *" in finding["message"]


def test_an_interval_that_was_not_landed_in_time_is_an_alert(bench: Bench) -> None:
    bench.write("conf/feeds/hourly.yaml", HOURLY)
    assert bench.run("land", "hourly").code == 0
    status(bench)
    bench.rows("h3", hour(3))
    finding = only(status(bench, code=1)[0]["hourly"])
    assert (finding["level"], finding["about"], finding["command"]) == ("alert", "interval", "rewindow land hourly")
    assert "every: 1h" in finding["message"]
    assert bench.run("land", "hourly").code == 0
    status(bench)


def test_a_landed_file_with_rows_of_later_intervals_is_an_alert_only_when_such_an_interval_is_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("conf/feeds/hourly.yaml", HOURLY)
    tomorrow = round(time.time() * 1000) + 24 * HOUR
    bench.rows("h3", [*hour(3), {"user": "ann", "t": T0, "got": tomorrow, "x": 1}])
    assert bench.run("land", "hourly").code == 0
    hourly = status(bench)[0]["hourly"]
    assert (hourly["level"], hourly["status"], hourly["due"]) == ("note", "fresh", False)
    assert only(hourly)["about"] == "future"
    assert "rows of landed files are waiting: the interval from" in bench.run("land", "hourly").out
    in_two_days = time.time() + 48 * HOUR / 1000
    monkeypatch.setattr("rewindow.app.listing.time", SimpleNamespace(time=lambda: in_two_days))
    finding = only(status(bench, code=1)[0]["hourly"])
    assert (finding["about"], finding["message"].endswith("rows that arrived since then wait")) == ("interval", True)
