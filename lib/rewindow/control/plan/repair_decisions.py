"""Decide how to repair drift: republish a table, or restage the files of a run. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict

from rewindow.control.plan.job_diff import differences_besides_tables
from rewindow.control.plan.job_fold import FORGET, REPUBLISH, RESTAGE, fold_row
from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.spec import OUTPUT, JobBinding, JournalFile, TableSpec
from rewindow.errors import CheckpointError, InvariantError, Lines, StorageError


def decide_republish(
    state: JobState, branch: str, target: str, table: TableSpec, without: Collection[int] = ()
) -> LedgerRow:
    """Return the row that republishes a table: an output of a branch, or a table that branches share.

    ``without``: the numbers of runs whose rows are removed from a shared table. Their files are gone, and nothing needs the
    rows.
    """
    is_output = target.startswith(OUTPUT)
    body = {"target": target if is_output else table.path, "branch": branch if is_output else None}
    left = {run.spec.run for run in state.naming(table.path)} & set(without)
    return LedgerRow(state.rows + 1, REPUBLISH, {**body, **({"without": sorted(left)} if left else {})})


def decide_restage(state: JobState, run: CommittedRun, attempt: str, journal: JournalFile) -> LedgerRow:
    """Return the row by which a run uses the files of another attempt instead of its own."""
    body = {"run": run.spec.run, "was": run.commit.attempt, "attempt": attempt, "journal": asdict(journal)}
    return LedgerRow(state.rows + 1, RESTAGE, body)


def decide_give_up(state: JobState, runs: Collection[int]) -> LedgerRow | None:
    """Return the row that forgets runs and snapshots that no branch depends on; None if all are forgotten already.

    Raises `StorageError` (74) if a branch depends on one of these runs or snapshots.
    """
    existing = {run.spec.run for run in (*state.committed, *state.snapshots.values())}
    row = LedgerRow(state.rows + 1, FORGET, {"runs": sorted(existing & set(runs) - state.forgotten)})
    if not row.body["runs"]:
        return None
    try:
        fold_row(state, row)
    except InvariantError as error:
        raise StorageError(
            "snapshot-files-missing",
            "the files of a state snapshot are missing, and the runs before it were forgotten: restore the "
            "files from a backup, or replay on a new branch",
        ) from error
    return row


def needed(state: JobState) -> frozenset[int]:
    """Return the numbers of the runs in outputs, and of the runs and snapshots from which open branches restore their state."""
    runs: list[CommittedRun] = []
    for branch in state.branches.values():
        if branch.is_kept:
            runs += branch.own_runs
        if branch.is_open and branch.head is not None:
            runs += branch.runs
            runs += state.basis(branch.head.spec.run)
    return frozenset(run.spec.run for run in runs)


def check_same_code(run: CommittedRun, binding: JobBinding) -> None:
    """Raise `CheckpointError` (76) if a run was made by code that differs from the current code.

    The message names the run's fingerprint and versions.
    """
    changes = differences_besides_tables(run.spec.binding, binding)
    if changes:
        listed = Lines(f"  - {line}" for line in changes)
        versions = run.spec.attempt.versions
        shown = ", ".join(f"{name} {version}" for name, version in versions.items()) or "unknown versions"
        raise CheckpointError(
            "replayed-code-differs",
            "run {run} must be replayed, but was made by different code (fingerprint {fingerprint}, "
            "{versions}):\n{changes}\nCheck out the code that made it and try again",
            run=run.spec.name,
            fingerprint=run.spec.binding.fingerprint[:12],
            versions=shown,
            changes=listed,
        )
