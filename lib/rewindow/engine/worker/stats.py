"""Column statistics of a file in Delta's form, so that readers can skip files."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TEXT_LIMIT = 32
"""Columns with longer texts get no bounds: truncating the upper bound correctly is not worth the risk."""


class ColumnStats:
    """Minimum, maximum and null count of a column. No bounds if JSON cannot represent them exactly."""

    def __init__(self) -> None:
        """Start without values."""
        self.nulls = 0
        self.smallest: Any = None
        self.largest: Any = None
        self._bounded = True

    def update(self, column: pa.Array) -> None:
        """Add values of the column."""
        self.nulls += column.null_count
        if not self._bounded or column.null_count == len(column):
            return
        if not _is_bounded(column):
            self._bounded, self.smallest, self.largest = False, None, None
            return
        bounds = pc.min_max(column).as_py()
        self.smallest = bounds["min"] if self.smallest is None else min(self.smallest, bounds["min"])
        self.largest = bounds["max"] if self.largest is None else max(self.largest, bounds["max"])


def _is_bounded(column: pa.Array) -> bool:
    kind = column.type
    if pa.types.is_integer(kind):
        return True
    if pa.types.is_floating(kind):
        return math.isfinite(pc.sum(column).as_py() or 0.0)
    if pa.types.is_string(kind):
        # Bytes are faster to count, and a text has no more characters than bytes.
        return any((pc.max(length(column)).as_py() or 0) <= TEXT_LIMIT for length in (pc.binary_length, pc.utf8_length))
    return False
