"""Convert between Arrow columns and NumPy arrays, and keep the state of groups as arrays of equal length.

A slot is the index of a group's row in a `GroupFrame`. If an exception of this module is raised, record execution does the
work instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.engine.worker.arrow_rows import arrow_type
from rewindow.streams.serde.key_bytes import encode_key

LONG_BYTES = 8
"""The encoded size of an integer and of a float."""
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
Array = npt.NDArray[Any]
Column = tuple[Any, Any]
"""The dtype of a column, and the initial value of its new slots."""
_FIXED = {"long": LONG_BYTES, "double": LONG_BYTES, "boolean": 1}


class Operand(NamedTuple):
    """A column of values (numbers or objects), and a mask of the values that are not null; None if no value is null."""

    values: Array
    valid: Array | None


def is_decimal(column_type: str) -> bool:
    """Return whether a column type is a decimal."""
    return column_type.startswith("decimal(")


def scale_of(column_type: str) -> int:
    """Return the scale of a decimal's column type."""
    return int(column_type[:-1].split(",")[1])


def is_object(column_type: str) -> bool:
    """Return whether a column's values are Python objects."""
    return column_type in ("string", "binary")


def fixed_size(column_type: str) -> int | None:
    """Return the encoded size of each value of a column in bytes (`streams.serde.key_bytes`); None if sizes vary."""
    return _FIXED.get(column_type)


def sizes_of(values: Array, column_type: str) -> Array:
    """Return the encoded sizes of decimals or objects in bytes; 0 for null."""
    if is_decimal(column_type):
        scale = scale_of(column_type)
        values = objects([Decimal(value).scaleb(-scale) for value in values.tolist()])
    return np.array([0 if value is None else len(encode_key(value)) for value in values.tolist()], np.int64)


def objects(items: Sequence[Any]) -> Array:
    """Return items as a NumPy array of Python objects."""
    array = np.empty(len(items), np.object_)
    array[:] = items
    return array


def largest_of(values: Array) -> int:
    """Return the largest absolute value of integers; 0 without values."""
    return max(-int(values.min()), int(values.max())) if len(values) else 0


def dtype_of(column_type: str) -> Any:
    """Return the NumPy dtype for the values of a column type."""
    if is_object(column_type):
        return np.object_
    return np.float64 if column_type == "double" else np.int64


def numbers_of(column: pa.Array, column_type: str) -> Operand:
    """Return a column as an operand. Raises `UnfitError` for a decimal that exceeds 64 bits."""
    valid = None if column.null_count == 0 else np.asarray(column.is_valid())
    if is_decimal(column_type):
        return Operand(_unscaled(column), valid)
    if is_object(column_type):
        return Operand(objects(column.to_pylist()), valid)
    filled = column if valid is None else pc.fill_null(column, False if column_type == "boolean" else 0)
    if column_type == "boolean":
        filled = filled.cast(pa.int8())
    return Operand(np.asarray(filled).astype(dtype_of(column_type), copy=False), valid)


def column_of(values: Array, is_null: Array | None, column_type: str) -> pa.Array:
    """Return an array as an Arrow column, with -0.0 as 0.0. Raises `UnfitError` if a value does not fit the column type."""
    mask = is_null if is_null is not None and is_null.any() else None
    if is_decimal(column_type):
        return _decimals(values, mask, column_type)
    if is_object(column_type):
        return texts_column(values.tolist(), column_type)
    if column_type == "double":
        return pa.array(values + 0.0, mask=mask)
    array = pa.array(values, mask=mask)
    return array.cast(pa.bool_()) if column_type == "boolean" else array


def texts_column(items: Sequence[Any], column_type: str) -> pa.Array:
    """Return texts or bytes as an Arrow column. Raises `UnfitError` above 2 GB, the limit of an Arrow array."""
    array = pa.array(items, arrow_type(column_type))
    if isinstance(array, pa.ChunkedArray):
        raise UnfitError
    return array


class GroupFrame:
    """Columns of equal length, with one row per group.

    After `extend` or `keep`, arrays from `__getitem__` are no longer valid.
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        """Define the columns by name. They have no rows yet."""
        self._fills = dict(columns)
        self._arrays = {name: np.empty(0, dtype) for name, (dtype, _) in columns.items()}
        self.size = 0
        self.bounds: dict[str, int] = {}
        """For each column with sums, an upper bound of its absolute values. All values of a column without an entry are 0."""

    def __getitem__(self, name: str) -> Array:
        """Return a column."""
        return self._arrays[name][: self.size]

    def extend(self, number: int) -> Array:
        """Add rows with the columns' initial values. Return their slots."""
        start, self.size = self.size, self.size + number
        for name, (dtype, fill) in self._fills.items():
            array = self._arrays[name]
            if len(array) < self.size:
                array = self._arrays[name] = np.concatenate([array[:start], np.empty(self.size, dtype)])
            array[start : self.size] = fill
        return np.arange(start, self.size)

    def keep(self, mask: Array) -> None:
        """Drop the rows where the mask is false. The other rows keep their order and get the slots from 0 on."""
        for name in self._arrays:
            self._arrays[name] = self[name][mask]
        self.size = int(np.count_nonzero(mask))


class NotVectorizableError(Exception):
    """A sub-topology cannot run in vectorized execution. The message is the reason, which `explain` shows."""


class UnfitError(Exception):
    """Vectorized execution cannot process a task's values exactly. Record execution reruns the task from its beginning."""


def _unscaled(column: pa.Array) -> Array:
    if column.type.byte_width != 16:
        column = column.cast(pa.decimal128(38, column.type.scale))
    words = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
    low, high = words[::2].copy(), words[1::2]
    if column.null_count:
        valid = np.asarray(column.is_valid())
        low, high = np.where(valid, low, 0), np.where(valid, high, 0)
    if not np.array_equal(high, low >> 63):
        raise UnfitError
    return low


def _decimals(values: Array, mask: Array | None, column_type: str) -> pa.Array:
    words = np.empty(2 * len(values), np.int64)
    words[::2], words[1::2] = values, values >> 63
    validity = None if mask is None else pa.array(~mask).buffers()[1]
    return pa.Array.from_buffers(arrow_type(column_type), len(values), [validity, pa.py_buffer(words)])
