"""What single runs published: a run's rows, how many rows of each run an output has, and what the tasks reported.

Rows of a run are read from its blocks in the journal. Rows of an output are counted only if another writer may have changed
the output. Reports are read once and verified against the COMMIT rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.engine.spark.spark_calls import mapped
from rewindow.errors import StorageError
from rewindow.tables.governed.journal import SparkJournal, batches_of_block, block_path, summary
from rewindow.tables.governed.last_publications import is_on_its_way, ordinal_at
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.table_history import TableLook
from rewindow.tables.shared.drift import Drift, difference_of, publish_again
from rewindow.tables.shared.publications import Due, due_rows

NO_RUN = -1
"""The run id that is used to count rows without a run."""


def block_batches(
    journal: SparkJournal, attempt: str, target: str, reports: Sequence[TaskReport], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the columns ``names`` of the rows that an attempt staged for a target, in the order of the reports.

    All blocks are first fetched, still encoded, from memory or with one query. Raises `StorageError` (74) if a block is gone.
    """
    paths = [block_path(attempt, target, f.path) for report in reports for f in report.files if f.target == target]
    if not paths:
        return
    data = journal.block_data(paths)
    for path in paths:
        yield from batches_of_block(data[path], names)


def check_counts(
    spark: SparkSession, job: str, state: JobState, branch: str, due: Due, name: TableName, history: TableLook
) -> None:
    """Check that an output has as many rows of each run as were published.

    Rows are counted only if another writer has changed the output. A table that is about to be republished is not checked.
    Raises `StorageError` (74), which names `republish`.
    """
    if history.is_untouched or is_on_its_way(due, history.reached):
        return
    with mapped():
        rows = spark.table(name.quoted).groupBy("_run").count().collect()
    counted = Counter({NO_RUN if row["_run"] is None else row["_run"]: row["count"] for row in rows})
    wanted = due_rows(due, ordinal_at(due, history.reached))
    if counted != wanted:
        raise altered(job, branch, Drift(due.target, str(name), difference_of(wanted, counted, state)))


def altered(job: str, branch: str, drift: Drift) -> StorageError:
    """Return the error of a table that differs from what was published."""
    return StorageError(
        "catalog-table-altered",
        "{table} {change}: it was altered outside rewindow (RESTORE, DELETE, UPDATE, a drop). {fix}",
        table=drift.path,
        change=drift.change,
        fix=publish_again(job, branch),
    )


class RunReports:
    """The reports of runs and snapshots, by attempt."""

    def __init__(self, journal_of: Callable[[str], SparkJournal]) -> None:
        """``journal_of`` returns a job's journal. Nothing is read."""
        self._journal_of = journal_of
        self._known: dict[str, list[TaskReport]] = {}
        self._rows: dict[str, int] = {}

    def of(self, run: CommittedRun) -> list[TaskReport]:
        """Return the reports of a committed run's tasks. Raises `StorageError` (74) if the journal was altered."""
        attempt, job = run.commit.attempt, run.spec.job
        if attempt not in self._known:
            journal, stated = self._journal_of(job), run.commit.journal
            reports = journal.reports(attempt)
            if summary(attempt, reports) != stated:
                # A command reads only recent reports, so some reports of the oldest attempt that it reads may be missing.
                reports = journal.reports_afresh(attempt)
            if summary(attempt, reports) != stated:
                raise StorageError(
                    "catalog-reports-missing",
                    "the journal lacks what attempt {attempt} reported. Repeat its run: `rewindow republish {job}`",
                    attempt=attempt,
                    job=job,
                )
            self._known[attempt] = reports
            self._rows |= {
                block_path(attempt, file.target, file.path): file.rows for report in reports for file in report.files
            }
        return self._known[attempt]

    def rows_staged(self, path: str) -> int | None:
        """Return the number of rows of a block that a run staged; None if the run's reports were not read."""
        return self._rows.get(path)
