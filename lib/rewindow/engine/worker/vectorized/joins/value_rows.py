"""The values of a store, as rows of Arrow columns with numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.engine.worker.arrow_rows import arrow_type, decode
from rewindow.engine.worker.vectorized.errors import UnfitError
from rewindow.engine.worker.vectorized.group_frame import Array
from rewindow.streams.serde.schema import Shape

SPARE = 65_536
"""How many rows to keep although nothing refers to them, before the others are copied."""


class ValueRows:
    """Rows of values, numbered from 0 in the order in which they are added."""

    def __init__(self, shape: Shape) -> None:
        """Start without rows."""
        self._shape = shape
        self._chunks = [[pa.array([], arrow_type(column.type))] for column in shape.columns]
        self.size = 0
        self.bytes = 0
        """The memory of the rows."""

    def add(self, columns: Sequence[pa.Array]) -> Array:
        """Add rows and return their numbers. -0.0 becomes 0.0, as in stores."""
        first, self.size = self.size, self.size + len(columns[0])
        for chunks, column in zip(self._chunks, columns, strict=True):
            chunks.append(pc.add(column, 0.0) if pa.types.is_floating(column.type) else column)
            self.bytes += chunks[-1].nbytes
        return np.arange(first, self.size)

    def columns(self, numbers: Array) -> list[pa.Array]:
        """Return the columns of rows; null for -1. Raises `UnfitError` if they exceed an Arrow array."""
        try:
            for chunks in self._chunks:
                chunks[:] = [pa.concat_arrays(chunks)]
            return taken([chunks[0] for chunks in self._chunks], numbers)
        except pa.ArrowException as error:
            raise UnfitError from error

    def values(self, numbers: Array) -> list[Any]:
        """Return the values of rows. Raises `UnfitError` as `columns` does."""
        return list(decode(self._shape, self.columns(numbers)))

    def compact(self, used: Sequence[Array]) -> list[Array]:
        """Drop rows that are not among the numbers ``used``, if these are few. Return the numbers that those have now."""
        is_used = np.zeros(self.size, np.bool_)
        for numbers in used:
            is_used[numbers] = True
        kept = np.flatnonzero(is_used)
        if self.size <= 2 * len(kept) + SPARE:
            return list(used)
        self._chunks = [[column] for column in self.columns(kept)]
        self.size, self.bytes = len(kept), sum(chunks[0].nbytes for chunks in self._chunks)
        moved = np.cumsum(is_used) - 1
        return [moved[numbers] for numbers in used]


def taken(columns: Sequence[pa.Array], rows: Array) -> list[pa.Array]:
    """Return rows of columns; null for -1. Raises `UnfitError` if they exceed an Arrow array."""
    index = pa.array(rows, mask=rows < 0)
    try:
        return [column.take(index) for column in columns]
    except pa.ArrowException as error:
        raise UnfitError from error
