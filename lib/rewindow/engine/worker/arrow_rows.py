"""Convert between Arrow columns and Python values. Times are 64-bit milliseconds throughout, never `datetime`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.errors import DataError
from rewindow.streams.serde.normalizers import class_of
from rewindow.streams.serde.schema import Column, Shape, coerce

Decodable: TypeAlias = pa.Array | npt.NDArray[np.object_]
"""An Arrow column, or (from `shared_texts`) an array of Python objects."""
Number = TypeVar("Number", bound=np.generic)
_ARROW = {
    "string": pa.string(),
    "json": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}
_NUMPY = {"long": np.int64, "double": np.float64}
_TIMESTAMP = pa.field("_timestamp", pa.int64())
_COLUMN_TYPES = {arrow: name for name, arrow in _ARROW.items() if name != "json"}


def arrow_type(column_type: str) -> pa.DataType:
    """Return the Arrow type of a column type (`streams.serde.schema`)."""
    if column_type.startswith("decimal("):
        precision, scale = column_type[len("decimal(") : -1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _ARROW[column_type]


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """Return the Arrow schema of columns."""
    return _schema(tuple(columns))


def shared_texts(column: pa.Array) -> Decodable:
    """Return a dictionary-encoded column of texts as an array in which equal texts are one Python object.

    Other columns are returned unchanged.
    """
    if not pa.types.is_dictionary(column.type):
        return column
    texts, indices = column.dictionary.to_numpy(zero_copy_only=False), column.indices
    if indices.null_count:
        texts, indices = np.append(texts, [None]), indices.fill_null(len(texts))
    return texts[indices.to_numpy()]


def decode(shape: Shape, columns: Sequence[Decodable], rows: int) -> Iterable[Any]:
    """Return one Python value for each row of columns that have this shape. A shape may have no columns."""
    lists = [column.tolist() for column in columns]
    return lists[0] if shape.is_bare else map(shape.decode, zip(*lists, strict=True) if lists else [()] * rows)


class DecodedLater(Sequence[Any]):
    """The Python values of columns, decoded when they are first read.

    Most batch processors read few of these values.
    """

    def __init__(self, shape: Shape, columns: Sequence[Decodable], rows: int) -> None:
        self._shape, self._columns, self._rows = shape, columns, rows
        self._values: list[Any] | None = None

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[Any]:
        return iter(decode(self._shape, self._columns, self._rows))

    def __getitem__(self, index: Any) -> Any:
        if self._values is None:
            self._values = list(self)
        return self._values[index]


def encode_values(shape: Shape, values: Sequence[Any], target: str) -> list[pa.Array]:
    """Return values as columns: the inverse of `decode`. Raises `DataError` as `encode` does."""
    schema = arrow_schema(shape.columns)
    if shape.is_bare:
        return [_encode_column(schema.field(0), values, target)]
    try:
        rows = [shape.encode(value) for value in values]
    except DataError as error:
        error.surrounded(f"{target}: ")
        raise
    return list(encode(rows, schema, target).columns)


def encode(rows: Sequence[tuple[Any, ...]], schema: pa.Schema, target: str) -> pa.RecordBatch:
    """Return rows as a batch.

    Raises `DataError`, which names target, column and value, if a value does not fit its column exactly
    (`streams.serde.normalizers`).
    """
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [_encode_column(field, values, target) for field, values in zip(schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def encode_timestamps(timestamps: Sequence[int], target: str) -> pa.Array:
    """Return the timestamps of forwarded records as a column. Raises `DataError` if one exceeds 64 bits."""
    try:
        return pa.array(np.fromiter(timestamps, np.int64, len(timestamps)))
    except OverflowError:
        return _encode_column(_TIMESTAMP, timestamps, target)


def distinct(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the distinct values, ascending."""
    # Since version 2.3, `numpy.unique` hashes integers. For two million timestamps, this takes 2.3 seconds instead of the 0.05
    # seconds that sorting takes.
    ordered = np.sort(values)
    is_new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


@lru_cache(maxsize=1024)
def _schema(columns: tuple[Column, ...]) -> pa.Schema:
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def _encode_column(field: pa.Field, values: Sequence[Any], target: str) -> pa.Array:
    """Return values as a single column. Raises `DataError` as `encode` does."""
    column = Column(field.name, _column_type(field.type))
    array = _quickly_encoded(values, column.type)
    if array is not None:
        return array
    try:
        return pa.array([coerce(value, column) for value in values], field.type)
    except DataError as error:
        error.surrounded(f"{target}: ")
        raise


def _quickly_encoded(values: Sequence[Any], column_type: str) -> pa.Array | None:
    """Return values as a column if all of them are null or of the column's Python class; otherwise None.

    None means that a value may not fit the column, so `coerce` has to check each value.
    """
    cls, classes = class_of(column_type), list(map(type, values))
    has_nulls = classes.count(cls) < len(values)
    if has_nulls and classes.count(cls) + classes.count(type(None)) < len(values):
        return None
    try:
        # `fromiter` is faster than Arrow's own conversion.
        if column_type in _NUMPY and not has_nulls:
            array = np.fromiter(values, _NUMPY[column_type], len(values))
            # Adding 0.0 turns -0.0 into 0.0.
            return pa.array(array + 0.0 if column_type == "double" else array)
        array = pa.array(values, arrow_type(column_type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
        return None
    return pc.add(array, 0.0) if column_type == "double" else array


def _column_type(arrow: pa.DataType) -> str:
    return f"decimal({arrow.precision},{arrow.scale})" if pa.types.is_decimal(arrow) else _COLUMN_TYPES[arrow]
