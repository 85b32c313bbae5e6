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

EVERY = 30
"""Number of runs that a restore reads before a snapshot replaces them."""


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
    """Return the last runs of open branches whose state is restored from ``every`` runs or more."""
    heads = {branch.head.spec.run: branch.head for branch in state.branches.values() if branch.is_open and branch.head}
    snapshots = {snapshot.spec.run for snapshot in state.snapshots.values()}
    return [
        head
        for head in heads.values()
        if head.spec.binding.stores
        and sum(run.spec.run not in snapshots for run in state.basis(head.spec.run)) >= every
        and state.has_state(head.spec.run)
    ]


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
