"""Say which tables of a branch were altered outside rewindow, as `republish` finds them, which reads every file of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rewindow.control.health.phrases import command_words
from rewindow.control.plan.job_state import JobState
from rewindow.errors import StorageError
from rewindow.tables.shared.warehouse import Warehouse


def check_rows(tables: Warehouse, job: str, state: JobState, branch: str) -> None:
    """Check that the tables of a branch have the rows that were published. Raises `StorageError` (74) naming `republish`."""
    _refuse(list(described_drift(tables, job, state, branch)), job, branch)


def check_outputs(tables: Warehouse, job: str, state: JobState, branch: str, targets: Iterable[str]) -> None:
    """Check the outputs of a branch that have files of another writer, as `check_rows` does. Reads no other files.

    For governed tables, only the cheap check is made: `check_published`.
    """
    tables.check_published(job, state, branch)
    known = state.branch(branch).tables
    rewritten = [target for target in targets if target in known and tables.has_foreign_rows(known[target])]
    _refuse([told for one in rewritten for told in described_drift(tables, job, state, branch, one)], job, branch)


def _refuse(found: Sequence[str], job: str, branch: str) -> None:
    if found:
        raise StorageError(
            "table-altered",
            "{tables}. Publish again: `rewindow republish {job}`",
            tables=". ".join(found),
            job=command_words(job, branch),
        )


def described_drift(
    tables: Warehouse, job: str, state: JobState, branch: str, target: str | None = None
) -> Iterator[str]:
    """Yield a sentence for each table that is not what was published, or only for that of a target."""
    for one in tables.drift(job, state, branch):
        if target in (None, one.target):
            yield f"{one.path} {one.change}: it was altered outside rewindow (UPDATE, RESTORE, DELETE, a rewrite, deleted files)"
