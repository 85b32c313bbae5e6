"""Count the rows of each run in an output that something but rewindow may have changed."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import SparkSession

from rewindow.control.plan.job_state import JobState
from rewindow.engine.spark.spark_job import mapped
from rewindow.errors import StorageError
from rewindow.tables.governed.history import TableLook
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.versions import is_on_its_way, ordinal_at
from rewindow.tables.shared.drift import Drift, difference_of, publish_again
from rewindow.tables.shared.publications import Due, due_rows

NO_RUN = -1
"""Stands for the run of rows that name none."""


def check_counts(
    spark: SparkSession, job: str, state: JobState, branch: str, due: Due, name: TableName, found: TableLook
) -> None:
    """Check that an output has as many rows of each run as were published. They are counted only if it was touched.

    A table that is about to be republished is not checked. Raises `StorageError` (74) naming `republish`.
    """
    if found.is_untouched or is_on_its_way(due, found.reached):
        return
    with mapped():
        rows = spark.table(name.quoted).groupBy("_run").count().collect()
    counted = Counter({NO_RUN if row["_run"] is None else row["_run"]: row["count"] for row in rows})
    wanted = due_rows(due, ordinal_at(due, found.reached))
    if counted != wanted:
        raise altered(job, branch, Drift(due.target, str(name), difference_of(wanted, counted, state)))


def altered(job: str, branch: str, drift: Drift) -> StorageError:
    """Return the error of a table that is not what was published."""
    message = (
        f"{drift.path} {drift.what}: it was altered outside rewindow (RESTORE, DELETE, UPDATE, a drop). "
        f"{publish_again(job, branch)}"
    )
    return StorageError(message)
