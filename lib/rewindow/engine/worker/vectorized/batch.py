"""A batch of records on its way from the log to the windows or to a join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.vectorized.group_frame import Array
from rewindow.streams.serde.schema import Shape

Columns = Mapping[str, pa.Array]


@dataclass(frozen=True, slots=True)
class Batch:
    """Timestamps, key columns, and the value columns that are read, by name."""

    timestamps: Array
    keys: Sequence[pa.Array]
    columns: Columns
    orders: Array | None = None
    """The order key of each record, if the task needs it (`closing_order`)."""
    positions: Array | None = None
    """The position of each record in the task's order, if it merges topics (`merged_batches`)."""

    def filtered(self, mask: pa.Array | None) -> Batch:
        """Return the records where a mask is true; None: all."""
        if mask is None:
            return self
        columns = {name: column.filter(mask) for name, column in self.columns.items()}
        rows = np.asarray(mask)
        keys = [column.filter(mask) for column in self.keys]
        return Batch(self.timestamps[rows], keys, columns, _of(self.orders, rows), _of(self.positions, rows))

    def taken(self, rows: Array) -> Batch:
        """Return the records with these indexes, which may repeat."""
        index = pa.array(rows)
        columns = {name: column.take(index) for name, column in self.columns.items()}
        keys = [column.take(index) for column in self.keys]
        return Batch(self.timestamps[rows], keys, columns, _of(self.orders, rows), _of(self.positions, rows))

    def slice(self, first: int, count: int) -> Batch:
        """Return consecutive records of a batch without orders and positions."""
        columns = {name: column.slice(first, count) for name, column in self.columns.items()}
        return Batch(self.timestamps[first : first + count], [key.slice(first, count) for key in self.keys], columns)

    def at(self, positions: Array) -> Batch:
        """Return the same records with their positions."""
        return replace(self, positions=positions)

    def with_columns(self, columns: Columns) -> Batch:
        """Return the same records with other values."""
        return replace(self, columns=columns)


def name_at(value: Shape, index: int) -> str:
    """Return the name of a value column."""
    return "value" if value.is_bare else value.names[index]


def _of(array: Array | None, rows: Array) -> Array | None:
    return None if array is None else array[rows]
