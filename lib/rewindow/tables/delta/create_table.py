"""Create a Delta table, or check that an existing one belongs to the job: its columns, its owner, the ledger of its rows.

The application id of a publication contains the identity of its ledger. A table to which the ledger has published nothing
must have no rows. If it has rows, they come from a ledger that was deleted, and adding rows would mix two histories (ADR-75).

A ledger works only if no two writers can commit the same version. On a disk, delta-rs links a finished file to its name,
which fails if the name exists. A bucket needs a conditional put (``If-None-Match``). A store that ignores the condition lets
several writers commit the same version, without an error. delta-rs checks for the version before it puts, so only concurrent
writers reveal such a store. So before the first ledger of a warehouse is created in a store, the store is tested with
concurrent writers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError

from rewindow.control.plan.compatibility import other_columns
from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import MAIN, TableSpec
from rewindow.control.plan.stored_rows import check_layout
from rewindow.errors import CheckpointError, ConfigError, failed_io, one_line
from rewindow.storage.locations import is_uri, options_of
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.delta.delta_log import CHECKPOINT_INTERVAL, checkpoint_interval
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.handle import release
from rewindow.tables.delta.open_table import existing_table, open_table, table_path
from rewindow.tables.delta.table_rows import files_of_job, read_file, table_files, table_schema
from rewindow.tables.shared.publications import SHARED_TABLES, publication_id, unknown_rows

OWNER = "rewindow.job"
"""The table property that names a job as the only one that writes the table."""
SHORT_LOG = {"delta.logRetentionDuration": "interval 7 days"}
"""The properties of rewindow's own tables. Nobody reads old versions of these tables, and each commit lists a short log
faster."""


def create_table(
    path: str,
    schema: pa.Schema,
    partition_by: Sequence[str] = (),
    *,
    configuration: Mapping[str, str] | None = None,
) -> DeltaTable:
    """Return the table, and create it if it is missing. If two processes create it at once, both return the same table.

    Raises `CheckpointError` (76) if the table exists with other columns, `StorageError` (74) if it cannot be created.
    """
    table = open_table(path, may_lag=True)
    if table is None:
        failure = None
        try:
            DeltaTable.create(
                path,
                schema,
                mode="ignore",
                partition_by=list(partition_by),
                configuration={CHECKPOINT_INTERVAL: checkpoint_interval(path), **(configuration or {})},
                # If delta-rs retried, the slower of two processes would create the table again, as version 1 with another id.
                commit_properties=CommitProperties(max_commit_retries=0),
                # Delta does not know the properties that only rewindow uses.
                raise_if_key_not_exists=False,
                storage_options=options_of(path),
            )
        except Exception as error:  # noqa: BLE001 - another process may have created it: the log decides
            failure = error
        table = open_table(path)
        if table is None:
            raise failed_io(
                failure,
                "table-not-created",
                "the table {path} cannot be created: {error}. Make room or the folder writable, then run again",
                path=path,
                error=one_line(failure),
            ) from failure
    _check_columns(path, table, schema, partition_by)
    return table


def adopt_table(path: str, table: DeltaTable, schema: pa.Schema, owner: Mapping[str, str]) -> None:
    """Change columns and properties of an empty table that was left by an attempt which published nothing.

    Does nothing if the table already has these columns and properties, if its partitioning differs, or if another process
    commits first. `create_table` then reports what does not fit.
    """
    if _column_types(DeltaSchema.from_arrow(schema)) != _column_types(table.schema()):
        with suppress(DeltaError, OSError, ValueError):
            table.create_write_transaction(
                [],
                # Only the mode `overwrite` replaces the columns. The table has no rows that it could overwrite.
                mode="overwrite",
                schema=DeltaSchema.from_arrow(schema),
                partition_by=table.metadata().partition_columns,
                commit_properties=CommitProperties(max_commit_retries=0),
            )
    release(table, is_good=False)
    adopted = existing_table(path)
    if any(adopted.metadata().configuration.get(key) != value for key, value in owner.items()):
        with suppress(DeltaError, OSError):
            adopted.alter.set_table_properties(dict(owner), raise_if_not_exists=False)
        release(adopted, is_good=False)


def _check_columns(path: str, table: DeltaTable, schema: pa.Schema, partition_by: Sequence[str]) -> None:
    wanted, actual = _column_types(DeltaSchema.from_arrow(schema)), _column_types(table.schema())
    if wanted != actual:
        check_layout(path, actual)
        raise other_columns(path, [*actual.items()], [*wanted.items()])
    found_partitions = table.metadata().partition_columns
    # A changelog that an earlier version created stays partitioned. Each file in it has rows of one task (ADR-109).
    if found_partitions != list(partition_by) and found_partitions != [PARTITION]:
        raise CheckpointError(
            "table-partitioned-otherwise",
            "{path} is partitioned by {partitions}, expected {expected}: name another table",
            path=path,
            partitions=found_partitions,
            expected=list(partition_by),
        )


def _column_types(schema: DeltaSchema) -> dict[str, str]:
    return {field["name"]: field["type"] for field in json.loads(schema.to_json())["fields"]}


_WRITERS, _ROUNDS = 5, 2

_SCHEMA = pa.schema([("probe", pa.string())])


def check_store(path: str) -> None:
    """Test a store: let writers compete for the versions of a temporary table beside ``path``. Skips local folders.

    Raises `ConfigError` (78) if several writers committed the same version.
    """
    if not is_uri(path):
        return
    probe = f"{path.rpartition('/')[0]}/probe-{uuid4().hex}"
    try:
        DeltaTable.create(probe, _SCHEMA, storage_options=options_of(probe))
        if any(_winners(probe, turn) > 1 for turn in range(_ROUNDS)):
            raise ConfigError(
                "storage-without-put-if-absent",
                "{path}: its store lets two writers write the same version, so a committed row could be "
                "lost. Use a store that supports If-None-Match (docs/deployment/buckets.md), or a local "
                "folder as the warehouse",
                path=path,
            )
    finally:
        with suppress(OSError):
            Folder(probe).remove()


def _winners(probe: str, turn: int) -> int:
    """Let writers commit the same next version of a table at once; return how many of them succeeded."""
    start = Barrier(_WRITERS)

    def write(writer: int) -> bool:
        table = DeltaTable(probe, storage_options=options_of(probe))
        start.wait()
        try:
            table.create_write_transaction(
                [],
                mode="append",
                schema=table.schema(),
                partition_by=[],
                commit_properties=CommitProperties(
                    max_commit_retries=0, app_transactions=[Transaction(f"{turn}-{writer}", 1)]
                ),
            )
        except Exception:  # noqa: BLE001 - all but one must be rejected, whatever the exception
            return False
        return True

    with ThreadPoolExecutor(_WRITERS) as writers:
        return sum(writers.map(write, range(_WRITERS)))


def is_published(table: DeltaTable, job: str, state: JobState, branch: str, target: str, path: str) -> bool:
    """Return whether the job's ledger has published a target to a table, in any publication epoch."""
    epochs = range(1, state.restart(branch, target, path).epoch + 1)
    return any(table.transaction_version(publication_id(state.ledger, job, target, epoch)) for epoch in epochs)


