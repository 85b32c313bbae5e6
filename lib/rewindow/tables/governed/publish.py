"""Bring a catalog's tables up to date with the ledger. Each publication is one commit through Spark.

As in `tables.delta.publish`, the k-th publication of a table is computed from the ledger alone. Delta skips a repeated
version without an error, so publications that are in the table can be repeated without harm. Before a publication is made,
the history must show the previous one. The last publication is not looked up, because nothing in the command depends on it,
and the next command checks the table before it does anything else (`published`).

After a reset, a job first empties its tables. All publication epochs of a table share one application id. The commit that
empties a table also closes this id, because no publication has such a high version. If a process still publishes for the
former ledger identity, Delta skips its commits, or refuses one that is in flight at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql import types as T  # noqa: N812

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.planned_tasks import METRICS_TARGET
from rewindow.control.plan.spec import CHANGELOG, MAIN, OUTPUT, RunSpec, TableSpec
from rewindow.engine.spark.spark_calls import for_packs, mapped
from rewindow.errors import AccessError, not_committed
from rewindow.tables.governed.commit import add_once
from rewindow.tables.governed.create_table import OWNER, check_owners, check_properties, owner, properties_of
from rewindow.tables.governed.journal import SparkJournal, batches_of_block, block_path
from rewindow.tables.governed.last_publications import KnownTables, begins_epoch, lacking, ordinal_at, version_of
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.run_rows import check_counts
from rewindow.tables.governed.table_history import CLOSED, exists, last_version, table_version
from rewindow.tables.shared.paths import EXPECTATIONS, QUARANTINE
from rewindow.tables.shared.publications import (
    SHARED_TABLES,
    Due,
    changes_rows,
    due_tables,
    net,
    publication_id,
    reset_id,
    unknown_rows,
)


def is_finished(state: JobState) -> bool:
    """Return whether the tables of the last RESET are certainly empty.

    They are empty once a run is committed, because a run empties them before its COMMIT.
    """
    return state.reset is None or bool(state.committed)


def finish_reset(
    spark: SparkSession, job: str, state: JobState, branches: Iterable[str], name_of: Callable[[str], TableName]
) -> Iterator[str]:
    """Empty the tables that the last RESET names, and close their application ids. Yield a commit's name before making it.

    Any process may do this at any time, repeatedly, until a run is committed. A table of another job is never emptied.
    ``branches``: all branches that the job ever had.
    """
    if state.reset is None:
        return
    owners = {owner(job, branch) for branch in branches}
    for path, targets in sorted(state.reset.tables.items()):
        ids = _ids(state, job, targets)
        if not ids or not exists(spark, name := name_of(path)):
            continue
        if path not in SHARED_TABLES and properties_of(spark, name).get(OWNER) not in owners:
            continue
        for app_id in ids:
            if last_version(spark, name, app_id) < CLOSED:
                yield f"empty {path}"
                empty = spark.createDataFrame([], spark.table(name.quoted).schema)
                land_once(spark, empty, name, app_id, CLOSED, replaces=own_rows(path, job))


def unknown_tables(
    spark: SparkSession, job: str, state: JobState, outputs: Sequence[str], name_of: Callable[[str], TableName]
) -> list[str]:
    """Return the tables with rows of the job that its ledger did not publish.

    The tables that are checked are ``outputs`` and the tables that several jobs write. Raises `ConfigError` (78) for an
    output of another job.
    """
    check_owners(spark, map(name_of, outputs), owner(job, MAIN))
    published = {(target, table.path) for run in state.committed for target, table in run.spec.binding.tables.items()}
    unknown = []
    for path in (*outputs, QUARANTINE, EXPECTATIONS):
        name = name_of(path)
        if not exists(spark, name):
            continue
        ids = [publication_id(state.ledger, job, target) for target, known_path in published if known_path == path]
        if any(last_version(spark, name, app_id) for app_id in ids):
            continue
        with mapped():
            if spark.table(name.quoted).where(own_rows(path, job)).limit(1).collect():
                unknown.append(path)
    return unknown


def _ids(state: JobState, job: str, targets: Mapping[str, int]) -> list[str]:
    """Return the application ids to close in a table; none if no target of the table is published (for example, a store)."""
    # The application ids of a deleted ledger are not recorded. Its tables have no targets here, and are emptied under the
    # reset's own id.
    was = state.reset.ledger if state.reset else ""
    if targets:
        return [publication_id(was, job, target) for target in sorted(targets) if is_published(target)]
    return [reset_id(state.ledger)]


_ATTEMPTS = 5


def published_tables(state: JobState, branch: str) -> Iterator[Due]:
    """Yield the tables of a branch to which rows are published. Stores and metrics are rows of the journal instead."""
    for due in due_tables(state, branch):
        if is_published(due.target):
            yield due


def is_published(target: str) -> bool:
    """Return whether the rows of a target are published to a table of its own."""
    return target != METRICS_TARGET and not target.startswith(CHANGELOG)


def _unclaimed(state: JobState, spec: RunSpec) -> Iterator[tuple[str, TableSpec]]:
    """Yield the targets and tables of a run to which the job's ledger has published nothing.

    Only publications on this branch count or, for a table that several jobs write, publications on any branch.
    """
    claimed = {due.target for due in published_tables(state, spec.branch) if lacking(due, 0)}
    for target, table in spec.binding.tables.items():
        changes = state.shared(table.path) if table.path in SHARED_TABLES else ()
        is_claimed = target in claimed or any(changes_rows(publication, target) for publication in changes)
        if is_published(target) and not is_claimed:
            yield target, table


def publish(
    spark: Callable[[], SparkSession],
    journal: SparkJournal,
    state: JobState,
    branch: str,
    name_of: Callable[[str], TableName],
    reports: Callable[[CommittedRun], Sequence[TaskReport]],
    look: KnownTables,
    check_ledger: Callable[[], None],
) -> Iterator[str]:
    """Publish the committed runs that a branch's tables lack; yield the name of each commit before making it.

    ``check_ledger`` is called for a table that has more publications than the ledger names. Raises `StorageError` (74) if a
    commit does not land, or if a table that lacks several publications was altered.
    """
    for due in published_tables(state, branch):
        if not lacking(due, 0):
            continue
        name, app_id = name_of(due.table.path), publication_id(state.ledger, journal.name, due.target)
        version = look(name, app_id, due).reached
        if not version and due.restart.epoch == 1:
            _check_claim(spark(), journal.name, branch, name, due.table.path)
        if ordinal_at(due, version) > len(due.publications):
            check_ledger()
        ordinals = lacking(due, ordinal_at(due, version))
        # A new table gets all publications in one commit. So rows of runs that were rewound since are never added.
        if not version:
            ordinals = ordinals[-1:]
        for ordinal in ordinals:
            yield f"publish {due.target} {ordinal}"
            replaces_all = begins_epoch(due, ordinal) or (not version and len(lacking(due, 0)) > 1)
            frame, replaces = _rows(spark(), journal, due, ordinal, name, reports, replaces_all=replaces_all)
            is_last = ordinal == ordinals[-1]
            # The history shows alterations only since the second-last publication. So the table is checked before each
            # publication.
            if len(ordinals) > 1 and due.target.startswith(OUTPUT):
                check_counts(spark(), journal.name, state, branch, due, name, look(name, app_id))
            look.forget(name)
            land_once(
                spark(),
                frame,
                name,
                app_id,
                version_of(due, ordinal),
                replaces=replaces,
                replaces_all=replaces_all,
                is_last=is_last,
            )


def claim(
    spark: SparkSession, state: JobState, spec: RunSpec, name_of: Callable[[str], TableName], look: KnownTables
) -> None:
    """Check that a run's tables have no rows of the job, if its ledger has published none. Raises `CheckpointError` (76)."""
    for target, table in _unclaimed(state, spec):
        name = name_of(table.path)
        _check_claim(spark, spec.job, spec.branch, name, table.path)
        look.know_new(name, publication_id(state.ledger, spec.job, target))


