"""Between Arrow columns and Python values. No pandas, and no `datetime`: times are 64-bit milliseconds all the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from rewindow.core.schema import Column, Shape
from rewindow.errors import DataError

_ARROW = {
    "string": pa.string(),
    "json": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}


def arrow_type(column_type: str) -> pa.DataType:
    """Return the Arrow type of a column type (`core.schema`)."""
    if column_type.startswith("decimal("):
        precision, scale = column_type[len("decimal(") : -1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _ARROW[column_type]


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """Return the Arrow schema of columns."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def decode(shape: Shape, columns: Sequence[pa.Array]) -> Iterable[Any]:
    """Return the values whose cells stand in Arrow columns."""
    lists = [column.to_pylist() for column in columns]
    return lists[0] if shape.is_bare else map(shape.from_cells, zip(*lists, strict=True))


def encode_values(shape: Shape, values: Sequence[Any], target: str) -> list[pa.Array]:
    """Return the columns of values: what `decode` undoes. Raises `DataError` as `encode` does."""
    schema = arrow_schema(shape.columns)
    if not shape.is_bare:
        return list(encode([shape.to_cells(value) for value in values], schema, target).columns)
    try:
        return [pa.array(values, schema.field(0).type)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
        raise _misfit([(value,) for value in values], schema, target) or error from error


def encode(rows: Sequence[tuple[Any, ...]], schema: pa.Schema, target: str) -> pa.RecordBatch:
    """Return rows of cells as a batch. Raises `DataError` naming target and column if a value does not fit its type."""
    try:
        return pa.RecordBatch.from_struct_array(pa.array(rows, pa.struct(list(schema))))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
        raise _misfit(rows, schema, target) or error from error


def _misfit(rows: Sequence[tuple[Any, ...]], schema: pa.Schema, target: str) -> DataError | None:
    for row in rows:
        for field, cell in zip(schema, row, strict=False):
            try:
                pa.array([cell], field.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
                message = (
                    f"{target}: the value {cell!r} does not fit column {field.name!r} of type {field.type}. "
                    "Declare the type that the code gives (key= / value= in the topology), or convert the value"
                )
                return DataError(message)
    return None
