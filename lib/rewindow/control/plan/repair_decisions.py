"""Decide how what another hand did to tables is fixed: a table published anew, a run's files made again. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace

from rewindow.control.plan.branches import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.job_diff import differences
from rewindow.control.plan.ledger_state import fold_row
from rewindow.control.plan.ledger_state_branches import REPUBLISH
from rewindow.control.plan.ledger_state_gc import FORGET, RESTAGE
from rewindow.control.plan.spec import OUTPUT, JobBinding, JournalFile, TableSpec
from rewindow.errors import CheckpointError, InvariantError, StorageError


def decide_republish(state: JobState, branch: str, target: str, table: TableSpec) -> LedgerRow:
    """Return the row that publishes a table anew: one of a branch's outputs, or one that all branches share."""
    is_output = target.startswith(OUTPUT)
    body = {"target": target if is_output else table.path, "branch": branch if is_output else None}
    return LedgerRow(state.rows + 1, REPUBLISH, body)


def decide_restage(state: JobState, run: CommittedRun, attempt: str, journal: JournalFile) -> LedgerRow:
    """Return the row that lets another attempt's files hold a run's rows."""
    body = {"run": run.spec.run, "was": run.commit.attempt, "attempt": attempt, "journal": asdict(journal)}
    return LedgerRow(state.rows + 1, RESTAGE, body)


def decide_give_up(state: JobState, runs: Collection[int]) -> LedgerRow | None:
    """Return the row that forgets runs and snapshots on which no branch stands; None if all are forgotten.

    Raises `StorageError` (74) if a branch does stand on one.
    """
    known = {run.spec.run for run in (*state.committed, *state.snapshots.values())}
    row = LedgerRow(state.rows + 1, FORGET, {"runs": sorted(known & set(runs) - state.forgotten)})
    if not row.body["runs"]:
        return None
    try:
        fold_row(state, row)
    except InvariantError as error:
        message = (
            "a snapshot of the state is gone, and the runs before it were forgotten: put its files back from a copy, or "
            "replay in a new branch"
        )
        raise StorageError(message) from error
    return row


def needed(state: JobState) -> frozenset[int]:
    """Return the runs and snapshots that count: those of each branch's outputs, and what each open one's head is read from."""
    found: list[CommittedRun] = []
    for branch in state.branches.values():
        if branch.is_there:
            found += branch.own_runs
        if branch.is_open and branch.head is not None:
            found += branch.runs
            found += state.basis(branch.head.spec.run)
    return frozenset(run.spec.run for run in found)


def check_same_code(run: CommittedRun, binding: JobBinding) -> None:
    """Raise `CheckpointError` (76) if the code at hand is not that of a run, naming its fingerprint and version."""
    found = differences(replace(run.spec.binding, tables=binding.tables), binding)
    if found:
        listed = "\n".join(f"  - {line}" for line in found)
        versions = run.spec.attempt.versions
        said = ", ".join(f"{name} {version}" for name, version in versions.items()) or "versions that nobody noted"
        message = (
            f"run {run.spec.name} has to be made again, and was made by other code (fingerprint "
            f"{run.spec.binding.fingerprint[:12]}, {said}):\n{listed}\nCheck out the version that made it, then call again"
        )
        raise CheckpointError(message)
