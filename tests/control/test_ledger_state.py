"""The state that a ledger folds to, and the rows that it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewindow.control.plan.job_fold import COMMIT, FENCE, NOTE, decide_reset, fold
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.planner import check_is_pending
from rewindow.control.plan.retention import dead_attempts
from rewindow.control.plan.spec import Commit, RunSpec, add_digests
from rewindow.errors import InvariantError
from tests.control.ledgers import commit_row, plan_row, planned, run_rows
from tests.refusals import containing, refused


def test_an_empty_ledger_is_a_job_without_branches():
    assert fold([]) == JobState()


def test_runs_follow_each_other_within_their_branch():
    rows = run_rows([], "a", through_landing=1)
    rows = run_rows(rows, "b", branch="trial")
    rows = run_rows(rows, "c")

    state = fold(rows)

    assert [(run.spec.name, run.spec.run, run.spec.parent) for run in state.committed] == [
        ("main/1", 1, None),
        ("trial/1", 3, None),
        ("main/2", 5, 1),
    ]
    assert [list(run.spec.epochs) for run in state.branch("main").runs] == [[1], [2, 3]]
    assert [run.shared_ordinal for run in state.committed] == [1, 2, 3]
    assert [len(state.branch(name).publications) for name in ("main", "trial")] == [2, 1]


def test_a_plan_and_a_commit_survive_their_json_form():
    rows = run_rows([], "a", key="2013-01")
    spec, commit = RunSpec.from_json(rows[0].body), Commit.from_json(rows[1].body)

    assert plan_row(spec).body == rows[0].body
    assert commit.as_json() == rows[1].body


def test_a_plan_fences_the_one_before_it():
    first = planned([], "a")
    second = planned([plan_row(first)], "b")
    rows = [plan_row(first), plan_row(second)]

    assert fold(rows).is_pending(second)
    assert not fold(rows).is_pending(first)
    with refused("ledger-row-broken", reason=containing("whose plan is not pending")):
        fold([*rows, commit_row(rows, first)])


def test_a_fence_leaves_nothing_to_commit():
    spec = planned([], "a")
    rows = [plan_row(spec), LedgerRow(2, FENCE, {"run": 1})]

    assert fold(rows).branch("main").pending is None
    with pytest.raises(InvariantError):
        fold([*rows, commit_row(rows, spec)])
    with pytest.raises(InvariantError):
        fold([*rows, LedgerRow(3, FENCE, {"run": 1})])


def test_two_commits_of_one_plan_are_refused():
    rows = run_rows([], "a")
    with pytest.raises(InvariantError):
        fold([*rows, LedgerRow(3, COMMIT, rows[1].body)])


def test_a_reset_forgets_everything_but_the_number_of_rows():
    old, new = "old", "new"
    rows = [replace(one, token=old) for one in run_rows(run_rows([], "a", through_landing=1), "b")]
    state = fold(rows)
    assert state.ledger == old
    row = decide_reset(state, ["out/foreign"])
    assert row is not None
    state = fold([*rows, replace(row, token=new)])
    assert (state.rows, state.ledger, state.branches, state.committed) == (len(rows) + 1, new, {}, ())
    assert state.reset is not None
    assert state.reset.ledger == old
    assert state.reset.tables["out/foreign"] == {}
    assert {"output/totals": 1} in state.reset.tables.values()
    assert decide_reset(state, []) is None


def test_files_of_runs_before_a_reset_stay_for_the_retention():
    rows = run_rows([], "a")
    reset = decide_reset(fold(rows), [])
    assert reset is not None
    rows = [*rows, reset]
    assert dead_attempts(fold(rows)) == frozenset()


def test_a_note_has_no_effect():
    assert fold([LedgerRow(1, NOTE, {"text": "hello"})]) == JobState(rows=1)


def test_an_unknown_kind_of_row_is_refused():
    with refused("ledger-row-broken", reason=containing("update rewindow")):
        fold([LedgerRow(1, "SWITCH", {})])


@pytest.mark.parametrize(
    "change",
    [
        {"run": 9},
        {"parent": 7},
        {"number": 5},
        {"first_epoch": 1},
        {"first_epoch": 4},
        {"last_epoch": 1},
        {"generation": 0},
        {"clock_from_ms": 0},
        {"clock_to_ms": 0},
        {"job": "another"},
    ],
    ids=str,
)
def test_a_plan_that_does_not_follow_is_refused(change):
    rows = run_rows([], "a", through_landing=1)
    spec = planned(rows, "b")
    fold([*rows, plan_row(spec)])

    wrong = LedgerRow(3, "PLAN", {**spec.as_json(), **change})

    with refused("ledger-row-broken", row=3):
        fold([*rows, wrong])


@pytest.mark.parametrize("change", [{"chain": "0" * 64}, {"attempt": "z"}, {"run": 4}, {"watermark_ms": 1}], ids=str)
def test_a_commit_that_is_not_of_the_plan_is_refused(change):
    spec = planned([], "a")
    row = commit_row([plan_row(spec)], spec)
    with pytest.raises(InvariantError):
        fold([plan_row(spec), LedgerRow(2, COMMIT, {**row.body, **change})])


def test_altering_a_committed_plan_breaks_the_chain():
    rows = run_rows([], "a")
    altered = {**rows[0].body, "generation": 2}
    with refused("ledger-row-broken", reason=containing("chain")):
        fold([LedgerRow(1, "PLAN", altered), rows[1]])


def test_a_sealed_branch_takes_no_plan():
    open_rows = run_rows([], "a", through_landing=1)
    sealed = run_rows([], "a", through_landing=1, final=True)
    with refused("ledger-row-broken", reason=containing("sealed")):
        fold([*sealed, plan_row(planned(open_rows, "b"))])


def test_a_final_run_may_take_no_epoch():
    rows = run_rows([], "a")
    rows = run_rows(rows, "b", final=True)
    state = fold(rows)
    assert list(state.branch("main").runs[-1].spec.epochs) == []
    assert (state.branch("main").last_epoch, state.branch("main").is_sealed) == (3, True)


def test_a_fenced_attempt_is_told_to_run_again():
    first = planned([], "a")
    second = planned([plan_row(first)], "b")
    state = fold([plan_row(first), plan_row(second)])
    check_is_pending(state, second)
    with refused("run-fenced") as fenced:
        check_is_pending(state, first)
    assert fenced.value.exit_code == 75


def test_digests_add_up_and_wrap_around():
    assert add_digests([]) == "0" * 32
    assert add_digests(["f" * 32, "0" * 15 + "1" + "0" * 15 + "2"]) == "0" * 31 + "1"
