"""Branch operations on real tables: their rows after a rewind, on a branch, after a promotion, and republished."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rewindow import Count, Sum
from rewindow.contracts.tasks import Execution
from rewindow.control import branch as branching
from rewindow.control.branch import reset
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.job_fold import REPUBLISH
from rewindow.control.plan.job_state import CommittedRun, LedgerRow
from rewindow.control.plan.spec import Attempt
from rewindow.control.verify import verify
from rewindow.engine.worker import local_engine as local
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.engine.worker.vectorized.folds import CountFold
from rewindow.errors import CheckpointError, NotNowError, UsageError
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import content_hash, read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.diff import compare
from rewindow.tables.shared.paths import output_path
from tests.tables.scene import JOB, a_job, finish, land, machine, one_by_one, replay

pytestmark = pytest.mark.slow


def totals(warehouse: str, branch: str = "main") -> str:
    return table_path(warehouse, output_path("alerts.totals", branch))


def runs_in(warehouse: str, branch: str = "main") -> list[int]:
    return sorted(set(read_rows(totals(warehouse, branch), ["_run"])["_run"].to_pylist()))


@pytest.fixture(scope="module")
def five_runs(tmp_path_factory):
    """Return a warehouse with five landings, each replayed by one run."""
    return one_by_one(tmp_path_factory.mktemp("five"), runs=5)


@pytest.fixture
def warehouse(five_runs, tmp_path):
    """Return a copy of the warehouse with five runs. A warehouse can be copied because it contains no absolute paths."""
    return shutil.copytree(five_runs, str(tmp_path / "w"))


def names(warehouse: str, branch: str = "main") -> list[str]:
    return [run.spec.name for run in DeltaTables(warehouse).state(JOB).branch(branch).runs]


def test_a_rewind_takes_the_later_rows_out_and_a_replay_brings_them_back(warehouse):
    before = content_hash(totals(warehouse))
    tables = DeltaTables(warehouse)
    drive(branching.rewind(JOB, "main", "main/2", tables))
    assert names(warehouse) == ["main/1", "main/2"]
    kept = {run.spec.run for run in tables.state(JOB).branch("main").runs}
    assert set(runs_in(warehouse)) <= kept
    finish(warehouse)
    assert content_hash(totals(warehouse)) == before
    assert tables.hashes(JOB, "main")  # stores and metrics can be read, without rows of rewound runs


def test_what_a_rewound_branch_says_is_what_a_branch_says_that_never_went_further(warehouse):
    tables = DeltaTables(warehouse)
    drive(branching.rewind(JOB, "main", "3", tables))
    replay(warehouse, "trial", "trial", through_landing=3)
    assert tables.hashes(JOB, "main") == tables.hashes(JOB, "trial")


def test_a_rewind_to_the_beginning_leaves_empty_tables(warehouse):
    drive(branching.rewind(JOB, "main", "0", DeltaTables(warehouse)))
    assert names(warehouse) == []
    assert read_rows(totals(warehouse)).num_rows == 0


def test_a_branch_stands_on_its_parents_state_and_changes_nothing_of_it(warehouse):
    before = content_hash(totals(warehouse))
    tables = DeltaTables(warehouse)
    drive(branching.branch(JOB, "trial", tables, at="main/2"))
    replay(warehouse, "b", "trial")
    assert names(warehouse, "trial") == ["main/1", "main/2", "trial/3"]
    assert content_hash(totals(warehouse)) == before
    later = {run.spec.run for run in tables.state(JOB).branch("main").runs[2:]}
    main = read_rows(totals(warehouse)).to_pylist()
    mine = read_rows(totals(warehouse, "trial")).to_pylist()
    assert Counter(map(without_run, mine)) == Counter(without_run(row) for row in main if row["_run"] in later)


def without_run(row):
    return tuple(sorted((name, value) for name, value in row.items() if name != "_run"))


def test_a_promotion_brings_the_branchs_rows_in_and_takes_the_others_out(warehouse):
    before = content_hash(totals(warehouse))
    tables = DeltaTables(warehouse)
    drive(branching.branch(JOB, "trial", tables, at="main/2"))
    replay(warehouse, "b", "trial")
    drive(branching.promote(JOB, "trial", a_job(tables).binding, tables))
    assert names(warehouse) == ["main/1", "main/2", "trial/3"]
    assert content_hash(totals(warehouse)) == before
    runs = {run.spec.run for run in tables.state(JOB).branch("main").runs}
    assert set(runs_in(warehouse)) <= runs
    land(warehouse, 6)
    replay(warehouse, "c")
    assert names(warehouse)[-1] == "main/6", "main/3 to main/5 are the replaced runs"
    with pytest.raises(CheckpointError, match="promoted"):
        replay(warehouse, "d", "trial")


def test_a_branch_that_is_behind_is_not_promoted(warehouse):
    tables = DeltaTables(warehouse)
    drive(branching.branch(JOB, "trial", tables, at="main/2"))
    with pytest.raises(NotNowError, match="let it catch up"):
        drive(branching.promote(JOB, "trial", a_job(tables).binding, tables))


def test_a_run_in_flight_is_fenced_by_a_rewind(warehouse):
    land(warehouse, 6)
    run = machine(warehouse, "slow")
    for step in run:
        if step == "commit":
            break
    drive(branching.rewind(JOB, "main", "main/4", DeltaTables(warehouse)))
    with pytest.raises(NotNowError, match="fenced"):
        drive(run)
    assert names(warehouse)[-1] == "main/4"


@pytest.mark.parametrize("held_at", ["execute", "execute sub-topology 0", "stage", "commit"])
def test_a_run_in_flight_during_a_reset_is_to_be_called_again(warehouse, held_at, monkeypatch):
    """In record execution, because its tasks count from the offsets of their checkpoint, which is gone."""
    monkeypatch.setattr(local, "chosen_execution", lambda *_: Execution.RECORD)
    land(warehouse, 6)
    run = machine(warehouse, "slow")
    for step in run:
        if step == held_at:
            break
    drive(reset(JOB, [output_path("alerts.totals", "main")], DeltaTables(warehouse)))
    with pytest.raises(NotNowError, match="run again"):
        drive(run)
    assert names(warehouse) == []


@pytest.mark.parametrize("said", ["main/5", "5"])
def test_a_rewind_to_the_head_writes_nothing(warehouse, said):
    before = DeltaTables(warehouse).state(JOB).rows
    assert drive(branching.rewind(JOB, "main", said, DeltaTables(warehouse))) is None
    assert DeltaTables(warehouse).state(JOB).rows == before


def test_an_unknown_run_is_answered_with_those_that_there_are(warehouse):
    with pytest.raises(UsageError, match="main/4, main/5"):
        drive(branching.rewind(JOB, "main", "main/9", DeltaTables(warehouse)))


def test_a_dropped_branch_takes_no_more_runs_and_its_name_is_gone(warehouse):
    tables = DeltaTables(warehouse)
    drive(branching.branch(JOB, "trial", tables, at="main/2"))
    drive(branching.drop(JOB, "trial", tables))
    with pytest.raises(CheckpointError, match="dropped"):
        replay(warehouse, "b", "trial")


def test_a_table_published_anew_holds_what_is_due_once(warehouse):
    before = content_hash(totals(warehouse))
    tables = DeltaTables(warehouse)
    drive(branching.rewind(JOB, "main", "main/4", tables))
    finish(warehouse)
    state = tables.state(JOB)
    tables.append(JOB, LedgerRow(state.rows + 1, REPUBLISH, {"target": "output/totals", "branch": "main"}))
    for _ in range(2):
        list(tables.publish(JOB, tables.state(JOB), "main"))
        assert content_hash(totals(warehouse)) == before
    land(warehouse, 6)
    replay(warehouse, "later")
    assert len(runs_in(warehouse)) >= 5


def test_who_has_not_seen_that_a_table_is_published_anew_adds_nothing_to_it(warehouse):
    land(warehouse, 6)
    zombie = machine(warehouse, "zombie")
    for step in zombie:
        if step.startswith("publish output"):
            break
    tables = DeltaTables(warehouse)
    for step in branching.rewind(JOB, "main", "main/5", tables):
        if step.startswith("publish"):
            break
    state = tables.state(JOB)
    tables.append(JOB, LedgerRow(state.rows + 1, REPUBLISH, {"target": "output/totals", "branch": "main"}))
    list(tables.publish(JOB, tables.state(JOB), "main"))
    assert list(zombie)[-1] == "done"
    assert set(runs_in(warehouse)) <= {run.spec.run for run in tables.state(JOB).branch("main").runs}


def verified(warehouse: str, run: CommittedRun, name: str = "check"):
    tables = DeltaTables(warehouse)
    return drive(verify(a_job(tables), run, Attempt(name), LocalEngine(), tables))


def test_a_deterministic_run_is_proven_so_and_leaves_nothing_behind(warehouse):
    before = files_in(warehouse)
    for run in DeltaTables(warehouse).state(JOB).branch("main").runs:
        proof = verified(warehouse, run)
        assert proof.differences == {}
        assert sum(proof.counts.values()) > 0
    assert files_in(warehouse) == before


def test_a_run_is_verified_in_the_execution_that_it_took(tmp_path, monkeypatch):
    warehouse = str(tmp_path / "w")
    land(warehouse, 3)
    with monkeypatch.context() as patch:
        patch.setattr(local, "choose_execution", lambda *_given, **_more: "as before there was another")
        replay(warehouse, "a", through_landing=2)
    replay(warehouse, "b")
    tables = DeltaTables(warehouse)
    runs = tables.state(JOB).branch("main").runs
    assert [any(report.is_vectorized for report in tables.reports(run)) for run in runs] == [False, True]
    assert all(verified(warehouse, run).differences == {} for run in runs)


def test_a_rewound_run_can_still_be_verified(warehouse):
    last = DeltaTables(warehouse).state(JOB).branch("main").runs[-1]
    drive(branching.rewind(JOB, "main", "main/2", DeltaTables(warehouse)))
    assert verified(warehouse, last).differences == {}


def test_a_run_that_is_made_otherwise_is_shown_by_its_first_row(tmp_path, monkeypatch):
    warehouse = str(tmp_path / "w")
    land(warehouse, 3)
    replay(warehouse, "a")
    (run,) = DeltaTables(warehouse).state(JOB).branch("main").runs
    take = CountFold.take
    monkeypatch.setattr(CountFold, "take", lambda *given: [take(*given) for _ in range(2)])  # counts every record twice
    found = verified(warehouse, run).differences
    assert set(found) == {"changelog/sums", "changelog/closed", "output/totals"}
    assert "before, not now: {'user':" in found["output/totals"]


def test_other_code_than_the_runs_cannot_verify_it(warehouse):
    tables = DeltaTables(warehouse)
    run = tables.state(JOB).branch("main").runs[-1]
    with pytest.raises(CheckpointError, match="made by different code"):
        drive(verify(a_job(tables, aggregate={"n": Count(), "sum": Sum()}), run, Attempt("x"), LocalEngine(), tables))


def test_two_branches_are_compared_key_by_key(warehouse):
    replay(warehouse, "t", "trial", aggregate=Count())
    one_partition = pc.field("_partition") == 0
    first, second = (read_rows(totals(warehouse, name), where=one_partition) for name in ("main", "trial"))
    keys = ["user", "window_start", "window_end"]
    assert compare(first, second, keys).is_none
    changed = second.set_column(
        second.schema.get_field_index("value"),
        "value",
        pa.array([v + (n == 3) for n, v in enumerate(second["value"].to_pylist())]),
    )
    found = compare(first, changed.slice(1), keys)
    assert (found.different, found.only_first, found.only_second) == (1, 1, 0)
    assert len(found.samples) == 2


def files_in(folder: str) -> set[Path]:
    return {path for path in Path(folder).rglob("*") if path.is_file()}
