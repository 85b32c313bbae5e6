"""Bring a catalog's tables up to the ledger: each ordinal is one commit through Spark, verified in the table's history.

As in `tables.delta.publish`, the k-th commit to a table is a function of the ledger alone. Delta silently skips a repeated
version, so starting too early does no harm, and the history shows at the end whether the commit is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.branches import CommittedRun, JobState
from rewindow.control.plan.spec import CHANGELOG
from rewindow.engine.spark.errors import mapped
from rewindow.engine.spark.settings import for_packs
from rewindow.errors import ConfigError, did_not_land
from rewindow.tables.governed.commit import add_once, last_version, table_version
from rewindow.tables.governed.journal import SparkJournal, batches_of_block, block_path
from rewindow.tables.governed.names import TableName
from rewindow.tables.shared.publications import SHARED_TABLES, Due, due_tables, missing, publication_id, unknown_rows

_ATTEMPTS = 5


def publish(
    spark: Callable[[], SparkSession],
    journal: SparkJournal,
    state: JobState,
    branch: str,
    name_of: Callable[[str], TableName],
    reports: Callable[[CommittedRun], Sequence[TaskReport]],
) -> Iterator[str]:
    """Publish what is committed and a branch's tables lack; yield the name of each commit before it.

    Stores have no tables: they are read from the journal. Raises `StorageError` (74) if a commit does not land.
    """
    for due in due_tables(state, branch):
        if due.target.startswith(CHANGELOG):
            continue
        if due.restart.epoch > 1:
            raise ConfigError(f"{due.target}: `republish` works on staged files, not with `commit: spark`")
        name, app_id = name_of(due.table.path), publication_id(state.ledger, journal.job, due.target)
        reached = last_version(spark(), name, app_id) if due.publications else 0
        if due.publications and not reached:
            check_claim(spark(), journal.job, state, due.target, name, due.table.path)
        for ordinal in missing(due, reached):
            yield f"publish {due.target} {ordinal}"
            _land(spark(), journal, due, ordinal, name, app_id, reports)


def check_claim(spark: SparkSession, job: str, state: JobState, target: str, name: TableName, path: str) -> None:
    """Check that a table has no rows of a job before its ledger published any. Raises `CheckpointError` (76)."""
    rows = spark.table(name.quoted)
    if path in SHARED_TABLES:
        rows = rows.where((F.col(SHARED_TABLES[path]) == job) & F.col("_run").isNotNull())
    with mapped():
        is_unknown = bool(rows.limit(1).count()) and not last_version(
            spark, name, publication_id(state.ledger, job, target)
        )
    if is_unknown:
        raise unknown_rows(str(name), job, fix="choose another name for the job and its tables, or DROP these tables")


def lagging(
    spark: Callable[[], SparkSession], job: str, state: JobState, branch: str, name_of: Callable[[str], TableName]
) -> dict[str, int]:
    """Return how many commits each of a branch's tables lacks, by target, without those that lack none."""
    lacks = {}
    for due in due_tables(state, branch):
        if due.publications and not due.target.startswith(CHANGELOG):
            name = name_of(due.table.path)
            is_there = table_version(spark(), name) is not None
            reached = last_version(spark(), name, publication_id(state.ledger, job, due.target)) if is_there else 0
            lacks[due.target] = len(missing(due, reached))
    return {target: count for target, count in lacks.items() if count}


def _land(
    spark: SparkSession,
    journal: SparkJournal,
    due: Due,
    ordinal: int,
    name: TableName,
    app_id: str,
    reports: Callable[[CommittedRun], Sequence[TaskReport]],
) -> None:
    publication = due.publications[ordinal - 1]
    paths = [
        block_path(run.commit.attempt, due.target, file.path)
        for run in publication.adds
        for report in reports(run)
        for file in report.files
        if file.target == due.target
    ]
    schema = spark.table(name.quoted).schema
    attempts = [run.commit.attempt for run in publication.adds]
    rows = journal.blocks(attempts or [""]).where(F.col("path").isin(paths or [""]))
    frame = rows.select("data").mapInArrow(partial(_decoded, schema.names), schema)
    runs = sorted(run.spec.run for run in (*publication.adds, *publication.removes))
    replaces = f"_run IN ({', '.join(map(str, runs))})" if publication.removes else None
    land_once(spark, frame, name, app_id, ordinal, replaces=replaces)


def land_once(
    spark: SparkSession, frame: DataFrame, name: TableName, app_id: str, ordinal: int, *, replaces: str | None = None
) -> None:
    """Add rows as a table's next ordinal, and verify that in its history. Raises `StorageError` (74)."""
    failure: Exception | None = None
    for _ in range(_ATTEMPTS):
        try:
            with for_packs(spark, has_files=True):
                add_once(frame, name, app_id, ordinal, replaces=replaces)
        except Exception as error:  # noqa: BLE001 - the commit may have landed: the history decides
            failure = error
        if last_version(spark, name, app_id) >= ordinal:
            return
    raise did_not_land(f"{name}: {app_id} {ordinal}", _ATTEMPTS, failure) from failure


def _decoded(names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data in batch.column(0):
            yield from batches_of_block(data.as_buffer(), names)
