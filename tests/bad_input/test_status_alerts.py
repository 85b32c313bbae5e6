"""`rewindow status` compares a job with the bounds in its file and with its schedule."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from rewindow.control.health.findings import Level
from tests.bad_input.scene import FEED, HOURLY, JOB, TARGET, Bench, copy_of, goes_on, hour, topology
from tests.bad_input.statuses import alerts, finding_of, only, status
from tests.ingest.local_engine import HOUR, T0
from tests.ingest.test_delta_sources import stamp
from tests.refusals import told


@pytest.fixture(scope="module")
def waiting_template(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A project with a landing that no run has taken."""
    bench = copy_of(template, tmp_path_factory.mktemp("waiting") / "project")
    bench.done("land activity")
    return bench


@pytest.fixture
def waiting(waiting_template: Bench, tmp_path: Path) -> Bench:
    return copy_of(waiting_template, tmp_path / "waiting")


@pytest.mark.parametrize(
    ("bound", "code", "facts"),
    [
        ("freshness: 2h", "results-too-old", {"bound": "2h", "cause": ""}),
        ("waiting: 0", "too-many-landings-wait", {"what": "1 landing not taken", "bound": 0}),
    ],
)
def test_a_bound_that_is_exceeded_is_an_alert(waiting: Bench, bound: str, code: str, facts: dict[str, object]) -> None:
    alerts(waiting, bound)
    finding = finding_of(waiting)
    assert (finding.level, finding.command) == (Level.ALERT, "rewindow run counts")
    told([finding.message], code, **facts)


def test_bounds_that_are_kept_are_no_findings(waiting: Bench) -> None:
    alerts(waiting, "waiting: 1, files: 1000, size: 1GiB, restore: 100, late: 1%")
    assert waiting.findings() == []


@pytest.mark.parametrize(("bound", "code"), [("files: 1", "too-many-files"), ("restore: 1", "restore-too-long")])
def test_gc_is_not_advised_where_it_would_change_nothing(bench: Bench, bound: str, code: str) -> None:
    alerts(bench, bound)
    finding = finding_of(bench)
    assert (finding.message.code, finding.message.facts["bound"], finding.command) == (code, "1", None)
    assert finding.advice is not None


