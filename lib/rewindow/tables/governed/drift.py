"""Drift: published tables that no longer hold the rows that were published.

The history shows whether anything but rewindow changed a table since its last publication but one; earlier commits were
looked at before that one was published. Only then are the rows of each run counted.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from rewindow.control.plan.branches import JobState
from rewindow.control.plan.spec import OUTPUT
from rewindow.engine.spark.errors import mapped
from rewindow.errors import StorageError
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.publish import Look, lacking, published_tables
from rewindow.tables.shared.publications import Due, due_rows, older_ledger, publication_id


def check_published(
    spark: SparkSession,
    job: str,
    state: JobState,
    branch: str,
    name_of: Callable[[str], TableName],
    now: Callable[[], JobState],
    look: Look,
) -> None:
    """Check that the outputs of a branch hold exactly the rows that were published. ``now`` reads the ledger again.

    Raises `StorageError` (74), or `CheckpointError` (76) if a table has publications that the ledger lacks.
    """
    for due in published_tables(state, branch):
        if due.target.startswith(OUTPUT) and lacking(due, 0):
            name = name_of(due.table.path)
            found = look(name, publication_id(state.ledger, job, due.target))
            if found.reached > len(due.publications):  # unless another process has committed since
                newer = now()
                if newer.rows == state.rows:
                    raise older_ledger(str(name), job, found.reached, len(due.publications))
                check_published(spark, job, newer, branch, name_of, now, look)
                return
            if not found.is_untouched:
                _count_rows(spark, job, due, name, found.reached)


def _count_rows(spark: SparkSession, job: str, due: Due, name: TableName, published: int) -> None:
    with mapped():
        counted = spark.table(name.quoted).groupBy("_run").count().collect()
    if {row["_run"]: row["count"] for row in counted} != due_rows(due, published):
        message = (
            f"{name} does not hold the rows that {job} published: something else changed it. RESTORE the version "
            "before that change, or replay on another branch"
        )
        raise StorageError(message)
