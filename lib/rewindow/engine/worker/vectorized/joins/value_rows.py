"""The values of a store as numbered rows of Arrow columns, and the current row of each key of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.engine.worker.arrow_rows import arrow_type, decode
from rewindow.engine.worker.vectorized.arrays import Array, UnfitError
from rewindow.engine.worker.vectorized.keys import KeyTable
from rewindow.streams.serde.schema import Shape

SPARE = 65_536
"""Unused rows are dropped only if there are more than about this many, because dropping them copies all other rows."""
NO_ROW = -1


class ValueRows:
    """Rows of values, numbered from 0 in the order in which they are added."""

    def __init__(self, shape: Shape) -> None:
        """Start without rows."""
        self._shape = shape
        self._chunks = [[pa.array([], arrow_type(column.type))] for column in shape.columns]
        self.size = 0
        self.bytes = 0
        """The bytes of memory of the rows."""

    def add(self, columns: Sequence[pa.Array]) -> Array:
        """Add rows and return their numbers. -0.0 becomes 0.0, as in stores."""
        start, self.size = self.size, self.size + len(columns[0])
        for chunks, column in zip(self._chunks, columns, strict=True):
            chunks.append(pc.add(column, 0.0) if pa.types.is_floating(column.type) else column)
            self.bytes += chunks[-1].nbytes
        return np.arange(start, self.size)

    def columns(self, numbers: Array) -> list[pa.Array]:
        """Return the columns of the rows with these numbers; nulls for the number -1.

        Raises `UnfitError` if a column is too large for an Arrow array.
        """
        try:
            for chunks in self._chunks:
                chunks[:] = [pa.concat_arrays(chunks)]
            return taken([chunks[0] for chunks in self._chunks], numbers)
        except pa.ArrowException as error:
            raise UnfitError from error

    def values(self, numbers: Array) -> list[Any]:
        """Return the values of the rows with these numbers. Raises `UnfitError` as `columns` does."""
        return list(decode(self._shape, self.columns(numbers), len(numbers)))

    def compact(self, used: Sequence[Array]) -> list[Array]:
        """If many rows are not in ``used``, drop these. Return the new numbers of the rows in ``used``."""
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
    """Return the rows of columns at these indexes; nulls for the index -1.

    Raises `UnfitError` if a column is too large for an Arrow array.
    """
    index = pa.array(rows, mask=rows < 0)
    try:
        return [column.take(index) for column in columns]
    except pa.ArrowException as error:
        raise UnfitError from error


class Updates(NamedTuple):
    """Updates of a table: their indexes in the batch (ascending), the numbers of their rows (-1: deleted), their times."""

    at: Array
    rows: Array
    times: Array


class KeptTable:
    """The current row of each key."""

    def __init__(self, keys: KeyTable, value: Shape) -> None:
        """Start with an empty table."""
        self._keys = keys
        self.values = ValueRows(value)
        self._rows = np.empty(0, np.int64)
        """The number of each key's row among the values; `NO_ROW` if the key has no row. The array's index is the key's
        number."""
        self._times = np.empty(0, np.int64)
        self._is_stored = np.empty(0, np.bool_)
        """For each key, whether the checkpoint has a row of it."""
        self._is_changed = np.empty(0, np.bool_)
        self.peak = 0
        """An upper bound of the number of rows that the table has had at one time."""

    def restore(self, batches: Iterable[pa.RecordBatch], width: int) -> None:
        """Set rows from a checkpoint. The first ``width`` columns are the key, the last two are timestamp and tombstone."""
        for batch in batches:
            if batch.num_rows:
                columns = batch.columns
                keys = self._keys.numbers(columns[:width])
                rows = np.where(np.asarray(columns[-1]), NO_ROW, self.values.add(columns[width:-2]))
                self._fit()
                # If a key has several rows, the last assignment wins, which is that of its last row.
                self._rows[keys] = rows
                self._times[keys] = np.asarray(columns[-2].fill_null(0))
        self._fit()
        self._is_stored = self._rows != NO_ROW
        self.peak = self._count()

    def before(self, records: Array, updates: Updates, keys: Array) -> tuple[Array, Array]:
        """Return, for each record, the row that its key had in the table just before the record, and the time of this row.

        ``records``: the records' indexes in the batch. ``keys``: the key number of each record of the batch.
        """
        self._fit()
        rows, times = self._rows[keys[records]], self._times[keys[records]]
        if len(updates.at) == 0:
            return rows, times
        update_of = np.full(len(keys), NO_ROW)
        update_of[updates.at] = np.arange(len(updates.at))
        is_wanted = update_of != NO_ROW
        is_wanted[records] = True
        both = np.flatnonzero(is_wanted)
        both = both[np.argsort(keys[both], kind="stable")]
        ordered = keys[both]
        last = np.maximum.accumulate(np.where(update_of[both] != NO_ROW, np.arange(len(both)), -1))
        before = np.append(-1, last[:-1])
        has_update = (before >= 0) & (ordered[before] == ordered)
        update_before = np.full(len(keys), NO_ROW)
        update_before[both] = np.where(has_update, update_of[both[before]], NO_ROW)
        update_before = update_before[records]
        is_found = update_before != NO_ROW
        rows[is_found], times[is_found] = updates.rows[update_before[is_found]], updates.times[update_before[is_found]]
        return rows, times

    def take(self, updates: Updates, keys: Array) -> None:
        """Set the rows of the updates' keys, in order."""
        self._fit()
        self.peak = max(self.peak, self._count() + len(updates.at))
        self._rows[keys[updates.at]] = updates.rows
        self._times[keys[updates.at]] = updates.times
        self._is_changed[keys[updates.at]] = True

    def values_of(self, rows: Array) -> list[Any]:
        """Return the values of the rows with these numbers; None for -1. A row that occurs several times is decoded once."""
        used = np.zeros(self.values.size, np.bool_)
        used[rows[rows != NO_ROW]] = True
        values = [*self.values.values(np.flatnonzero(used)), None]
        # The last value is None. Row -1 selects it.
        index = np.append(np.cumsum(used) - 1, len(values) - 1)[rows]
        return [values[position] for position in index.tolist()]

    def compact(self) -> None:
        """Drop values that no row refers to."""
        keys = np.flatnonzero(self._rows != NO_ROW)
        (self._rows[keys],) = self.values.compact([self._rows[keys]])

    def changes(self) -> tuple[list[pa.Array], Array]:
        """Return the columns of the rows to write, ordered by key bytes, and a mask of the tombstones.

        A deleted row that the checkpoint does not have needs no tombstone.
        """
        self._fit()
        keys = np.flatnonzero(self._is_changed & (self._is_stored | (self._rows != NO_ROW)))
        keys = keys[np.argsort(self._keys.ranks(keys))]
        rows = self._rows[keys]
        is_gone = rows == NO_ROW
        times = pa.array(self._times[keys], mask=is_gone)
        return [*self._keys.columns(keys), *self.values.columns(rows), times], is_gone

    def _count(self) -> int:
        """Return the number of rows."""
        return int(np.count_nonzero(self._rows != NO_ROW))

    def _fit(self) -> None:
        """Enlarge the arrays for new keys."""
        more = len(self._keys) - len(self._rows)
        if more:
            self._rows = np.append(self._rows, np.full(more, NO_ROW))
            self._times = np.append(self._times, np.zeros(more, np.int64))
            self._is_stored = np.append(self._is_stored, np.zeros(more, np.bool_))
            self._is_changed = np.append(self._is_changed, np.zeros(more, np.bool_))
