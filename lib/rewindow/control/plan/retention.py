"""Decide which state of a job `gc` keeps and which it forgets, from the ledger and a retention. Pure.

Kept is the state after the last run of every open branch, after every run younger than the retention (including rewound
runs and runs of dropped branches), and after the last older run of every open branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from rewindow.control.plan.branches import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.commit import JournalFile, TargetTotal
from rewindow.control.plan.ledger_state import PLAN
from rewindow.control.plan.ledger_state_gc import FORGET, SNAPSHOT
from rewindow.control.plan.reset import RESET
from rewindow.control.plan.spec import CHANGELOG

EVERY = 30
"""Number of runs that a restore reads before a snapshot replaces them."""
MOST_RUNS = 8
"""After so many times `EVERY` runs a snapshot is due however few rows have changed: each run has its own files."""
MOST_ROWS = 5_000_000
"""The rows of changelogs from which `run` writes a snapshot."""


def dead_attempts(rows: Iterable[LedgerRow], state: JobState) -> frozenset[str]:
    """Return the attempts that can no longer commit, because a later row replaced their plan.

    Leaves out the attempt that a pending plan repeats, since its output is compared with the new one; and those before a
    RESET, whose committed files stay for the retention.
    """
    planned: list[str] = []
    for row in rows:
        if row.kind == RESET:
            planned.clear()
        elif row.kind == PLAN:
            planned.append(row.body["attempt"]["id"])
    kept = {attempt for run in state.committed for attempt in (run.spec.attempt.id, run.commit.attempt)}
    for branch in state.branches.values():
        if branch.pending is not None:
            kept |= {branch.pending.attempt.id, branch.pending.repeats or ""}
    return frozenset(attempt for attempt in planned if attempt not in kept)


def due_snapshots(state: JobState, every: int = EVERY) -> list[CommittedRun]:
    """Return the last runs of open branches that are due for a snapshot."""
    heads = {branch.head.spec.run: branch.head for branch in state.branches.values() if branch.is_open and branch.head}
    return [head for head in heads.values() if is_due(state, head, every)]


def due_before_run(state: JobState, branch: str, every: int = EVERY) -> CommittedRun | None:
    """Return the last run of a branch if the next run writes a snapshot of it first; None if it does not.

    `gc` writes those with many rows, which are held in memory.
    """
    head = state.branch(branch).head
    if head is None or not state.branch(branch).is_open or not is_due(state, head, every):
        return None
    return head if sum(map(_changes, state.basis(head.spec.run))) <= MOST_ROWS else None


def is_due(state: JobState, run: CommittedRun, every: int) -> bool:
    """Return whether the state after a run, the last of an open branch, is due for a snapshot.

    It is restored from ``every`` runs or more, and they changed half as many rows as the last snapshot has: otherwise writing
    all rows again would cost more than it saves. After `MOST_RUNS` times as many runs it is due in any case.
    """
    heads = [branch.head for branch in state.branches.values() if branch.is_open]
    if run not in heads or not run.spec.binding.stores or not state.has_state(run.spec.run):
        return False
    basis, snapshots = state.basis(run.spec.run), {one.spec.run for one in state.snapshots.values()}
    later = [one for one in basis if one.spec.run not in snapshots]
    known = sum(_changes(one) for one in basis if one.spec.run in snapshots)
    pays = 2 * sum(map(_changes, later)) >= known
    return len(later) >= every and (pays or len(later) >= MOST_RUNS * every)


def _changes(run: CommittedRun) -> int:
    """Return how many rows of changelogs a run or snapshot has."""
    return sum(total.rows for target, total in run.commit.targets.items() if target.startswith(CHANGELOG))


def decide_snapshot(
    state: JobState, run: CommittedRun, attempt: str, journal: JournalFile, targets: Mapping[str, TargetTotal]
) -> LedgerRow:
    """Return the row that makes a snapshot the state after a run."""
    body = {
        "run": run.spec.run,
        "attempt": attempt,
        "journal": asdict(journal),
        "targets": {target: asdict(total) for target, total in targets.items()},
    }
    return LedgerRow(state.rows + 1, SNAPSHOT, body)


def decide_forget(state: JobState, before_ms: int) -> LedgerRow | None:
    """Return the row that forgets unneeded runs and snapshots committed before a time; None if there are none."""
    wanted: list[CommittedRun] = [run for run in state.committed if run.recorded_at >= before_ms]
    for branch in state.branches.values():
        if branch.is_open:
            wanted += branch.runs[-1:]
            wanted += [run for run in branch.runs if run.recorded_at < before_ms][-1:]
    kept = {one.spec.run for run in wanted for one in state.basis(run.spec.run)}
    known = [*state.committed, *state.snapshots.values()]
    forgotten = sorted(
        run.spec.run
        for run in known
        if run.recorded_at < before_ms and run.spec.run not in kept and run.spec.run not in state.forgotten
    )
    return LedgerRow(state.rows + 1, FORGET, {"runs": forgotten}) if forgotten else None
