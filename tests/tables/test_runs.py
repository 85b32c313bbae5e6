from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rewindow import Count, Sum
from rewindow.app.describe_job import describe_job
from rewindow.control.plan.planner import UpToDate
from rewindow.engine.worker.vectorized.folds import CountFold
from rewindow.errors import ConfigError, StorageError
from rewindow.streams.metrics import Measure, add_up
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.audit import MEASURE
from tests.refusals import containing, refused
from tests.tables.scene import JOB, changelog, finish, land, machine, replay, spoil

LANDINGS = 4


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    land(str(tmp_path), LANDINGS)
    return str(tmp_path)


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, str]:
    """Return the hashes after one clean run over all landings."""
    warehouse = str(tmp_path_factory.mktemp("clean"))
    land(warehouse, LANDINGS)
    replay(warehouse, "clean")
    return DeltaTables(warehouse).hashes(JOB, "main")


def hashes(warehouse: str, branch: str = "main") -> dict[str, str]:
    return DeltaTables(warehouse).hashes(JOB, branch)


def test_one_run_and_many_say_the_same(warehouse, expected):
    for landing in range(1, LANDINGS + 1):
        replay(warehouse, f"many-{landing}", through_landing=landing)
    replay(warehouse, "one", "whole")

    assert hashes(warehouse) == expected
    assert hashes(warehouse, "whole") == expected
    assert set(expected) == {"changelog/closed", "changelog/sums", "metrics", "output/totals"}


def test_a_second_call_has_nothing_to_do(warehouse, expected):
    replay(warehouse, "first")
    assert isinstance(replay(warehouse, "second"), UpToDate)
    assert hashes(warehouse) == expected


def step_names(warehouse: str) -> list[str]:
    return list(machine(warehouse, "traced"))


@pytest.mark.slow
def test_a_run_that_dies_before_any_step_is_finished_by_the_next(tmp_path, expected):
    clean = tmp_path / "traced"
    land(str(clean), LANDINGS)
    names = step_names(str(clean))
    assert len(names) > 10

    for number, name in enumerate(names):
        warehouse = str(tmp_path / f"case-{number}")
        land(warehouse, LANDINGS)
        replay(warehouse, "before", through_landing=2)
        dying = machine(warehouse, "dying")
        for reached in dying:
            if reached == name:
                break
        dying.close()
        finish(warehouse)
        assert hashes(warehouse) == expected, name


def test_a_zombie_can_neither_commit_nor_publish_what_was_not_committed(warehouse, expected):
    zombie = machine(warehouse, "zombie")
    for step in zombie:
        if step == "commit":
            break
    replay(warehouse, "heir")
    with refused("run-fenced") as fenced:
        next(zombie)
    assert fenced.value.exit_code == 75
    assert hashes(warehouse) == expected


def test_two_publishers_do_no_harm(warehouse, expected):
    one = machine(warehouse, "one")
    for step in one:
        if step.startswith("publish "):
            break
    state = DeltaTables(warehouse).state(JOB)
    tables = DeltaTables(warehouse)
    assert len(list(tables.publish(JOB, state, "main"))) == 4
    assert list(tables.publish(JOB, state, "main")) == []
    assert list(one)[-1] == "done"
    assert hashes(warehouse) == expected


def test_a_parent_that_another_committed_a_moment_ago_is_published_first(warehouse, expected):
    late = machine(warehouse, "late")
    for step in late:
        if step == "plan":
            break
    rival = machine(warehouse, "rival", through_landing=2)
    for step in rival:
        if step == "publish":
            break
    rival.close()
    assert list(late)[-1] == "done"
    assert hashes(warehouse) == expected


