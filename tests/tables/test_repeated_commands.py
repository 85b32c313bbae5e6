"""A command that was killed after its ledger row and is called again publishes what was decided, and ends well."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rewindow.control import branch as branching
from rewindow.control.drift_repair import RepublishRequest, republish
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.job_state import LedgerRow, Standing
from rewindow.control.plan.spec import Attempt
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.errors import CheckpointError, ConfigError, UsageError
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.repair import Repair
from rewindow.tables.delta.table_rows import content_hash, read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import output_path
from tests.tables.scene import JOB, a_job, machine, one_by_one, replay

pytestmark = pytest.mark.slow

Command = Callable[[DeltaTables], Iterator[str]]


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four landings, three of them taken one by one, and a branch after the first that is as far."""
    made = one_by_one(tmp_path_factory.mktemp("three"), runs=3, landings=4)
    drive(branching.branch(JOB, "trial", DeltaTables(made), at="main/1"))
    replay(made, "t", "trial", through_landing=3)
    return made


@pytest.fixture
def warehouse(three_runs: str, tmp_path: Path) -> str:
    return shutil.copytree(three_runs, str(tmp_path / "w"))


def rewind(tables: DeltaTables) -> Iterator[str]:
    return branching.rewind(JOB, "main", "main/1", tables)


def promote(tables: DeltaTables) -> Iterator[str]:
    return branching.promote(JOB, "trial", a_job(tables).binding, tables)


def drop(tables: DeltaTables) -> Iterator[str]:
    return branching.drop(JOB, "trial", tables)


def branch(tables: DeltaTables) -> Iterator[str]:
    return branching.branch(JOB, "new", tables, at="main/2")


def die_after_the_row(command: Command, warehouse: str) -> None:
    """Drive a command to its first step after the row, and leave it there."""
    tables = DeltaTables(warehouse)
    before = tables.state(JOB).rows
    for _ in command(tables):
        if tables.state(JOB).rows > before:
            return


def rows_of(warehouse: str, branch: str = "main") -> set[int]:
    path = table_path(warehouse, output_path("alerts.totals", branch))
    return set(read_rows(path, ["_run"])["_run"].to_pylist())


def all_published(warehouse: str) -> bool:
    tables = DeltaTables(warehouse)
    state = tables.state(JOB)
    return not any(tables.lagging(JOB, state, name) for name in state.branches)


@pytest.mark.parametrize("command", [rewind, promote, drop, branch])
def test_the_same_command_again_publishes_and_ends_well(warehouse: str, command: Command) -> None:
    clean = shutil.copytree(warehouse, f"{warehouse}-clean")
    drive(command(DeltaTables(clean)))  # type: ignore[arg-type]
    die_after_the_row(command, warehouse)
    decided = DeltaTables(warehouse).state(JOB).rows
    for _ in range(2):
        drive(command(DeltaTables(warehouse)))  # type: ignore[arg-type]
        assert DeltaTables(warehouse).state(JOB).rows == decided
        assert all_published(warehouse)
        assert DeltaTables(warehouse).hashes(JOB, "main") == DeltaTables(clean).hashes(JOB, "main")
        assert rows_of(warehouse) == rows_of(clean)


def test_a_rewind_that_is_repeated_after_another_run_takes_that_back_too(warehouse: str) -> None:
    drive(rewind(DeltaTables(warehouse)))  # type: ignore[arg-type]
    replay(warehouse, "later", through_landing=2)
    drive(rewind(DeltaTables(warehouse)))  # type: ignore[arg-type]
    assert [run.spec.name for run in DeltaTables(warehouse).state(JOB).branch("main").runs] == ["main/1"]
    assert all_published(warehouse)


def test_a_rewind_to_the_last_run_leaves_a_run_in_flight_alone(warehouse: str) -> None:
    run = machine(warehouse, "slow")
    for step in run:
        if step == "commit":
            break
    drive(branching.rewind(JOB, "main", "main/3", DeltaTables(warehouse)))
    assert list(run)[-1] == "done"


