"""`gc` merges the small files of runs: rows, counts by run and everything that reads or retracts runs stay as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rewindow.control import branch as branching
from rewindow.control.garbage_collection import Collected, collect
from rewindow.control.ledger_steps import drive
from rewindow.tables.delta.commit import commit_files
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.gc import JobGc
from rewindow.tables.delta.merging import RunFiles, due_run_merges, merge, run_files
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.retractions import retract_runs
from rewindow.tables.delta.run_rows import run_counts
from rewindow.tables.delta.table_rows import content_hash, table_files
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import JOURNAL, METRICS
from rewindow.tables.shared.publications import publication_id
from tests.refusals import refused
from tests.tables.scene import JOB, finish, one_by_one

RUNS = 5


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return one_by_one(tmp_path, RUNS)


def gc(warehouse: str, least: int = 2) -> Collected:
    tables = DeltaTables(warehouse)
    collector = JobGc(tables, JOB, lambda _attempt: False)
    return drive(collect(JOB, tables, collector, before_ms=0, keep_ms=0, merge_from=least))


def output(warehouse: str) -> str:
    return table_path(warehouse, DeltaTables(warehouse).state(JOB).branch("main").tables["output/totals"].path)


def listed(path: str) -> list[str]:
    return [file.path for file in table_files(path, DeltaTable(path))]


def check(warehouse: str) -> None:
    tables = DeltaTables(warehouse)
    tables.check_published(JOB, tables.state(JOB), "main")


def test_small_files_become_one_and_no_row_changes(warehouse: str) -> None:
    paths = [output(warehouse), f"{warehouse}/{METRICS}", f"{warehouse}/{JOURNAL}"]
    before, rows = [len(listed(path)) for path in paths], [content_hash(path, exclude=()) for path in paths]
    hashes = DeltaTables(warehouse).hashes(JOB, "main")
    done = gc(warehouse)
    assert (done.merged, done.into) == (sum(before), 3)
    assert [len(listed(path)) for path in paths] == [1, 1, 1]
    assert [content_hash(path, exclude=()) for path in paths] == rows
    assert DeltaTables(warehouse).hashes(JOB, "main") == hashes
    check(warehouse)
    assert gc(warehouse).merged == 0


def test_few_files_are_left_alone(warehouse: str) -> None:
    assert gc(warehouse, least=RUNS + 1).merged == 0


def test_a_merged_file_says_how_many_rows_each_run_has(warehouse: str) -> None:
    path = output(warehouse)
    counts = {
        run.spec.run: run.commit.targets["output/totals"].rows for run in DeltaTables(warehouse).state(JOB).committed
    }
    gc(warehouse)
    (file,) = table_files(path, DeltaTable(path))
    assert run_counts(Folder(path), file) == {run: rows for run, rows in counts.items() if rows}


def test_what_another_program_writes_instead_is_counted_in_total(warehouse: str) -> None:
    gc(warehouse)
    path = output(warehouse)
    first, *_, last = [run.spec.run for run in DeltaTables(warehouse).state(JOB).committed]
    DeltaTable(path).update({"_run": str(last)}, predicate=f"_run = {first}")
    (file,) = table_files(path, DeltaTable(path))
    assert run_counts(Folder(path), file) is None
    check(warehouse)
    DeltaTable(path).delete(f"_run = {last}")
    with refused("published-table-changed"):
        check(warehouse)


def test_as_in_a_bucket_no_merged_file_is_opened_unless_the_log_says_that_rows_are_missing(
    warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError

    def check_briefly() -> None:
        tables = DeltaTables(warehouse)
        tables.check_published(JOB, tables.state(JOB), "main", brief=True)

    gc(warehouse)
    monkeypatch.setattr("rewindow.tables.delta.check_published.is_uri", bool)
    with monkeypatch.context() as patched:
        patched.setattr("rewindow.tables.delta.check_published.run_counts", fail)
        check_briefly()
    first = DeltaTables(warehouse).state(JOB).committed[0].spec.run
    DeltaTable(output(warehouse)).delete(f"_run = {first}")
    with refused("published-table-changed"):
        check_briefly()


def test_runs_are_retracted_from_a_merged_file_and_made_again(warehouse: str) -> None:
    path, before = output(warehouse), DeltaTables(warehouse).hashes(JOB, "main")
    gc(warehouse)
    drive(branching.rewind(JOB, "main", "main/2", DeltaTables(warehouse)))
    check(warehouse)
    known = {run.spec.run for run in DeltaTables(warehouse).state(JOB).branch("main").runs}
    found = [run_counts(Folder(path), file) for file in table_files(path, DeltaTable(path))]
    assert {run for counts in found for run in counts or ()} <= known
    finish(warehouse)
    assert DeltaTables(warehouse).hashes(JOB, "main") == before


def test_a_merge_that_comes_after_a_retraction_fails(warehouse: str) -> None:
    tables = DeltaTables(warehouse)
    found = next(one for one in run_files(warehouse, JOB, tables.state(JOB)) if one.path == output(warehouse))
    steps = merge(warehouse, JOB, tables.state(JOB), 2)
    assert [next(steps) for _ in range(2)] == ["merge alerts/totals", "merge alerts/totals: written"]
    drive(branching.rewind(JOB, "main", "main/2", DeltaTables(warehouse)))
    assert next(steps) == f"merge {METRICS}"  # the next table
    check(warehouse)
    assert len(listed(output(warehouse))) == 2 < len(found.files)


def test_a_retraction_that_was_decided_before_a_merge_is_decided_again(warehouse: str) -> None:
    tables, path = DeltaTables(warehouse), output(warehouse)
    state = tables.state(JOB)
    app_id = publication_id(state.ledger, JOB, "output/totals")
    ended = state.committed[-1].spec.run
    stale = DeltaTable(path)
    looks = 0

    def retract(at: str, table: DeltaTable) -> object:
        nonlocal looks
        looks += 1
        actions = retract_runs(at, table, runs={ended})
        if looks == 1:
            assert gc(warehouse).merged > 0
        return actions

    version = (stale.transaction_version(app_id) or 0) + 1
    commit_files(path, [], app_id=app_id, version=version, table=stale, retract=retract)  # type: ignore[arg-type]
    assert looks == 2
    assert all(ended not in (run_counts(Folder(path), file) or ()) for file in table_files(path, DeltaTable(path)))


def test_a_merge_that_another_commit_overtakes_is_decided_again(warehouse: str) -> None:
    path, rows = output(warehouse), content_hash(output(warehouse), exclude=())
    steps = merge(warehouse, JOB, DeltaTables(warehouse).state(JOB), 2)
    assert [next(steps) for _ in range(2)] == ["merge alerts/totals", "merge alerts/totals: written"]
    commit_files(path, [], app_id="another", version=1)
    again = ["merge alerts/totals", "merge alerts/totals: written", (RUNS, 1)]
    assert [next(steps) for _ in range(3)] == again
    assert (len(listed(path)), content_hash(path, exclude=())) == (1, rows)


def test_an_altered_file_is_not_merged(warehouse: str) -> None:
    path = Path(output(warehouse), listed(output(warehouse))[0])
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    with refused("file-unreadable"):
        gc(warehouse)


def test_merged_files_that_left_their_table_stay_for_a_day(warehouse: str) -> None:
    gc(warehouse)
    first = listed(output(warehouse))
    drive(branching.rewind(JOB, "main", "main/3", DeltaTables(warehouse)))
    finish(warehouse)
    assert first[0] not in listed(output(warehouse))
    assert not [one for one in gc(warehouse).deleted if one.why == "merged into another file"]


def test_the_journal_is_read_from_its_files_and_from_the_merged_one(warehouse: str) -> None:
    tables = DeltaTables(warehouse)
    known = [tables.reports(run) for run in tables.state(JOB).committed]
    gc(warehouse)
    tables = DeltaTables(warehouse)
    assert [tables.reports(run) for run in tables.state(JOB).committed] == known
    for run in tables.state(JOB).committed:
        Path(warehouse, JOURNAL, run.commit.journal.path).unlink()
    tables = DeltaTables(warehouse)
    assert [tables.reports(run) for run in tables.state(JOB).committed] == known


def test_large_files_are_not_merged(warehouse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewindow.tables.delta.merging.SMALL_BYTES", 10)
    found: RunFiles = next(run_files(warehouse, JOB, DeltaTables(warehouse).state(JOB)))
    assert due_run_merges(found, 2) == []


def test_a_merge_that_died_leaves_a_file_that_the_next_one_deletes_when_it_is_old(warehouse: str) -> None:
    steps = merge(warehouse, JOB, DeltaTables(warehouse).state(JOB), 2)
    assert [next(steps) for _ in range(2)] == ["merge alerts/totals", "merge alerts/totals: written"]
    (left,) = Path(output(warehouse)).glob("merged-*.parquet")
    assert not any(left.name in one.path for one in gc(warehouse).deleted)
    seconds = left.stat().st_mtime - 3 * 86_400
    os.utime(left, (seconds, seconds))
    assert [one.why for one in gc(warehouse).deleted if left.name in one.path] == ["merged into another file"]
    check(warehouse)
