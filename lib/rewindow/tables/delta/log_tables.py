"""The tables of logs: their columns, which a newer generation may extend."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema

from rewindow.contracts.reserved_names import LOG_COLUMNS, other_name
from rewindow.control.ingest.landings import LogSchema
from rewindow.errors import CheckpointError
from rewindow.tables.delta.commit import open_table
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.features import check_writable
from rewindow.tables.shared.arrow_schema import arrow_schema
from rewindow.tables.shared.feeds import LOG_PARTITIONS


def create_log(path: str, schema: LogSchema) -> DeltaTable:
    """Return a topic's log table with the columns of the newest generation; create or extend it if necessary.

    Raises `CheckpointError` (76) if a column was landed with another type before.
    """
    table = open_table(path)
    if table is None:
        return create_table(path, _log_schema(schema), LOG_PARTITIONS)
    missing = missing_columns(path, table, schema)
    if missing:
        check_writable(path, table)
        table.alter.add_columns(DeltaSchema.from_arrow(pa.schema(missing)).fields)
        table.update_incremental()
    return table


def _log_schema(schema: LogSchema) -> pa.Schema:
    columns = arrow_schema((*LOG_COLUMNS, *schema.key, *schema.value))
    return pa.schema([*(pa.field(name, pa.int32()) for name in LOG_PARTITIONS), *columns])


def missing_columns(path: str, table: DeltaTable, schema: LogSchema) -> list[pa.Field]:
    """Return the columns that a log lacks. Raises `CheckpointError` (76) if one has another type in the log."""
    existing = {field.name: field.type for field in pa.schema(table.schema().to_arrow())}
    wanted = _log_schema(schema)
    for field in wanted:
        if field.name in existing and existing[field.name] != field.type:
            message = (
                f"the log {path} has {field.name} as {existing[field.name]} from an older generation, "
                f"now it is {field.type}: {other_name(field.name)}, and use that name wherever the feed and its jobs name it"
            )
            raise CheckpointError(message)
    return [field for field in wanted if field.name not in existing]
