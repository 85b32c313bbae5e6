"""What the tasks of committed runs reported, read once and verified against their COMMIT rows."""

from __future__ import annotations

from collections.abc import Callable

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.job_state import CommittedRun
from rewindow.errors import StorageError
from rewindow.tables.governed.blocks import block_path
from rewindow.tables.governed.journal import SparkJournal, summary


class RunReports:
    """The reports of runs and snapshots, by attempt."""

    def __init__(self, journal_of: Callable[[str], SparkJournal]) -> None:
        """``journal_of`` returns a job's journal. Nothing is read."""
        self._journal_of = journal_of
        self._known: dict[str, list[TaskReport]] = {}
        self._rows: dict[str, int] = {}

    def of(self, run: CommittedRun) -> list[TaskReport]:
        """Return what a committed run's tasks reported. Raises `StorageError` (74) if the journal was altered."""
        attempt, job = run.commit.attempt, run.spec.job
        if attempt not in self._known:
            journal, stated = self._journal_of(job), run.commit.journal
            reports = journal.reports(attempt)
            if summary(attempt, reports) != stated:
                # A command reads recent reports, perhaps not all of the oldest attempt.
                reports = journal.reports_afresh(attempt)
            if summary(attempt, reports) != stated:
                message = (
                    f"the journal lacks what attempt {attempt} reported. Repeat its run: `rewindow republish {job}`"
                )
                raise StorageError(message)
            self._known[attempt] = reports
            self._rows |= {
                block_path(attempt, file.target, file.path): file.rows for report in reports for file in report.files
            }
        return self._known[attempt]

    def rows_staged(self, path: str) -> int | None:
        """Return the rows of a block that a run staged; None if its report was not read."""
        return self._rows.get(path)
