"""Say which tables of a branch were altered outside rewindow, as `republish` finds them. Reads every file of the tables."""

from __future__ import annotations

from collections.abc import Iterator

from rewindow.app.open_tables import open_repair
from rewindow.control.plan.branches import JobState
from rewindow.errors import StorageError
from rewindow.report.text import asked
from rewindow.tables.shared.warehouse import Warehouse


def check_rows(tables: Warehouse, job: str, state: JobState, branch: str) -> None:
    """Check that the tables of a branch have the rows that were published. Raises `StorageError` (74) naming `republish`."""
    found = list(described_drift(tables, job, state, branch))
    if found:
        message = ". ".join((*found, f"Publish again: `rewindow republish {asked(job, branch)}`"))
        raise StorageError(message)


def described_drift(
    tables: Warehouse, job: str, state: JobState, branch: str, target: str | None = None
) -> Iterator[str]:
    """Yield a sentence for each table that is not what was published, or only for that of a target."""
    for one in open_repair(tables).drift(job, state, branch):
        if target in (None, one.target):
            yield f"{one.path} {one.what}: it was altered outside rewindow (UPDATE, RESTORE, DELETE, a rewrite, deleted files)"
