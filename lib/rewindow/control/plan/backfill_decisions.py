"""Decide how a backfill begins: with a new branch, on the branch as it is, or by starting that branch over. Pure.

A backfill recomputes history with the code of today. So a branch whose own runs executed other code starts over, and one
that a repeated command finds unchanged goes on where it ended (ADR-87). Nothing is decided that the first run would then
refuse: a refused backfill leaves no branch behind, and keeps the runs that it would have replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branch_decisions import BEGINNING, check_open, decide_branch, decide_rewind, run_before
from rewindow.control.plan.branches import Branch, JobState, LedgerRow
from rewindow.control.plan.job_diff import changes_since
from rewindow.control.plan.ledger_state import fold_row
from rewindow.control.plan.output_columns import check_kept
from rewindow.control.plan.planner import Alive, check_not_live, plan_run
from rewindow.control.plan.spec import MAIN, Attempt, JobBinding, RunRequest, RunSpec
from rewindow.errors import UsageError


@dataclass(frozen=True, slots=True)
class Backfill:
    """A backfill: its first epoch, the request of its runs, and the job as it is now, bound to the branch."""

    first_epoch: int
    request: RunRequest
    feed: Feed
    binding: JobBinding
    attempt: Attempt
    alive: Alive


def decide_backfill(wanted: Backfill, state: JobState, check: Callable[[RunSpec], None]) -> LedgerRow | None:
    """Return the row that creates or rewinds the branch of a backfill; None if it can run as it is.

    Raises what `plan_run` and ``check`` raise for the run that follows, `UsageError` (2) for a branch that starts too
    late, and `CheckpointError` (76) for one whose output tables have other columns.
    """
    row = _first_row(wanted, state)
    if row is not None:
        after = fold_row(state, row)
        first = plan_run(after, wanted.feed, wanted.request, wanted.binding, wanted.attempt, wanted.alive)
        if isinstance(first, RunSpec):
            check(first)
    return row


def _first_row(wanted: Backfill, state: JobState) -> LedgerRow | None:
    name = wanted.request.branch
    if name not in state.branches:
        return decide_branch(state, name, MAIN, run_before(state, state.branch(MAIN), wanted.first_epoch))
    branch = state.branches[name]
    check_open(branch)
    _check_covers(wanted, branch)
    if not branch.has_own_runs or not changes_since(branch, wanted.binding):
        return None
    check_not_live(branch, wanted.request, wanted.alive)
    check_kept(branch, wanted.binding)
    return decide_rewind(state, name, branch.base.spec.name if branch.base else BEGINNING)


def _check_covers(wanted: Backfill, branch: Branch) -> None:
    """Raise `UsageError` (2) if a branch starts after the epoch from which to replay."""
    base = branch.base
    if base is None or base.spec.input.last < wanted.first_epoch:
        return
    message = (
        f"branch {branch.name!r} starts after run {base.spec.name}, with epoch {base.spec.input.last + 1}, so it cannot "
        f"replay from epoch {wanted.first_epoch}: use another branch, or drop this one with "
        f"`rewindow branch drop {wanted.binding.job} {branch.name}`"
    )
    raise UsageError(message)
