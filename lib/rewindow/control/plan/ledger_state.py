"""Fold a job's ledger rows into branches, runs and publications, and check every row. Pure.

=========  ========================================================================================================
PLAN       plans a run; an earlier plan of the branch that is not committed can never be committed
COMMIT     makes a run true; allowed only for the pending plan of its branch
FENCE      ends the pending plan without a new one
NOTE       a note for people; has no effect
BRANCH     creates a branch from the runs of another, up to one of them; folded in `ledger_state_branches`, as the next 4
REWIND     removes the later runs of a branch from its chain
PROMOTE    replaces a branch's chain by that of another
DROP       drops a branch
REPUBLISH  starts a new publication epoch of a table
RESTAGE    names new files for a run whose files were lost; folded in `ledger_state_gc`, as the next 2
SNAPSHOT   names files with all stores after a run, which are read instead of all runs up to it
FORGET     removes runs and snapshots that no branch needs from the changelogs
ACCEPT     publishes a run that is on hold; folded in `ledger_state_holds`
RESET      starts the job over: nothing before it counts; folded in `reset`
=========  ========================================================================================================

A row that does not fit is a broken invariant (exit code 70): something other than rewindow wrote to the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from rewindow.control.plan import ledger_state_branches, ledger_state_gc, ledger_state_holds, reset
from rewindow.control.plan.branches import Branch, CommittedRun, JobState, LedgerRow, Publication, Standing, with_shared
from rewindow.control.plan.commit import Commit, chain_hash
from rewindow.control.plan.ledger_rows import broken, with_branch
from rewindow.control.plan.ledger_state_holds import with_run
from rewindow.control.plan.reset import RESET
from rewindow.control.plan.spec import RunSpec

PLAN, COMMIT, FENCE, NOTE = "PLAN", "COMMIT", "FENCE", "NOTE"


def fold(rows: Iterable[LedgerRow]) -> JobState:
    """Return the state that a job's ledger rows describe. Raises `InvariantError` (70) at the first row that does not fit."""
    state = JobState()
    for row in rows:
        state = fold_row(state, row)
    return state


def fold_row(state: JobState, row: LedgerRow) -> JobState:
    """Return the state after one more row. Raises `InvariantError` (70) if the row does not fit."""
    if row.seq != state.rows + 1:
        raise broken(row, f"it follows row {state.rows}")
    state = replace(state, rows=row.seq, ledger=state.ledger or row.token)
    if row.kind not in _FOLDS:
        raise broken(row, "this version of rewindow does not know its kind: update rewindow")
    after = _FOLDS[row.kind](state, row)
    return after if row.kind in (COMMIT, RESET) else _with_dead(state, after)


def _with_dead(before: JobState, after: JobState) -> JobState:
    """Note the attempts whose plans a row has ended without committing them."""
    ended = _planned(before) - _planned(after)
    return replace(after, dead=after.dead | ended) if ended else after


def _planned(state: JobState) -> set[str]:
    return {branch.pending.attempt.id for branch in state.branches.values() if branch.pending is not None}


def _fold_plan(state: JobState, row: LedgerRow) -> JobState:
    branch = state.branch(row.body["branch"])
    head = branch.head
    spec = RunSpec.from_json(row.body, head.spec if head else None)
    if spec.run != row.seq:
        raise broken(row, f"its run is {spec.run}")
    if state.committed and spec.job != state.committed[0].spec.job:
        raise broken(row, f"it plans the job {spec.job!r} in the ledger of {state.committed[0].spec.job!r}")
    if branch.is_sealed:
        raise broken(row, f"the branch {spec.branch!r} is sealed")
    if branch.standing is not Standing.OPEN:
        raise broken(row, f"the branch {spec.branch!r} is {branch.standing}")
    # A run's number was first its position in the chain, then that or the next one that its branch had not used (ADR-141).
    numbers = (branch.next_number, max(len(branch.runs), branch.last_number) + 1, len(branch.runs) + 1)
    if spec.parent != (head.spec.run if head else None) or spec.number not in numbers:
        raise broken(row, f"run {spec.name} says its parent is {spec.parent}, the ledger's is {head and head.spec.run}")
    if spec.input.first != branch.last_epoch + 1 or spec.input.last < spec.input.first - spec.final:
        epochs = f"{spec.input.first}..{spec.input.last}"
        raise broken(row, f"run {spec.name} takes epochs {epochs} after epoch {branch.last_epoch}")
    if spec.input.clock_from_ms != branch.watermark_ms or spec.input.clock_to_ms < spec.input.clock_from_ms:
        clock = f"{spec.input.clock_from_ms} to {spec.input.clock_to_ms}"
        raise broken(row, f"the clock of run {spec.name} goes from {clock} after {branch.watermark_ms}")
    if head and spec.input.generation < head.spec.input.generation:
        raise broken(row, f"run {spec.name} goes back to generation {spec.input.generation} of the feed")
    return with_branch(state, replace(branch, pending=spec))


def _fold_commit(state: JobState, row: LedgerRow) -> JobState:
    commit = Commit.from_json(row.body)
    branch = _pending_in(state, commit.run)
    if branch is None or branch.pending is None or branch.pending.attempt.id != commit.attempt:
        raise broken(row, f"it commits run {commit.run} of attempt {commit.attempt}, whose plan is not pending")
    spec = branch.pending
    if commit.chain != chain_hash(branch.chain, spec, commit.targets):
        raise broken(row, f"the chain of run {spec.name} is not that of its plan, its parent and its digests")
    if commit.watermark_ms != spec.input.clock_to_ms:
        raise broken(row, f"run {spec.name} ends at {commit.watermark_ms}, planned was {spec.input.clock_to_ms}")
    run = CommittedRun(spec, commit, row.seq, len(state.committed) + 1, row.recorded_at)
    last = max(branch.last_number, spec.number)
    added = with_run(branch, run)
    grown = replace(added, runs=branch.runs.append(run), pending=None, tables=spec.binding.tables, last_number=last)
    changes = with_shared(state.changes, Publication(adds=(run,)))
    return with_branch(replace(state, committed=state.committed.append(run), changes=changes), grown)


def _fold_fence(state: JobState, row: LedgerRow) -> JobState:
    branch = _pending_in(state, row.body["run"])
    if branch is None:
        raise broken(row, f"it fences run {row.body['run']}, whose plan is not pending")
    return with_branch(state, replace(branch, pending=None))


def _fold_note(state: JobState, row: LedgerRow) -> JobState:
    del row
    return state


def _pending_in(state: JobState, run: int) -> Branch | None:
    for branch in state.branches.values():
        if branch.pending is not None and branch.pending.run == run:
            return branch
    return None


_FOLDS: Mapping[str, Callable[[JobState, LedgerRow], JobState]] = {
    PLAN: _fold_plan,
    COMMIT: _fold_commit,
    FENCE: _fold_fence,
    NOTE: _fold_note,
    **ledger_state_branches.FOLDS,
    **ledger_state_gc.FOLDS,
    **ledger_state_holds.FOLDS,
    **reset.FOLDS,
}
