"""Create a Delta table, or check that an existing table has the expected columns.

A ledger works only if no two writers can commit the same version. On a disk, delta-rs links a finished file to its name, which
fails if the name exists. A bucket needs a conditional put (``If-None-Match``). A store that ignores the condition lets several
writers commit the same version, without an error. delta-rs checks for the version before it puts, so only concurrent writers
reveal such a store. So a store is probed before the first ledger of a warehouse is created there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError

from rewindow.control.plan.compatibility import other_columns
from rewindow.control.plan.stored_rows import check_layout
from rewindow.errors import CheckpointError, ConfigError, failed_io, one_line
from rewindow.storage.locations import is_uri, options_of
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.delta.delta_log import CHECKPOINT_INTERVAL, checkpoint_interval
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.handle import release
from rewindow.tables.delta.open_table import existing_table, open_table

OWNER = "rewindow.job"
"""The table property that names the only job that writes the table."""
SHORT_LOG = {"delta.logRetentionDuration": "interval 7 days"}
"""A property of rewindow's own tables. Their old versions are never read, and a short log is listed faster in each commit."""


def create_table(
    path: str,
    schema: pa.Schema,
    partition_by: Sequence[str] = (),
    *,
    configuration: Mapping[str, str] | None = None,
) -> DeltaTable:
    """Return the table; create it if it does not exist. If two processes create it at once, both return the same table.

    Raises `CheckpointError` (76) if it exists with other columns, `StorageError` (74) if it cannot be created.
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
                # With retries, the slower of two processes would create the table again, as version 1 with another id.
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
    """Give an empty table, left by an attempt that published nothing, other columns and properties.

    Does nothing if the table has them already, if its partitioning differs, or if another process commits first. `create_table`
    then reports what does not fit.
    """
    if _column_types(DeltaSchema.from_arrow(schema)) != _column_types(table.schema()):
        with suppress(DeltaError, OSError, ValueError):
            table.create_write_transaction(
                [],
                # Only the mode `overwrite` replaces the columns. There are no rows to overwrite.
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
    # A changelog that an earlier version created stays partitioned. Each of its files has rows of one task (ADR-109).
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
    """Probe a store by letting writers compete for the versions of a temporary table beside ``path``. Skips local folders.

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
    """Return for how many concurrent writers the commit of the next version succeeded."""
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