def check_targets(spark: SparkSession, state: JobState, spec: RunSpec, name_of: Callable[[str], TableName]) -> None:
    """Check those existing tables of a run to which the job's ledger has published nothing. Changes nothing.

    Raises the errors that creating and claiming the tables would raise: `ConfigError` (78) for a table of another job or
    branch, `CheckpointError` (76) for rows of another ledger.
    """
    for _, table in _unclaimed(state, spec):
        name = name_of(table.path)
        if table_version(spark, name) is not None:
            if table.path not in SHARED_TABLES:
                check_properties(spark, name, {OWNER: owner(spec.job, spec.branch)})
            _check_claim(spark, spec.job, spec.branch, name, table.path)


def _check_claim(spark: SparkSession, job: str, branch: str, name: TableName, path: str) -> None:
    """Raise `CheckpointError` (76) if a table has rows of a job, but the job's ledger has published none to it."""
    rows = spark.table(name.quoted)
    if path in SHARED_TABLES:
        rows = rows.where((F.col(SHARED_TABLES[path]) == job) & F.col("_run").isNotNull())
    with mapped():
        is_unknown = bool(rows.limit(1).collect())
    if is_unknown:
        reset = f"start over, which empties the job's tables: `rewindow reset {job}`"
        raise unknown_rows(str(name), job, fix=reset if branch == MAIN else "choose another branch name")


def lagging(
    spark: Callable[[], SparkSession],
    job: str,
    state: JobState,
    branch: str,
    name_of: Callable[[str], TableName],
    look: KnownTables,
) -> dict[str, int]:
    """Return, by target, how many publications each table of a branch lacks. Complete tables are left out."""
    dues = published_tables(state, branch)
    lacking_of = ((due.target, _lacking_now(spark, job, state, due, name_of(due.table.path), look)) for due in dues)
    return {target: len(ordinals) for target, ordinals in lacking_of if ordinals}