def test_a_request_that_cannot_be_met_still_publishes_what_was_decided_before(warehouse: str) -> None:
    die_after_the_row(rewind, warehouse)
    assert not all_published(warehouse)
    with pytest.raises(UsageError, match="main/9"):
        drive(branching.rewind(JOB, "main", "main/9", DeltaTables(warehouse)))
    assert all_published(warehouse)


def test_tables_behind_the_ledger_are_counted(warehouse: str) -> None:
    assert all_published(warehouse)
    die_after_the_row(rewind, warehouse)
    tables = DeltaTables(warehouse)
    assert tables.lagging(JOB, tables.state(JOB), "main") == {"output/totals": 1}


def test_a_promotion_that_was_rewound_is_not_taken_for_done(warehouse: str) -> None:
    drive(promote(DeltaTables(warehouse)))  # type: ignore[arg-type]
    drive(branching.rewind(JOB, "main", "main/1", DeltaTables(warehouse)))
    with pytest.raises(CheckpointError, match="promoted"):
        drive(promote(DeltaTables(warehouse)))  # type: ignore[arg-type]


def test_a_promotion_stays_done_when_main_goes_on(warehouse: str) -> None:
    drive(promote(DeltaTables(warehouse)))  # type: ignore[arg-type]
    replay(warehouse, "later")
    drive(promote(DeltaTables(warehouse)))  # type: ignore[arg-type]
    assert DeltaTables(warehouse).state(JOB).branch("main").last_epoch == 4


def test_a_branch_of_that_name_from_another_run_is_refused(warehouse: str) -> None:
    drive(branch(DeltaTables(warehouse)))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="used before"):
        drive(branching.branch(JOB, "new", DeltaTables(warehouse), at="main/1"))
    drive(branching.drop(JOB, "new", DeltaTables(warehouse)))
    with pytest.raises(ConfigError, match="used before"):
        drive(branch(DeltaTables(warehouse)))  # type: ignore[arg-type]


def test_an_unknown_branch_is_not_rewound_to_its_beginning(warehouse: str) -> None:
    with pytest.raises(UsageError, match="no branch 'tiral'"):
        drive(branching.rewind(JOB, "tiral", "0", DeltaTables(warehouse)))


def test_a_branch_that_cannot_be_published_can_still_be_dropped(warehouse: str) -> None:
    for step in machine(warehouse, "t2", "trial"):
        if step.startswith("publish "):
            break
    (lost,) = (run for run in DeltaTables(warehouse).state(JOB).branch("trial").runs[-1:])
    for report in DeltaTables(warehouse).reports(lost):
        for file in report.files:
            if file.target == "output/totals":
                Path(table_path(warehouse, output_path("alerts.totals", "trial")), file.path).unlink()
    drive(drop(DeltaTables(warehouse)))  # type: ignore[arg-type]
    assert DeltaTables(warehouse).state(JOB).branch("trial").standing is Standing.DROPPED
    assert all_published(warehouse)


def test_republish_says_what_an_interrupted_command_had_left(warehouse: str) -> None:
    before = content_hash(table_path(warehouse, output_path("alerts.totals")))
    tables = DeltaTables(warehouse)

    def again(*targets: str) -> Iterator[str]:
        asked = RepublishRequest("main", targets)
        return republish(a_job(tables), asked, lambda: Attempt("fix"), LocalEngine(), tables, Repair(tables))

    die_after_the_row(lambda _: again("output/totals"), warehouse)
    done = drive(again())  # type: ignore[arg-type]
    assert (done.lagged, done.republished) == (("output/totals",), [])  # type: ignore[attr-defined]
    assert content_hash(table_path(warehouse, output_path("alerts.totals"))) == before
    assert isinstance(tables.ledger_rows(JOB)[-1], LedgerRow)
