"""The Arrow schema of typed columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa

from rewindow.errors import ConfigError
from rewindow.streams.serde.schema import Column

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")

_ARROW: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "json": pa.string(),
}


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema of typed columns; all are nullable. Raises `ConfigError` (78) for an unknown type."""
    return pa.schema([pa.field(column.name, _arrow_type(column)) for column in columns])


def _arrow_type(column: Column) -> pa.DataType:
    if column.type in _ARROW:
        return _ARROW[column.type]
    if match := _DECIMAL.fullmatch(column.type):
        return pa.decimal128(int(match[1]), int(match[2]))
    message = (
        f"column {column.name!r} has the unknown type {column.type!r}: use one of {', '.join(_ARROW)}, decimal(p,s)"
    )
    raise ConfigError(message)