def check_claim(
    warehouse: str, table: DeltaTable, job: str, state: JobState, branch: str, target: str, path: str
) -> None:
    """Raise `CheckpointError` (76) if a table has rows of the job, but the job's ledger has published none to it."""
    root = table_path(warehouse, path)
    if not is_published(table, job, state, branch, target, path) and _has_rows(root, table, path, job):
        reset = f"start over, which empties the job's tables: `rewindow reset {job}`"
        raise unknown_rows(root, job, fix=reset if branch == MAIN else "choose another branch name")


def is_of_another(table: DeltaTable | None, job: str) -> bool:
    """Return whether a table belongs to another job. A property of the table names the job that created it."""
    return table is not None and table.metadata().configuration.get(OWNER, job) != job


def check_owner(path: str, table: DeltaTable | None, job: str) -> None:
    """Raise `ConfigError` (78) if a table belongs to another job."""
    if table is not None and is_of_another(table, job):
        other = table.metadata().configuration[OWNER]
        raise ConfigError(
            "table-of-another-job",
            "the table {path} is written by the job {other!r}: name another table for {job!r}. If "
            "{other!r} was renamed, name it so again: its runs and its state have its name",
            path=path,
            other=other,
            job=job,
        )


def check_owners(warehouse: str, job: str, tables: Iterable[TableSpec]) -> None:
    """Raise `ConfigError` (78) if an existing table belongs to another job.

    Tables that were created but never written are ignored.
    """
    for spec in tables:
        path = table_path(warehouse, spec.path)
        table = open_table(path)
        if table is not None and (table.version() or table_files(path, table)):
            check_owner(path, table, job)


def _has_rows(root: str, table: DeltaTable, path: str, job: str) -> bool:
    """Return whether a table has files or, if several jobs write the table, whether it has rows of this job."""
    column, has_files = SHARED_TABLES.get(path), bool(table_files(root, table))
    if column is None or not has_files:
        return has_files
    schema, folder = table_schema(table), Folder(root)
    # A feed may have the same name as the job, but a feed's rows have no run.
    is_own = (pc.field(column) == job) & pc.field("_run").is_valid()
    files = files_of_job(root, table, column, job)
    return any(read_file(folder, file, schema).filter(is_own).num_rows for file in files)


def unknown_tables(warehouse: str, job: str, state: JobState, paths: Iterable[str]) -> list[str]:
    """Return the tables among ``paths`` with rows of the job that its ledger did not publish under any target."""
    unknown = []
    published = {(target, table.path) for run in state.committed for target, table in run.spec.binding.tables.items()}
    for path in paths:
        table = open_table(table_path(warehouse, path))
        if table is None:
            continue
        targets = [target for target, known_path in published if known_path == path]
        is_known = any(is_published(table, job, state, MAIN, target, path) for target in targets)
        if not is_known and _has_rows(table_path(warehouse, path), table, path, job):
            unknown.append(path)
    return unknown
