"""Drift of every kind is found and fixed, and what cannot be fixed is reported."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rewindow import Count, Sum
from rewindow.control.drift_repair import Republished, RepublishRequest, republish
from rewindow.control.plan.spec import Attempt
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.engine.worker.vectorized.folds import CountFold
from rewindow.errors import CheckpointError, InvariantError, StorageError, UsageError
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.repair import Repair
from rewindow.tables.delta.table_rows import content_hash, read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import output_path
from tests.tables.repairing import fix
from tests.tables.scene import JOB, a_job, changelog, finish, one_by_one, replay, spoil

pytestmark = pytest.mark.slow

_names = count()


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a warehouse with four landings, the first three replayed by one run each."""
    return one_by_one(tmp_path_factory.mktemp("three"), runs=3, landings=4)


@pytest.fixture
def warehouse(three_runs: str, tmp_path: Path) -> str:
    return shutil.copytree(three_runs, str(tmp_path / "w"))


def totals(warehouse: str) -> str:
    return table_path(warehouse, output_path("alerts.totals"))


def files_of(warehouse: str, number: int, target: str) -> list[Path]:
    tables = DeltaTables(warehouse)
    run = tables.state(JOB).branch("main").runs[number - 1]
    folder = Path(table_path(warehouse, run.spec.binding.tables[target].path))
    return [folder / file.path for one in tables.reports(run) for file in one.files if file.target == target]


def restore(warehouse: str) -> None:
    DeltaTable(totals(warehouse)).restore(2)


def delete_some(warehouse: str) -> None:
    DeltaTable(totals(warehouse)).delete("user = 'ann'")


def overwrite(warehouse: str) -> None:
    table = DeltaTable(totals(warehouse))
    table.update(updates={"value": "value + 1"}, predicate="user = 'bob'")


def drop_log(warehouse: str) -> None:
    shutil.rmtree(Path(totals(warehouse)) / "_delta_log")


def drop(warehouse: str) -> None:
    shutil.rmtree(totals(warehouse))


def remove_a_file(warehouse: str) -> None:
    files_of(warehouse, 2, "output/totals")[0].unlink()


def flip_a_byte(warehouse: str) -> None:
    spoil(files_of(warehouse, 2, "output/totals")[0])


def drop_changelog(warehouse: str) -> None:
    shutil.rmtree(changelog(warehouse, "sums"))


def update_changelog(warehouse: str) -> None:
    DeltaTable(changelog(warehouse, "sums")).update(updates={"value": "value + 1"})
    DeltaTable(changelog(warehouse, "sums")).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def lose_the_journal(warehouse: str) -> None:
    for run in DeltaTables(warehouse).state(JOB).branch("main").runs[:2]:
        (Path(warehouse) / "rewindow/journal" / run.commit.journal.path).unlink()


def delete_metrics(warehouse: str) -> None:
    DeltaTable(table_path(warehouse, "rewindow/metrics")).delete("_run > 2")


HARMS: dict[Callable[[str], None], tuple[str, int]] = {
    restore: ("output/totals", 0),
    delete_some: ("output/totals", 0),
    overwrite: ("output/totals", 0),
    drop_log: ("output/totals", 0),
    drop: ("output/totals", 3),
    remove_a_file: ("output/totals", 1),
    flip_a_byte: ("output/totals", 1),
    drop_changelog: ("changelog/sums", 3),
    update_changelog: ("changelog/sums", 3),
    delete_metrics: ("metrics", 0),
}
"""Each with the table that has drifted, and the number of runs that must be repeated."""


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_a_harmed_table_is_fixed(warehouse: str, three_runs: str, harm: Callable[[str], None]) -> None:
    harm(warehouse)
    target, again = HARMS[harm]
    done = fix(warehouse)
    assert set(done.drift) == {target}
    assert len(done.repeated) == again
    assert DeltaTables(warehouse).hashes(JOB, "main") == DeltaTables(three_runs).hashes(JOB, "main")
    assert fix(warehouse) == Republished({}, [], [])
    finish(warehouse)


