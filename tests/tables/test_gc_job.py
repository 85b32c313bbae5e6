"""gc of a job: snapshots replace older rows, nothing that a branch needs is lost, and everything else is deleted."""

from __future__ import annotations

import gc as collector
import os
import shutil
import weakref
from itertools import count
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rewindow.control import branch as branching
from rewindow.control.drift_repair import Republished
from rewindow.control.garbage_collection import Collected, collect
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.spec import Attempt
from rewindow.control.verify import verify
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.errors import CheckpointError, StorageError
from rewindow.tables.delta.gc import JobGc, Unnamed
from rewindow.tables.delta.open_table import open_table, table_path
from rewindow.tables.delta.table_rows import count_rows, read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from tests.refusals import containing, refused
from tests.tables.repairing import fix
from tests.tables.scene import JOB, a_job, changelog, finish, land, machine, one_by_one, replay

pytestmark = pytest.mark.slow

FOR_EVER = 2**60
_names = count()


@pytest.fixture(scope="module")
def six_runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a warehouse with eight landings, the first six replayed by one run each."""
    return one_by_one(tmp_path_factory.mktemp("six"), runs=6, landings=8)


@pytest.fixture
def warehouse(six_runs: str, tmp_path: Path) -> str:
    return shutil.copytree(six_runs, str(tmp_path / "w"))


def gc(
    warehouse: str, *, every: int = 3, before_ms: int = FOR_EVER, keep_ms: int = 0, sees_life: bool = False
) -> Collected:
    return drive(collecting(warehouse, every=every, before_ms=before_ms, keep_ms=keep_ms, sees_life=sees_life))


def collecting(warehouse: str, *, every: int = 3, before_ms: int = FOR_EVER, keep_ms: int = 0, sees_life: bool = False):
    tables = DeltaTables(warehouse)
    gc = JobGc(tables, JOB, lambda _attempt: sees_life)
    return collect(JOB, tables, gc, before_ms=before_ms, keep_ms=keep_ms, every=every)


def hashes(warehouse: str, branch: str = "main") -> dict[str, str]:
    return DeltaTables(warehouse).hashes(JOB, branch)


def grow_old(warehouse: str, days: int = 3) -> None:
    """Make all files some days older."""
    for file in Path(warehouse).rglob("*"):
        seconds = file.stat().st_mtime - days * 86_400
        os.utime(file, (seconds, seconds))


def test_a_snapshot_is_read_in_place_of_the_runs_before(warehouse: str, six_runs: str, tmp_path: Path) -> None:
    done = gc(warehouse)
    assert (done.snapshots, done.forgotten) == (["main/6"], 6)
    assert hashes(warehouse) == hashes(six_runs)
    state = DeltaTables(warehouse).state(JOB)
    assert [len(state.basis(run.spec.run)) for run in state.branch("main").runs][-1] == 1
    left = set(read_rows(changelog(warehouse, "sums"), ["_run"])["_run"].to_pylist())
    assert left == {snapshot.spec.run for snapshot in state.snapshots.values()}
    other = shutil.copytree(six_runs, str(tmp_path / "untouched"))
    for path in (warehouse, other):
        finish(path)
    assert hashes(warehouse) == hashes(other)
    assert count_rows(changelog(warehouse, "sums")) < count_rows(changelog(other, "sums"))


def test_it_is_done_once(warehouse: str) -> None:
    gc(warehouse)
    before = len(DeltaTables(warehouse).ledger(JOB).read())
    again = gc(warehouse)
    assert (again.snapshots, again.forgotten, again.deleted) == ([], 0, [])
    assert len(DeltaTables(warehouse).ledger(JOB).read()) == before


def test_what_is_young_is_kept_and_can_be_gone_back_to(warehouse: str, six_runs: str) -> None:
    done = gc(warehouse, before_ms=0)
    assert (done.snapshots, done.forgotten) == (["main/6"], 0)
    drive(branching.rewind(JOB, "main", "main/4", DeltaTables(warehouse)))
    finish(warehouse)
    assert hashes(warehouse).keys() == hashes(six_runs).keys()


def test_what_was_forgotten_cannot_be_gone_back_to_and_the_message_says_where_one_can(warehouse: str) -> None:
    gc(warehouse)
    tables = DeltaTables(warehouse)
    for doing in (branching.rewind(JOB, "main", "main/3", tables), branching.branch(JOB, "b", tables, at="main/3")):
        with pytest.raises(CheckpointError, match=r"removed the state after run main/3: .* one of main/6"):
            drive(doing)
    last = tables.state(JOB).branch("main").runs[-1]
    with pytest.raises(CheckpointError, match="removed the state"):
        drive(verify(a_job(tables), last, Attempt("x"), LocalEngine(), tables))
    drive(branching.rewind(JOB, "main", "0", tables))
    finish(warehouse)
    assert hashes(warehouse)


def test_the_runs_that_the_message_offers_are_the_nearest_of_the_branch(warehouse: str) -> None:
    tables = DeltaTables(warehouse)
    drive(branching.branch(JOB, "b", tables, at="main/2"))
    gc(warehouse, every=3)
    state = tables.state(JOB)
    kept = [one.spec.name for one in state.branch("main").runs if state.has_state(one.spec.run)]
    with refused("run-state-removed", choices=containing(", ".join(kept))):
        drive(branching.rewind(JOB, "main", "main/3", tables))
    for name in reversed(kept):
        drive(branching.rewind(JOB, "main", name, tables))


def test_a_branch_keeps_what_it_stands_on(warehouse: str) -> None:
    tables = DeltaTables(warehouse)
    drive(branching.branch(JOB, "trial", tables, at="main/2"))
    assert gc(warehouse).forgotten == 4
    replay(warehouse, "t", "trial")
    assert hashes(warehouse, "trial")["changelog/sums"]
    drive(branching.drop(JOB, "trial", tables))
    assert gc(warehouse).forgotten > 0


def test_dead_attempts_leave_nothing(warehouse: str) -> None:
    for step in machine(warehouse, "deadbeef"):
        if step == "commit":
            break
    assert list(Path(warehouse).rglob("deadbeef*"))
    gc(warehouse)
    assert list(Path(warehouse).rglob("deadbeef*")), "an attempt without COMMIT may be alive"
    finish(warehouse)
    done = gc(warehouse, keep_ms=FOR_EVER)
    assert done.reports == 1
    assert not list(Path(warehouse).rglob("deadbeef*.parquet"))


def test_a_run_that_is_alive_keeps_the_files_it_reads_and_one_taken_for_dead_is_called_again(
    warehouse: str, six_runs: str, tmp_path: Path
) -> None:
    finish(other := shutil.copytree(six_runs, str(tmp_path / "other")))
    for sees_life in (True, False):
        copy = shutil.copytree(warehouse, str(tmp_path / f"{sees_life}"))
        run = machine(copy, "deadbeef")
        while not next(run).startswith("execute sub-topology"):
            pass
        gc(copy, sees_life=sees_life)
        if sees_life:
            drive(run)
        else:
            with pytest.raises(StorageError, match="No such file"):
                drive(run)
        finish(copy)
        assert hashes(copy) == hashes(other)


def test_files_that_left_their_table_go_when_they_are_old(warehouse: str) -> None:
    drive(branching.rewind(JOB, "main", "main/2", DeltaTables(warehouse)))
    before = {file.name for file in Path(table_path(warehouse, "alerts/totals")).glob("*.parquet")}
    assert not [one for one in gc(warehouse, keep_ms=86_400_000 * 30).deleted if one.folder.endswith("totals")]
    gc(warehouse)
    after = {file.name for file in Path(table_path(warehouse, "alerts/totals")).glob("*.parquet")}
    assert after < before
    finish(warehouse)
    assert fix(warehouse) == Republished({}, [], [])


def test_what_nobody_knows_stays_for_a_day(warehouse: str) -> None:
    stranger = Path(table_path(warehouse, "alerts/totals")) / f"stranger-{'0' * 32}.parquet"
    stranger.write_bytes(b"x")
    gc(warehouse)
    assert stranger.exists()
    seconds = stranger.stat().st_mtime - 3 * 86_400
    os.utime(stranger, (seconds, seconds))
    gc(warehouse)
    assert not stranger.exists()


def test_a_dropped_branchs_table_goes(warehouse: str) -> None:
    tables = DeltaTables(warehouse)
    drive(branching.branch(JOB, "trial", tables, at="main/2"))
    replay(warehouse, "t", "trial")
    drive(branching.drop(JOB, "trial", tables))
    gc(warehouse)
    assert not Path(table_path(warehouse, "alerts/totals__trial")).exists()
    assert hashes(warehouse)


def test_a_promoted_branch_can_be_dropped_and_removed(warehouse: str) -> None:
    tables = DeltaTables(warehouse)
    drive(branching.branch(JOB, "trial", tables, at="main/2"))
    replay(warehouse, "t", "trial")
    drive(branching.promote(JOB, "trial", a_job(tables).binding, tables))
    before = hashes(warehouse)
    drive(branching.drop(JOB, "trial", tables))
    gc(warehouse)
    assert hashes(warehouse) == before
    assert fix(warehouse) == Republished({}, [], [])


def test_a_lost_snapshot_is_given_up_while_the_runs_before_it_are_there(warehouse: str, six_runs: str) -> None:
    gc(warehouse, before_ms=0)
    (snapshot,) = DeltaTables(warehouse).state(JOB).snapshots.values()
    for file in Path(changelog(warehouse, "sums")).rglob(f"{snapshot.commit.attempt}-*.parquet"):
        file.unlink()
    done = fix(warehouse)
    assert set(done.drift) == {"changelog/sums"}
    assert hashes(warehouse) == hashes(six_runs)


def test_it_can_be_killed_anywhere_and_beside_it_a_run_goes_on(warehouse: str, six_runs: str, tmp_path: Path) -> None:
    untouched = shutil.copytree(six_runs, str(tmp_path / "untouched"))
    finish(untouched)
    run = machine(warehouse, "beside")
    for step in run:
        if step == "stage":
            break
    for stop in count(1):
        if not any(number == stop for number, _ in enumerate(collecting(warehouse), start=1)):
            break
    drive(run)
    gc(warehouse)
    assert hashes(warehouse) == hashes(untouched)
    finish(warehouse)


def test_a_job_that_never_ran_has_nothing_to_keep(tmp_path: Path) -> None:
    land(str(tmp_path), 1)
    assert gc(str(tmp_path)).deleted == []


def test_others_delta_logs_stay_readable(warehouse: str) -> None:
    gc(warehouse)
    for path in ("rewindow/runs", "rewindow/journal", "rewindow/metrics", "alerts/totals"):
        assert DeltaTable(table_path(warehouse, path)).to_pyarrow_dataset().count_rows() >= 0


def test_the_files_that_a_table_does_not_name_are_found_without_keeping_its_handle(warehouse: str) -> None:
    """In a reference cycle, a handle would return to its cache only with the next collection."""
    root = changelog(warehouse, "sums")
    stray = Path(root, f"attempt-{'0' * 32}.parquet")
    stray.touch()
    os.utime(stray, (0, 0))
    collector.disable()
    try:
        table = open_table(root)
        unnamed, handle = Unnamed(root, table, ".parquet"), weakref.ref(table)
        assert [name for name in unnamed.paths() if unnamed.is_left(name, 0)] == [stray.name]
        del table, unnamed
        assert handle() is None
    finally:
        collector.enable()