def test_a_restore_reads_only_the_runs_of_its_branch(warehouse):
    replay(warehouse, "a", through_landing=2)
    replay(warehouse, "b", "trial")
    replay(warehouse, "c", through_landing=3)
    tables = DeltaTables(warehouse)
    state = tables.state(JOB)
    next_run = state.branch("main").runs[1].spec

    checkpoint = tables.restore(state, next_run)

    sums = read_rows(changelog(warehouse, "sums")).num_rows
    closed = read_rows(changelog(warehouse, "closed")).num_rows
    first = state.committed[0].commit.targets
    assert checkpoint.rows == first["changelog/sums"].rows + first["changelog/closed"].rows
    assert 0 < checkpoint.rows < sums + closed
    assert checkpoint.bytes > 0
    assert set(checkpoint.states) >= {(0, 0), (0, 1)}
    assert all("dying" not in path for paths in checkpoint.stores.values() for path in paths)


def test_the_final_run_seals(warehouse):
    replay(warehouse, "a")
    before = read_rows(table_path(warehouse, "alerts/totals")).num_rows
    replay(warehouse, "b", final=True)
    assert read_rows(table_path(warehouse, "alerts/totals")).num_rows > before
    assert DeltaTables(warehouse).state(JOB).branch("main").is_sealed
    replay(warehouse, "c", "at-once", final=True)
    assert hashes(warehouse) == hashes(warehouse, "at-once")


def test_a_lost_table_stops_its_own_branch_only(warehouse, expected):
    replay(warehouse, "a", through_landing=2)
    replay(warehouse, "b", "trial", through_landing=2)
    shutil.rmtree(table_path(warehouse, "alerts/totals__trial"))

    replay(warehouse, "c")
    replay(warehouse, "d", "third")
    assert hashes(warehouse) == hashes(warehouse, "third") == expected
    with refused(
        "published-table-altered",
        change="is gone",
        table=containing("totals__trial"),
        fix=containing("Publish it again: `rewindow republish counts --branch trial"),
    ):
        replay(warehouse, "e", "trial")


def test_what_another_branch_committed_is_published_when_that_one_is_asked_for(warehouse, expected):
    dying = machine(warehouse, "dying", "trial")
    for step in dying:
        if step == "publish":
            break
    dying.close()
    replay(warehouse, "a")
    assert hashes(warehouse) == expected
    assert not Path(table_path(warehouse, "alerts/totals__trial/_delta_log/00000000000000000001.json")).exists()

    assert isinstance(replay(warehouse, "b", "trial"), UpToDate)
    assert hashes(warehouse, "trial") == expected


def test_a_changed_aggregate_begins_a_new_branch_and_the_old_one_goes_on(warehouse, expected):
    both = {"records": Count(), "offsets": Sum()}
    replay(warehouse, "a", through_landing=2)
    with refused("job-changed-since-checkpoint", replay=containing("--branch NAME")) as caught:
        replay(warehouse, "b", aggregate=both)
    assert caught.value.exit_code == 76

    replay(warehouse, "c", "v2", aggregate=both, through_landing=3)
    replay(warehouse, "d")
    replay(warehouse, "e", "v2", aggregate=both)
    replay(warehouse, "f", "v3", aggregate=both)

    assert hashes(warehouse) == expected
    assert hashes(warehouse, "v2") == hashes(warehouse, "v3")
    tables = DeltaTables(warehouse)
    shown = {
        branch: describe_job(tables, tables.state(JOB), JOB, branch=branch, hashes=False)["tables"]
        for branch in ("main", "v2")
    }
    paths = {branch: {row["table"]: row["path"] for row in rows} for branch, rows in shown.items()}
    assert paths["main"]["changelog/sums"] == changelog(warehouse, "sums")
    assert paths["v2"]["changelog/sums"] != paths["main"]["changelog/sums"]
    assert all(row["rows"] > 0 for rows in shown.values() for row in rows)


