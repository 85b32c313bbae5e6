"""Write a snapshot of a job's stores, so that the next run does not read the changelogs of many runs.

`run` writes one before it plans if that pays off, and `gc` for every open branch. If a process is killed anywhere, the next call
starts again.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Protocol

from rewindow.control.ledger_update import Ledger, update
from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.retention import is_due
from rewindow.errors import NotNowError, StorageError


class SnapshotTables(Ledger[JobState], Protocol):
    """The part of a job's tables that snapshots need."""

    def publish(self, job: str, state: JobState, branch: str) -> Iterator[str]:
        """Bring a branch's tables up to the ledger; yield the name of each commit before it."""
        ...

    def stage_snapshot(self, state: JobState, run: CommittedRun) -> LedgerRow:
        """Stage the rows of a snapshot; return the row that makes them count."""
        ...


def write_snapshot(job: str, run: CommittedRun, tables: SnapshotTables, every: int) -> Generator[str, None, bool]:
    """Stage the snapshot of a run and append its row; return whether it is there."""

    def stage(state: JobState) -> LedgerRow | None:
        """Stage the rows for each attempt anew, because they carry the number of the SNAPSHOT row."""
        return tables.stage_snapshot(state, run) if is_due(state, run, every) else None

    try:
        try:
            row = yield from update(tables, job, f"snapshot {run.spec.name}", stage)
        except StorageError:
            # Another process may have committed a run and not published it.
            yield from publish_all(job, tables)
            row = yield from update(tables, job, f"snapshot {run.spec.name}", stage)
    except NotNowError:
        # The next call writes the snapshot.
        return False
    return row is not None


def publish_all(job: str, tables: SnapshotTables) -> Iterator[str]:
    """Bring the tables of all branches up to the ledger; yield the name of each commit before it."""
    state = tables.state(job)
    for branch in state.branches:
        yield from tables.publish(job, state, branch)