def unpublished(
    spark: Callable[[], SparkSession],
    job: str,
    state: JobState,
    attempts: Collection[str],
    name_of: Callable[[str], TableName],
    look: KnownTables,
) -> set[str]:
    """Return the attempts whose rows must still be published to a table of any branch.

    The result includes all such attempts among ``attempts``. It may include others, too.
    """
    attempts_left: set[str] = set()
    for branch in state.branches:
        for due in published_tables(state, branch):
            # The table's history is read only if a publication of the table adds rows of these attempts.
            if _added(due, lacking(due, 0)) & set(attempts):
                attempts_left |= _added(due, _lacking_now(spark, job, state, due, name_of(due.table.path), look))
    return attempts_left


def _added(due: Due, ordinals: Iterable[int]) -> set[str]:
    return {run.commit.attempt for ordinal in ordinals for run in due.publications[ordinal - 1].adds}


def _lacking_now(
    spark: Callable[[], SparkSession], job: str, state: JobState, due: Due, name: TableName, look: KnownTables
) -> list[int]:
    if not lacking(due, 0):
        return []
    is_there = exists(spark(), name)
    version = look(name, publication_id(state.ledger, job, due.target)).reached if is_there else 0
    return lacking(due, ordinal_at(due, version))


def _rows(
    spark: SparkSession,
    journal: SparkJournal,
    due: Due,
    ordinal: int,
    name: TableName,
    reports: Callable[[CommittedRun], Sequence[TaskReport]],
    *,
    replaces_all: bool,
) -> tuple[DataFrame, str | None]:
    """Return the rows that a publication adds, and the SQL condition for the rows that it replaces (None: no rows).

    ``replaces_all``: whether the publication replaces all rows of the job by the net effect of the publications up to
    ``ordinal``.
    """
    publication = net(due.publications[:ordinal]) if replaces_all else due.publications[ordinal - 1]
    paths = [
        block_path(run.commit.attempt, due.target, file.path)
        for run in publication.adds
        for report in reports(run)
        for file in report.files
        if file.target == due.target
    ]
    frame = _frame_of_blocks(spark, journal, paths, spark.table(name.quoted).schema)
    if replaces_all:
        return frame, own_rows(due.table.path, journal.name)
    runs = sorted(run.spec.run for run in (*publication.adds, *publication.removes))
    return frame, f"_run IN ({', '.join(map(str, runs))})" if publication.removes else None


def own_rows(path: str, job: str) -> str:
    """Return the SQL condition that selects a job's rows in a table."""
    return f"{SHARED_TABLES[path]} = '{job}' AND _run IS NOT NULL" if path in SHARED_TABLES else "true"


def _frame_of_blocks(
    spark: SparkSession, journal: SparkJournal, paths: Sequence[str], schema: T.StructType
) -> DataFrame:
    """Return the rows of blocks. Workers decode the blocks, unless all of them are in memory.

    Raises `StorageError` (74) if the journal lacks a block.
    """
    names = schema.names
    if journal.in_memory(paths):
        data = journal.block_data(paths)
        batches = [batch for path in paths for batch in batches_of_block(data[path], names)]
        if batches:
            return spark.createDataFrame(pa.Table.from_batches(batches), schema).coalesce(1)
        return spark.createDataFrame([], schema)
    journal.require(paths)
    rows = journal.blocks(sorted({path.partition("/")[0] for path in paths})).where(F.col("path").isin(list(paths)))
    return rows.select("data").mapInArrow(partial(_decoded, names), schema)


def land_once(
    spark: SparkSession,
    frame: DataFrame,
    name: TableName,
    app_id: str,
    version: int,
    *,
    replaces: str | None = None,
    replaces_all: bool = False,
    is_last: bool = False,
) -> None:
    """Add rows to a table under an application id's next version. Raises `StorageError` (74) if the commit does not land.

    The history shows whether the commit landed. It is not read after the last version (``is_last``) if Spark reports no
    failure. Raises `AccessError` (77) if a right is missing; the commit is then not repeated.
    """
    failure: Exception | None = None
    for _ in range(_ATTEMPTS):
        try:
            with for_packs(spark, has_files=True):
                add_once(frame, name, app_id, version, replaces=replaces, is_whole=replaces_all)
            # The last commit need not be checked: nothing in this command depends on it, and the next command reads the history
            # before it publishes.
            if is_last:
                return
        except Exception as error:  # noqa: BLE001 - the commit may have landed, so the history decides
            failure = error
        if last_version(spark, name, app_id) >= version:
            return
        if isinstance(failure, AccessError):
            raise failure
    raise not_committed(str(name), _ATTEMPTS, failure) from failure


def _decoded(names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data in batch.column(0):
            yield from batches_of_block(data.as_buffer(), names)