def test_show_counts_the_rows_of_its_own_branch(warehouse):
    replay(warehouse, "a")
    replay(warehouse, "b", "trial", through_landing=1)
    tables = DeltaTables(warehouse)
    shown = {
        branch: describe_job(tables, tables.state(JOB), JOB, branch=branch, hashes=False)
        for branch in ("main", "trial", "none")
    }
    rows = {branch: {row["table"]: row["rows"] for row in job["tables"]} for branch, job in shown.items()}
    both = read_rows(changelog(warehouse, "sums")).num_rows
    assert 0 < rows["trial"]["changelog/sums"] <= rows["main"]["changelog/sums"] < both
    assert rows["trial"]["changelog/sums"] + rows["main"]["changelog/sums"] == both
    assert (shown["none"]["runs"], shown["none"]["branches"]) == ([], ["main", "trial"])
    assert {"record-lateness": "ms", "process": "records"}.items() <= {
        row["metric"]: row["unit"] for row in shown["main"]["metrics"]
    }.items()


@pytest.mark.parametrize("stop", ["none", "publish output/totals 4"])
def test_show_adds_up_the_metrics_of_all_runs_also_of_one_that_is_not_published(warehouse, stop, monkeypatch):
    for landing in range(1, LANDINGS):
        replay(warehouse, f"many-{landing}", through_landing=landing)
    if stop == "none":
        replay(warehouse, "last")
    else:
        stop_before(stop, machine(warehouse, "last"))
    tables = DeltaTables(warehouse)
    runs = tables.state(JOB).branch("main").runs
    read = []
    report_of = tables.reports
    monkeypatch.setattr(tables, "reports", lambda run: read.append(run.spec.name) or report_of(run))

    found = tables.measures(runs)

    assert read == ([] if stop == "none" else [runs[-1].spec.name])
    by_task = sorted(found, key=lambda row: [row[name] for name in MEASURE])
    reports = [report for run in runs for report in report_of(run)]
    wanted: dict[tuple, Measure] = {}
    for task in sorted({(report.sub_topology, report.partition) for report in reports}):
        own = [row for report in reports if (report.sub_topology, report.partition) == task for row in report.metrics]
        wanted |= {(*task, *key): measure for key, measure in add_up(own).items()}
    assert {tuple(row[name] for name in MEASURE): row["total"] for row in by_task} == {
        key: measure.total for key, measure in wanted.items()
    }
    assert {tuple(row[name] for name in MEASURE): row["current"] for row in by_task} == {
        key: measure.current for key, measure in wanted.items()
    }


def test_a_field_that_is_not_there_is_told_with_job_and_store(warehouse):
    with pytest.raises(ConfigError, match=r"^job 'counts', store 'sums': there is no field 'price'"):
        replay(warehouse, "a", aggregate={"sum": Sum("price")})


def test_a_retry_that_makes_other_rows_than_were_staged_is_stopped(tmp_path, monkeypatch):
    warehouse = str(tmp_path / "w")
    land(warehouse)
    stop_before("commit", machine(warehouse, "first"))
    take = CountFold.take
    monkeypatch.setattr(CountFold, "take", lambda *given: [take(*given) for _ in range(2)])  # counts every record twice
    with refused("run-not-deterministic", target="changelog/sums", different=containing("which now has {'value': 2}")):
        replay(warehouse, "second")
    assert replay(warehouse, "third", replan=True).spec.repeats is None


def test_a_retry_that_makes_the_same_rows_goes_on(tmp_path):
    warehouse = str(tmp_path / "w")
    land(warehouse)
    stop_before("commit", machine(warehouse, "first"))
    assert replay(warehouse, "second").spec.repeats == "first"


def stop_before(wanted, run):
    for step in run:
        if step == wanted:
            return


@pytest.mark.parametrize("what", ["alerts/totals", "rewindow/journal"])
def test_what_a_dead_attempt_left_damaged_does_not_stop_the_next(warehouse, expected, what):
    spoilt = machine(warehouse, "spoilt")
    stop_before("audit", spoilt)
    for file in Path(warehouse, what).glob("**/*spoilt*.parquet"):
        spoil(file)
    with pytest.raises(StorageError):
        next(spoilt)
    assert replay(warehouse, "heir").spec.repeats == "spoilt"
    assert hashes(warehouse) == expected
