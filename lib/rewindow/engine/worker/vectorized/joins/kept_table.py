"""The rows of a table by key, with the changes of this run: the equivalent of a `KeyValueStore` of stamped values."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.vectorized.group_frame import Array
from rewindow.engine.worker.vectorized.joins.value_rows import ValueRows
from rewindow.engine.worker.vectorized.keys import KeyTable
from rewindow.streams.serde.schema import Shape

NO_ROW = -1


class KeptTable:
    """The current row of each key."""

    def __init__(self, keys: KeyTable, value: Shape) -> None:
        """Start with an empty table."""
        self._keys = keys
        self.values = ValueRows(value)
        self._rows = np.empty(0, np.int64)
        """The number of each key's row in the values."""
        self._times = np.empty(0, np.int64)
        self._is_stored = np.empty(0, np.bool_)
        """Whether the checkpoint has a row of the key."""
        self._is_changed = np.empty(0, np.bool_)

    def __len__(self) -> int:
        """The number of rows."""
        return int(np.count_nonzero(self._rows != NO_ROW))

    def restore(self, batches: Iterable[pa.RecordBatch], width: int) -> None:
        """Take rows of a checkpoint. The first ``width`` columns are the key, the last two the timestamp and the tombstone."""
        for batch in batches:
            if batch.num_rows:
                columns = batch.columns
                keys = self._keys.numbers(columns[:width])
                rows = np.where(np.asarray(columns[-1]), NO_ROW, self.values.add(columns[width:-2]))
                self._fit()
                self._rows[keys] = rows  # of several rows of a key, the last wins
                self._times[keys] = np.asarray(columns[-2].fill_null(0))
        self._fit()
        self._is_stored = self._rows != NO_ROW

    def current(self, keys: Array) -> Array:
        """Return the number of each key's row, or -1."""
        self._fit()
        return np.asarray(self._rows[keys])

    def update(self, keys: Array, rows: Array, times: Array) -> None:
        """Set the rows of keys, in order: numbers in the values, or -1 to delete."""
        self._fit()
        self._rows[keys] = rows
        self._times[keys] = times
        self._is_changed[keys] = True

    def compact(self) -> None:
        """Drop values that no row refers to."""
        keys = np.flatnonzero(self._rows != NO_ROW)
        (self._rows[keys],) = self.values.compact([self._rows[keys]])

    def changes(self) -> tuple[list[pa.Array], Array]:
        """Return the rows to write, by key bytes: their columns, and which are tombstones.

        A row that the checkpoint does not have and that is gone leaves no trace.
        """
        self._fit()
        keys = np.flatnonzero(self._is_changed & (self._is_stored | (self._rows != NO_ROW)))
        keys = keys[np.argsort(self._keys.ranks(keys))]
        rows = self._rows[keys]
        is_gone = rows == NO_ROW
        times = pa.array(self._times[keys], mask=is_gone)
        return [*self._keys.columns(keys), *self.values.columns(rows), times], is_gone

    def _fit(self) -> None:
        """Make room for keys that are new."""
        more = len(self._keys) - len(self._rows)
        if more:
            self._rows = np.append(self._rows, np.full(more, NO_ROW))
            self._times = np.append(self._times, np.zeros(more, np.int64))
            self._is_stored = np.append(self._is_stored, np.zeros(more, np.bool_))
            self._is_changed = np.append(self._is_changed, np.zeros(more, np.bool_))
