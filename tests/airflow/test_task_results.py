"""What Airflow tells about a command: its task's log, and whether the tables' assets get an event. No Airflow needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rewindow.airflow.dag_run import is_retry, lands_through
from rewindow.airflow.task_results import did_nothing, extra_of, has_event, lines_of, told_of
from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from tests.bad_input.scene import Bench, copy_of, without_spark
from tests.ingest.local_engine import HOUR, T0


@pytest.fixture(scope="module")
def template(two_hours: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with without_spark():
        yield copy_of(two_hours, tmp_path_factory.mktemp("bench") / "project")


@pytest.fixture
def bench(template: Bench, tmp_path: Path) -> Bench:
    """Two hours are replayed; the third waits in the source."""
    return copy_of(template, tmp_path / "project")


def done(bench: Bench, *words: str) -> dict[str, Any]:
    answer = bench.run(*words, "--json")
    assert answer.code == 0, answer.out + answer.err
    found: dict[str, Any] = json.loads(answer.out)
    return found


def test_the_log_of_a_run_states_epochs_records_rows_late_and_quarantined_ones(bench: Bench) -> None:
    late = [{"user": "ann", "t": T0, "got": T0 + 3 * HOUR, "x": 1}] * 2
    bench.rows("late", [*late, {"user": "bob", "t": None, "got": T0 + 3 * HOUR + 1, "x": 1}])
    skipping = "events: {source: {path: raw, format: parquet}, invalid_timestamp: skip,"
    bench.edit("conf/feeds/activity.yaml", "events: {source: {path: raw, format: parquet},", skipping)
    landed = list(lines_of(done(bench, "land", "activity")))
    assert len(landed) == 1
    assert landed[0].startswith(
        "Feed activity: landings 3 to 3, 14 records landed, 0 after their interval, 1 quarantined, "
    )
    ran = list(lines_of(done(bench, "run", "counts"), "--project /opt/shop --target local"))
    assert ran[:2] == ["Run main/3: epochs 3 to 3, 14 of events", "Rows: 6 to totals. Records: 2 late, 0 quarantined"]
    assert ran[2].startswith("It took ")
    report = "rewindow report counts --branch main --run main/3 --project /opt/shop --target local"
    assert ran[3] == f"Report: `{report}`"
    assert ran[4].startswith("alerts/totals: version ")
    written = bench.run(*report.split()[1:7], "--out", str(bench.root / "report.html"))
    assert written.code == 0, written.err


def test_the_log_of_a_backfill_states_the_same_of_each_run(bench: Bench) -> None:
    bench.rows("late", [{"user": "ann", "t": T0, "got": T0 + 3 * HOUR, "x": 1}])
    done(bench, "land", "activity")
    done(bench, "run", "counts")
    lines = list(lines_of(done(bench, "backfill", "counts", "--from", "1", "--branch", "fix"), "--target local"))
    assert lines == [
        "Run fix/1: epochs 1 to 3, 37 of events",
        "Rows: 15 to totals. Records: 1 late, 0 quarantined",
        "Report: `rewindow report counts --branch fix --diff main --target local`",
    ]
    assert bench.run(*lines[2].split("`")[1].split()[1:7], "--out", str(bench.root / "r.html")).code == 0


def test_the_log_of_a_task_that_did_nothing_says_why(bench: Bench) -> None:
    done(bench, "land", "activity")
    done(bench, "run", "counts")
    assert list(lines_of(done(bench, "land", "activity"))) == ["Feed activity: nothing new to land"]
    ran = list(lines_of(done(bench, "run", "counts")))
    assert ran[0] == "Nothing to run: branch 'main' has taken all epochs through 3"
    bench.edit("bench_job.py", "row.x * 2", "row.x * 3")
    ran = list(lines_of(done(bench, "run", "counts")))
    assert ran[1].startswith("The job has changed since its checkpoint, and its next run accepts: ")
    assert "score" in ran[1]


def test_a_run_that_lands_says_what_it_landed(bench: Bench) -> None:
    lines = list(lines_of(done(bench, "run", "counts", "--land")))
    assert lines[0].startswith("Feed activity: landings 3 to 3, 12 records landed")
    assert lines[1] == "Run main/3: epochs 3 to 3, 12 of events"


def test_a_command_that_found_nothing_to_do_sends_no_event(bench: Bench) -> None:
    assert not did_nothing(done(bench, "land", "activity"))
    assert did_nothing(done(bench, "land", "activity"))
    first, again = (done(bench, "run", "counts") for _ in range(2))
    assert (did_nothing(first), did_nothing(again)) == (False, True)
    done(bench, "backfill", "counts", "--from", "1", "--branch", "fix")
    published, repeated = (done(bench, "promote", "counts", "fix") for _ in range(2))
    assert (did_nothing(published), did_nothing(repeated)) == (False, True)
    told = extra_of("alerts.totals", [published])
    assert told is not None
    assert told["is_new"], "a promotion is news, too"
    assert next(lines_of(published)) == "Branch fix: promoted to main, which is at fix/1"
    assert not did_nothing(done(bench, "verify", "counts")), "not known of other commands"


def test_a_feeds_asset_has_event_after_a_landing_and_a_table_after_a_run(bench: Bench) -> None:
    feed, other, table = {"feed": "activity"}, {"feed": "others"}, {"table": "alerts.totals"}
    landed = done(bench, "land", "activity")
    assert (has_event(feed, landed), has_event(other, landed)) == (True, False)
    told = told_of(feed, "", landed)
    assert told is not None
    assert (told["landings"], told["rows"], told["quarantined"]) == ([3], 12, 0)
    assert told_of(other, "", landed) is None
    nothing = done(bench, "land", "activity")
    assert not has_event(feed, nothing)
    ran = done(bench, "run", "counts", "--land")
    assert (has_event(feed, ran), has_event(table, ran)) == (False, True), "it landed nothing"
    assert told_of(feed, "", done(bench, "verify", "counts")) is None


def test_a_run_that_only_publishes_what_a_killed_attempt_had_committed_sends_an_event(bench: Bench) -> None:
    done(bench, "land", "activity")

    def killed_before_it_publishes(step: str) -> None:
        if step == "publish":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        OpenProject.open(bench.root).run("counts", RunRequest(), killed_before_it_publishes)
    retried = done(bench, "run", "counts")
    assert retried["run"] is None, "the killed attempt had committed the run"
    assert "output/totals" in retried["lagged"]
    table = {"table": "alerts.totals"}
    assert has_event(table, retried)
    told = told_of(table, "", retried)
    assert told is not None
    assert (told["run"], told["is_new"]) == ("main/3", True)
    again = done(bench, "run", "counts")
    assert (again["lagged"], has_event(table, again)) == ([], False)


def test_what_a_run_itself_publishes_did_not_lag(bench: Bench) -> None:
    done(bench, "land", "activity")
    ran = done(bench, "run", "counts")
    assert (ran["run"], ran["lagged"]) == ("main/3", [])


def test_a_retry_may_have_lost_the_event_of_the_try_before() -> None:
    assert is_retry({"ti": SimpleNamespace(try_number=2)})
    assert not is_retry({"ti": SimpleNamespace(try_number=1)})
    assert not is_retry({})


def test_one_run_of_a_backfill_lands_for_all_of_them() -> None:
    day, due = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
    backfill, scheduled = (SimpleNamespace(run_type=kind) for kind in ("backfill", "scheduled"))
    context = {
        "data_interval_end": day,
        "dag": SimpleNamespace(params={"through": None}),
        "dag_run": backfill,
        "params": {"through": None},
    }

    def through(due_then: datetime | None = due, **others: Any) -> str | None:
        return lands_through({**context, **others}, lambda _dag: due_then)

    assert through() == "2026-03-01T00:00:00+00:00"
    assert through(dag_run=scheduled) == "2026-01-02T00:00:00+00:00"
    assert through(params={"through": "2026-01-01"}) == "2026-01-01", "a chosen time is kept"
    assert through(None) == "2026-01-02T00:00:00+00:00", "a worker that cannot tell"
    assert through(datetime(2025, 1, 1, tzinfo=UTC)) == "2026-01-02T00:00:00+00:00", "the schedule has ended"
    assert through(data_interval_end=None) is None
