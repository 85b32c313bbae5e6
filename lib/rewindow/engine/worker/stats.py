"""Statistics of a column as Delta keeps them, so that readers skip files."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TEXT_LIMIT = 32
"""Longer texts get no bounds: cutting the largest one right is not worth its bugs."""


class ColumnStats:
    """Smallest, largest and number of nulls of what was seen. No bounds where JSON could not hold them exactly."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.nulls = 0
        self.smallest: Any = None
        self.largest: Any = None
        self._bounded = True

    def update(self, column: pa.Array) -> None:
        """Take more cells of the column into account."""
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
        return (pc.max(pc.utf8_length(column)).as_py() or 0) <= TEXT_LIMIT
    return False
