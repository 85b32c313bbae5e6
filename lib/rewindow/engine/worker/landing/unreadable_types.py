"""Types of Parquet columns that neither Spark nor a log has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import pyarrow.parquet as pq

_UNKNOWN: Final[Mapping[str, str]] = {"Time": "TIME", "Float16": "FLOAT16", "UUID": "UUID", "Interval": "INTERVAL"}
_MOST_DIGITS = 38


def unreadable_type(column: pq.ColumnSchema) -> str | None:
    """Return a column's type if nobody can read it."""
    logical = json.loads(column.logical_type.to_json())
    if logical["Type"] == "Decimal" and logical["precision"] > _MOST_DIGITS:
        return f"DECIMAL({logical['precision']},{logical['scale']})"
    return _UNKNOWN.get(logical["Type"])


def unreadable_types(schema: pq.ParquetSchema) -> dict[str, str]:
    """Return the columns that have such a type, or a field of such a type, and the type."""
    columns = [schema.column(number) for number in range(len(schema))]
    found = {column.path.split(".")[0]: unreadable_type(column) for column in columns}
    return {name: kind for name, kind in found.items() if kind is not None}
