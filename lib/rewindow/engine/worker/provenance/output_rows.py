"""Read the rows of a key from the files of an output table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.engine.worker.arrow_rows import arrow_schema
from rewindow.engine.worker.checksums import UNREADABLE, open_verified
from rewindow.errors import StorageError
from rewindow.streams.serde.schema import Column

_ORDER = [(name, "ascending") for name in ("_epoch", "_partition", "_offset")]


def rows_of_key(
    paths: Sequence[str], columns: Sequence[Column], key: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    """Return the rows whose key columns have one of the given values, in the order in which they were written.

    A file that lacks a column has nulls in it. Raises `StorageError` (74) for a file that cannot be read.
    """
    schema = arrow_schema(columns)
    parts = [schema.empty_table()]
    for path in paths:
        try:
            with open_verified(path) as parquet:
                stored = set(parquet.schema_arrow.names)
                batches = parquet.iter_batches(columns=[name for name in schema.names if name in stored])
                parts += [_of_key(_filled(pa.Table.from_batches([batch]), schema), key) for batch in batches]
        except UNREADABLE as error:
            message = f"cannot read {path}: {error}. `rewindow republish JOB` restores the table"
            raise StorageError(message) from error
    rows: list[dict[str, Any]] = pa.concat_tables(parts).sort_by(_ORDER).to_pylist()
    return rows


def table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows of the same columns as a table."""
    return pa.Table.from_pylist([dict(row) for row in rows])


def _filled(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    arrays = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def _of_key(rows: pa.Table, key: Mapping[str, Sequence[Any]]) -> pa.Table:
    for name, values in key.items():
        rows = rows.filter(pc.is_in(rows[name], pa.array(values, rows.schema.field(name).type)))
    return rows
