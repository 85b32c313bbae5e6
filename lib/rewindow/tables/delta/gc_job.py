"""The garbage collection of a job's tables and folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewindow.control.gc import Garbage
from rewindow.control.plan.planner import Alive
from rewindow.control.plan.retention import dead_attempts
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.fold_file import check_once
from rewindow.tables.delta.merge_runs import due_merges, merge, run_files
from rewindow.tables.delta.orphan_files import JobOrphanFiles
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.warehouse import check_stored


class JobGc:
    """The files of one job."""

    def __init__(self, tables: DeltaTables, job: str, alive: Alive) -> None:
        """Bind to a job. ``alive`` returns whether an attempt still runs."""
        self._tables, self._job, self._alive = tables, job, alive

    def drop_reports(self) -> int:
        """Remove the reports of dead attempts from the journal; return how many."""
        return self._orphan_files().drop_reports()

    def merge(self, least: int) -> Iterator[str | tuple[int, int]]:
        """Merge the small files of runs; see `merge_runs.merge`."""
        yield from merge(self._tables.warehouse, self._job, self._tables.state(self._job), least)

    def due(self, least: int) -> int:
        """Return how many files `merge` would merge."""
        found = run_files(self._tables.warehouse, self._job, self._tables.state(self._job))
        return sum(len(group) for one in found for group in due_merges(one, least))

    def garbage(self, keep_ms: int) -> Iterator[Garbage]:
        """Yield what can be deleted now. All of it is found before the first is yielded."""
        ledger = self._tables.ledger(self._job)
        check_once(Folder(ledger.path), self._job, ledger.read(), check_stored)
        yield from list(self._orphan_files().garbage(keep_ms))

    def delete(self, garbage: Sequence[Garbage]) -> None:
        """Delete files and folders, if they still exist."""
        for one in garbage:
            Folder(one.folder).delete(one.path, is_folder=one.is_folder)

    def compact_ledger(self) -> None:
        """Merge the ledger's files."""
        self._tables.ledger(self._job).compact()

    def _orphan_files(self) -> JobOrphanFiles:
        state = self._tables.state(self._job)
        plans = [branch.pending for branch in state.branches.values() if branch.pending]
        is_quiet = not any(self._alive(plan.attempt) for plan in plans)
        return JobOrphanFiles(self._tables.warehouse, self._job, state, dead_attempts(state), is_quiet=is_quiet)
