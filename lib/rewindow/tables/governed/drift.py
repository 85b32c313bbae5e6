"""Drift: published tables that no longer hold the rows that were published. Found by counting the rows of each run."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from rewindow.control.plan.branches import JobState
from rewindow.control.plan.spec import OUTPUT
from rewindow.engine.spark.errors import mapped
from rewindow.errors import StorageError
from rewindow.tables.governed.commit import last_version
from rewindow.tables.governed.names import TableName
from rewindow.tables.shared.publications import due_rows, due_tables, older_ledger, publication_id


def check_published(
    spark: SparkSession,
    job: str,
    state: JobState,
    branch: str,
    name_of: Callable[[str], TableName],
    now: Callable[[], JobState],
) -> None:
    """Check that the outputs of a branch hold exactly the rows that were published. ``now`` reads the ledger again.

    Raises `StorageError` (74), or `CheckpointError` (76) if a table has publications that the ledger lacks.
    """
    for due in due_tables(state, branch):
        if due.target.startswith(OUTPUT) and due.publications:
            name = name_of(due.table.path)
            with mapped():
                published = last_version(spark, name, publication_id(state.ledger, job, due.target))
            if published > len(due.publications):  # unless another process has committed since
                newer = now()
                if newer.rows == state.rows:
                    raise older_ledger(str(name), job, published, len(due.publications))
                check_published(spark, job, newer, branch, name_of, now)
                return
            with mapped():
                counted = spark.table(name.quoted).groupBy("_run").count().collect()
            if {row["_run"]: row["count"] for row in counted} != due_rows(due, published):
                message = (
                    f"{name} does not hold the rows that {job} published: something else changed it. RESTORE the version "
                    "before that change, or replay on another branch"
                )
                raise StorageError(message)