def test_a_lost_journal_is_made_again(warehouse: str, three_runs: str) -> None:
    lose_the_journal(warehouse)
    assert fix(warehouse).repeated == ["main/1", "main/2"]
    assert DeltaTables(warehouse).hashes(JOB, "main") == DeltaTables(three_runs).hashes(JOB, "main")


def test_what_is_not_harmed_is_left_alone_unless_it_is_asked_for(warehouse: str) -> None:
    before = content_hash(totals(warehouse))
    assert fix(warehouse) == Republished({}, [], [])
    DeltaTable(totals(warehouse)).optimize.compact()
    assert fix(warehouse) == Republished({}, [], [])
    assert fix(warehouse, ["output/totals"]).republished == ["output/totals"]
    assert content_hash(totals(warehouse)) == before
    assert len(fix(warehouse, None).republished) == 4
    assert content_hash(totals(warehouse)) == before
    with pytest.raises(UsageError, match="outputs: totals"):
        fix(warehouse, ["output/nothing"])


@pytest.mark.parametrize("harm", [restore, delete_some, drop_log], ids=lambda harm: harm.__name__)
def test_the_next_run_says_so(warehouse: str, harm: Callable[[str], None]) -> None:
    harm(warehouse)
    if harm is drop_log:
        finish(warehouse)  # the staged files still exist, so a run publishes them
        return
    assert found(warehouse) == ["output/totals"]
    with pytest.raises(StorageError, match=f"rewindow republish {JOB}`"):
        replay(warehouse, "next")


def found(warehouse: str) -> list[str]:
    tables = DeltaTables(warehouse)
    return [drift.target for drift in tables.drift(JOB, tables.state(JOB), "main")]


def test_other_tenants_of_the_metrics_keep_their_rows(warehouse: str) -> None:
    path = table_path(warehouse, "rewindow/metrics")
    DeltaTable(path).update(updates={"job": "'other'"}, predicate="_run = 1")
    assert set(fix(warehouse).drift) == {"metrics"}
    assert "other" in set(read_rows(path, ["job"])["job"].to_pylist())
    assert fix(warehouse) == Republished({}, [], [])


def test_a_run_that_gives_other_rows_stops_it(warehouse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(DeltaTables(warehouse).ledger(JOB).read())
    remove_a_file(warehouse)
    take = CountFold.take
    monkeypatch.setattr(CountFold, "take", lambda *given: [take(*given) for _ in range(2)])  # counts every record twice
    with pytest.raises(
        InvariantError, match=r"main/2 was repeated and gave other rows than it committed. changelog/closed: before"
    ):
        fix(warehouse)
    assert len(DeltaTables(warehouse).ledger(JOB).read()) == before


def test_other_code_does_not_make_it_again(warehouse: str) -> None:
    remove_a_file(warehouse)
    with pytest.raises(CheckpointError, match=r"(?s)made by different code \(fingerprint .*Check out the code"):
        fix(warehouse, aggregate={"n": Count(), "sum": Sum()})


def test_it_can_be_killed_anywhere(warehouse: str, three_runs: str) -> None:
    drop_changelog(warehouse)
    remove_a_file(warehouse)
    for stop in count(1):
        if not _steps(warehouse, stop):
            break
    assert DeltaTables(warehouse).hashes(JOB, "main") == DeltaTables(three_runs).hashes(JOB, "main")


def _steps(warehouse: str, stop: int) -> bool:
    """Stop at step number ``stop``. Return False if there are fewer steps."""
    tables = DeltaTables(warehouse)
    who: Iterator[Attempt] = (Attempt(f"killed-{next(_names)}") for _ in count())
    machine = republish(
        a_job(tables), RepublishRequest("main"), lambda: next(who), LocalEngine(), tables, Repair(tables)
    )
    return any(number == stop for number, _ in enumerate(machine, start=1))
