"""Arrow tables of typed rows: make their schema, filter their rows, and convert their values for `json`."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import reduce
from itertools import accumulate
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
    raise ConfigError(
        "column-type-unknown",
        "column {column!r} has the unknown type {type!r}: use one of {types}, decimal(p,s)",
        column=column.name,
        type=column.type,
        types=", ".join(_ARROW),
    )


def rows_with(rows: pa.Table, values: Mapping[str, list[int] | list[str]]) -> pa.Table:
    """Return the rows that have one of the listed values in every column of ``values``."""
    # `Table.filter` with an expression, and `pa.array`, would load pandas, which takes longer than a short command.
    for name, given in values.items():
        rows = rows.filter(pc.is_in(rows[name], _array_of(given)))
    return rows


def _array_of(values: Sequence[int] | Sequence[str]) -> pa.Array:
    if values and isinstance(values[0], str):
        texts = [str(value).encode() for value in values]
        ends = array("i", accumulate(map(len, texts), initial=0))
        return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(texts)))
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(array("q", map(int, values)))])


def json_value(value: Any) -> Any:
    """Convert a value, or whole rows, for `json`: decimals to texts, bytes to hex, NaN and infinities to their names."""
    if isinstance(value, dict):
        return {name: json_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return str(value) if isinstance(value, Decimal) else value


def current_rows(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the last row of each key of an output. A key is left out if all value columns of its last row are null (a deletion).

    The last row has the highest `_epoch`, then `_partition`, then `_offset`. In a partition, `_offset` is the order of sending.
    """
    ordered = rows.sort_by([(name, "ascending") for name in ("_epoch", "_partition", "_offset")])
    numbered = ordered.select(list(keys)).append_column("_number", pa.array(range(ordered.num_rows), pa.int64()))
    last = numbered.group_by(list(keys)).aggregate([("_number", "max")])["_number_max"]
    current = ordered.take(last.combine_chunks().sort())
    values = [name for name in rows.column_names if not name.startswith("_") and name not in keys]
    return current.filter(reduce(pc.or_, (current[name].is_valid() for name in values))) if values else current
