"""Whether the next run of a branch can read the state that it resumes from, so that others than `run` can say so before.

It asks only for the changelog files that the run reads. Snapshots bound their number (`retention.is_due`).
"""

from __future__ import annotations

from collections.abc import Callable

from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.spec import CHANGELOG
from rewindow.errors import StorageError
from rewindow.tables.delta.check_published import lacking
from rewindow.tables.delta.checkpoints import changelog_files
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.shared.drift import publish_again
from rewindow.tables.shared.publications import Due, Reports, missing, publication_id


def check_state(
    warehouse: str, state: JobState, head: CommittedRun, now: Callable[[str], JobState], reports: Reports
) -> None:
    """Check that each changelog file from which a run after ``head`` restores its stores is there, with its size.

    ``now`` reads the ledger again. Raises `StorageError` (74) naming `republish`, as `find_checkpoint` does.
    """
    try:
        for store in sorted(head.spec.binding.stores):
            _check_store(warehouse, state, head, f"{CHANGELOG}{store}", reports)
    except StorageError:
        if now(head.spec.job).rows == state.rows:  # otherwise `gc` may have replaced the files by a snapshot
            raise


def _check_store(warehouse: str, state: JobState, head: CommittedRun, target: str, reports: Reports) -> None:
    spec, table = head.spec, head.spec.binding.tables[target]
    path, found = table_path(warehouse, table.path), open_table(table_path(warehouse, table.path))
    due = Due(target, table, state.shared(table.path), state.restart(spec.branch, target, table.path))
    app_id = publication_id(state.ledger, spec.job, target, due.restart.epoch)
    published = (found.transaction_version(app_id) or 0) if found else 0
    # A run publishes first, so what is not published yet is looked for as it was staged.
    is_behind = bool(missing(due, published))
    files = changelog_files(path, target, state.basis(spec.run), reports, as_staged=is_behind)
    if (what := lacking(path, files)) is not None:
        message = f"{path} {what}. The next run restores its state from them. {publish_again(spec.job, spec.branch)}"
        raise StorageError(message)
