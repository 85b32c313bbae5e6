"""Check that a branch's tables in a catalog still contain what was published.

The rows of each run are counted only if the table's history shows that another writer has changed it since the second-last
publication. Changes before that were found by the check that preceded the last publication. The history is not read if the
table is certainly as the last run left it (`last_publications`).
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import OUTPUT
from rewindow.tables.governed.last_publications import KnownTables, lacking, ordinal_at
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.publish import published_tables
from rewindow.tables.governed.run_rows import altered, check_counts
from rewindow.tables.governed.table_history import exists
from rewindow.tables.shared.drift import Drift
from rewindow.tables.shared.publications import older_ledger, publication_id


def check_published(
    spark: SparkSession,
    job: str,
    state: JobState,
    branch: str,
    name_of: Callable[[str], TableName],
    now: Callable[[], JobState],
    look: KnownTables,
    *,
    only_ledger: bool = False,
) -> None:
    """Check that the outputs of a branch have exactly the rows that were published. ``now`` reads the ledger again.

    ``only_ledger``: check only that no output has publications that the ledger lacks.

    Raises `StorageError` (74), which names `republish`, or `CheckpointError` (76) if a table has publications that the ledger
    lacks.
    """
    for due in published_tables(state, branch):
        if not (due.target.startswith(OUTPUT) and lacking(due, 0)):
            continue
        name = name_of(due.table.path)
        if not exists(spark, name):
            if only_ledger:
                continue
            raise altered(job, branch, Drift(due.target, str(name), "is gone"))
        history = look(name, publication_id(state.ledger, job, due.target))
        published = ordinal_at(due, history.reached)
        # If the table has more publications than the ledger names, another process may have committed since.
        if published > len(due.publications):
            newer = now()
            if newer.rows == state.rows:
                raise older_ledger(str(name), job, published, len(due.publications))
            check_published(spark, job, newer, branch, name_of, now, look, only_ledger=only_ledger)
            return
        if not only_ledger:
            check_counts(spark, job, state, branch, due, name, history)