def test_gc_is_advised_if_a_snapshot_is_due(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    alerts(bench, "restore: 1")
    monkeypatch.setattr("rewindow.app.alert_bounds.EVERY", 2)
    assert finding_of(bench).command == "rewindow gc counts"
    monkeypatch.setattr("rewindow.app.alert_bounds.EVERY", 0)
    monkeypatch.setattr("rewindow.app.alert_bounds.is_due", lambda *_of: False)
    assert "so few rows" in str(finding_of(bench).advice)


def test_gc_is_advised_if_it_would_forget_state(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.done("backfill counts --from 1 --branch fix", "branch drop counts fix")
    alerts(bench, "files: 1")
    assert finding_of(bench).command is None
    later = time.time() + 31 * 24 * HOUR / 1000
    monkeypatch.setattr("rewindow.app.listing.time", SimpleNamespace(time=lambda: later))
    assert finding_of(bench).command == "rewindow gc counts"


def test_shares_of_dropped_records_are_those_of_the_last_runs(bench: Bench) -> None:
    alerts(bench, "late: 10%, quarantined: 5%, runs: 1")
    late = [{**row, "got": T0 + 3 * HOUR, "t": T0} for row in hour(0, 6)]
    bench.rows("h3", [*hour(3), *late])
    goes_on(bench)
    finding = finding_of(bench)
    assert (finding.about, finding.command) == ("late", "rewindow report counts")
    told([finding.message], "too-many-records-lost", lost="6 late records", records="30", share="20.0 %", bound="10 %")
    bench.rows("h4", hour(4))
    goes_on(bench)
    assert bench.findings() == []


REGROUPED = topology(
    """
regrouped = builder.stream("events").group_by(lambda key, row: row.x % 2)
counts = regrouped.windowed_by(TimeWindows.of("30m", grace="5m")).count(store="regrouped")
counts.suppress(until_window_closes()).to_stream().to("regrouped")
"""
)


def job_of(bench: Bench, name: str, module: str, alert: str, expect: str = "") -> None:
    """Write a job of one output that is called like the job."""
    bench.write("other_job.py", module)
    job = f"job: {name}\ntopology: other_job:build_topology\nfeed: activity\nalerts: {{{alert}, runs: 1}}\n"
    bench.write(f"conf/jobs/{name}.yaml", f"{job}outputs: {{{name}: {{table: alerts.{name}{expect}}}}}\n")


def test_records_that_cross_a_repartition_count_once(bench: Bench) -> None:
    job_of(bench, "regrouped", REGROUPED, "late: 20%", ", expect: [{late: 20%, on_fail: warn}]")
    bench.done("run regrouped --land")
    late = [{**row, "got": T0 + 3 * HOUR, "t": T0} for row in hour(0, 6)]
    bench.rows("h3", [*hour(3), *late])
    (expectation,) = bench.json("run regrouped --land")["expectations"]
    assert "6" in expectation["observed"]
    job = status(bench, code=1)[1]["regrouped"]
    assert (job["records"], job["late"]) == (18, 6)
    assert [run["records"] for run in bench.json("show regrouped")["runs"]] == [36, 18]


KEEP = """\
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
"""
KEPT = topology(
    """
first = kept(builder.stream("events").map_values(lambda row: row.x, name="xs"), long="30m", short="5m")
moved = first.select_key(lambda key, x: key[::-1], key=str).repartition(name="moved")
kept(moved, other="30m").to("kept")
""",
    before=KEEP,
)


def test_expired_records_are_those_of_the_store_that_drops_most(bench: Bench) -> None:
    job_of(bench, "kept", KEPT, "expired: 10%")
    bench.done("run kept --land")
    late = [{**row, "got": T0 + 3 * HOUR, "t": T0 + (3 * 60 - 5 - 10 * n) * 60_000} for n, row in enumerate(hour(0, 6))]
    bench.rows("h3", [*hour(3), *late])
    bench.done("run kept --land")
    drops = bench.json("report kept --run main/2")["drops"]
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
    bench.done("land activity")
    finding = finding_of(bench)
    assert finding.level == Level.NOTE
    told([finding.message], "last-landing-quarantined", what="all 4 records", topic="events")
    assert finding.command == "rewindow head rewindow.quarantine --of activity"
    bench.done(finding.command.removeprefix("rewindow "))
    far = {**hour(4, 1)[0], "t": hour(4, 1)[0]["t"] + 90 * 24 * HOUR}
    bench.rows("h4", [*hour(4, 4), far])
    bench.done("land activity")
    assert bench.findings("activity") == []


def test_a_job_without_runs_is_not_fresh(bench: Bench) -> None:
    bench.write("conf/feeds/other.yaml", FEED.replace("feed: activity", "feed: other"))
    sums = JOB.replace("job: counts", "job: sums").replace("alerts.totals", "sums.totals").replace("activity", "other")
    bench.write("conf/jobs/sums.yaml", sums)
    assert bench.findings("sums") == []
    bench.write("conf/jobs/sums.yaml", f"{sums}alerts: {{freshness: 1h, waiting: 0}}\n")
    told([finding_of(bench, "sums").message], "results-too-old", what="complete through no time yet")


def test_a_scheduled_run_that_did_not_happen_is_an_alert(waiting: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    waiting.edit(
        "conf/jobs/counts.yaml", "on_code_change: accept\n", 'on_code_change: accept\nschedule: "*/10 * * * *"\n'
    )
    assert waiting.findings() == []
    monkeypatch.setattr("rewindow.app.listing.time.time", lambda: now + 1_300)
    finding = finding_of(waiting)
    assert (finding.level, finding.command) == (Level.ALERT, "rewindow run counts")
    told([finding.message], "schedule-missed", landing=3, schedule="*/10 * * * *")


def test_an_interval_that_was_not_landed_in_time_is_an_alert(bench: Bench) -> None:
    bench.write("conf/feeds/hourly.yaml", HOURLY)
    bench.done("land hourly")
    assert bench.findings() == []
    bench.rows("h3", hour(3))
    finding = finding_of(bench, "hourly")
    assert (finding.level, finding.command) == (Level.ALERT, "rewindow land hourly")
    told([finding.message], "interval-not-landed", every="1h")
    bench.done("land hourly")
    assert bench.findings() == []


def test_a_landed_file_with_rows_of_later_intervals_is_an_alert_only_when_such_an_interval_is_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("conf/feeds/hourly.yaml", HOURLY)
    tomorrow = round(time.time() * 1000) + 24 * HOUR
    bench.rows("h3", [*hour(3), {"user": "ann", "t": T0, "got": tomorrow, "x": 1}])
    bench.done("land hourly")
    hourly = status(bench)[0]["hourly"]
    assert (hourly["level"], hourly["status"], hourly["due"]) == ("note", "fresh", False)
    assert only(hourly)["code"] == "rows-of-the-future"
    in_two_days = time.time() + 48 * HOUR / 1000
    monkeypatch.setattr("rewindow.app.listing.time", SimpleNamespace(time=lambda: in_two_days))
    told([finding_of(bench, "hourly").message], "interval-not-landed", waits="more is due")


INTERVALS = HOURLY.replace("feed: hourly", "feed: activity")
OTHERS = "  others: {source: {path: others/raw, format: parquet}, key: user, timestamp: t, arrived_at: got}\n"


@pytest.fixture
def empty(in_process: None, tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.write("conf/targets/local.yaml", TARGET)
    return bench


def test_rows_of_a_table_that_wait_are_well(empty: Bench) -> None:
    empty.write("conf/feeds/activity.yaml", INTERVALS.replace("path: raw, format: parquet", "path: raw, format: delta"))
    empty.edit("conf/feeds/activity.yaml", ", arrived_at: got", "")
    table, now_ms = str(empty.root / "raw"), int(time.time() * 1000)
    for number, arrived_ms in enumerate((now_ms - 3 * HOUR, now_ms)):
        write_deltalake(table, pa.Table.from_pylist(hour(number)), mode="append")
        stamp(table, arrived_ms)
    empty.done("land activity")
    assert empty.findings() == []


def test_nothing_is_said_of_the_files_of_a_removed_log(empty: Bench) -> None:
    empty.write("conf/feeds/activity.yaml", INTERVALS.replace("landing:", f"{OTHERS}landing:"))
    empty.rows("h0", hour(0))
    rows = hour(0)
    rows[-1]["got"] = int(time.time() * 1000) + 3 * HOUR
    (empty.root / "others/raw").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), empty.root / "others/raw/h0.parquet")
    empty.done("land activity")
    told((finding.message for finding in empty.findings()), "rows-of-the-future", topic="others")
    empty.write("conf/feeds/activity.yaml", INTERVALS)
    empty.done("land activity --new-generation --keep 1")
    assert empty.findings() == []
