"""Merge sorted runs into one sequence of sorted batches, while only one batch of each run is in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from rewindow.engine.worker.landing.order import order_of, sort_key


def merged(runs: Sequence[Iterable[pa.RecordBatch]], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all runs, sorted by the named columns. Each run is sorted by them, and no batch is empty."""
    cursors = [cursor for run in runs if (cursor := _Cursor(iter(run), names)).rows is not None]
    while len(cursors) > 1:
        # Rows up to the smallest last row of a batch are complete: no run has more of them.
        limit = min(cursor.last for cursor in cursors)
        taken = [cursor.take_through(limit) for cursor in cursors if cursor.first <= limit]
        cursors = [cursor for cursor in cursors if cursor.rows is not None]
        yield taken[0] if len(taken) == 1 else sorted_rows(pa.concat_batches(taken), names)
    for cursor in cursors:
        yield from cursor.rest()


def sorted_rows(rows: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Return the rows sorted by the named columns; the same object if they are sorted."""
    order = order_of([rows.column(name) for name in names]) if rows.num_rows else None
    return rows if order is None else rows.take(pa.array(order))


class _Cursor:
    """A run with its current batch (None at the end) and the sort keys of that batch's first and last rows.

    Rows mostly arrive in order, so most runs have no rows up to a limit: their first key tells.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> None:
        self._batches, self._names = batches, names
        self.rows: pa.RecordBatch | None = None
        self.first: tuple[Any, ...] = ()
        self.last: tuple[Any, ...] = ()
        self._next()

    def take_through(self, limit: tuple[Any, ...]) -> pa.RecordBatch:
        """Return the rows of the current batch up to and including the limit, of which there are some; move past them."""
        rows = self.rows
        assert rows is not None  # noqa: S101 - `merged` drops cursors at their end
        if self.last <= limit:
            self._next()
            return rows
        low, high = 0, rows.num_rows - 1
        while low < high:
            middle = (low + high) // 2
            if self._key(rows, middle) <= limit:
                low = middle + 1
            else:
                high = middle
        self.rows = rows.slice(low)
        self.first = self._key(rows, low)
        return rows.slice(0, low)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows."""
        if self.rows is not None:
            yield self.rows
        yield from self._batches

    def _next(self) -> None:
        self.rows = next(self._batches, None)
        if self.rows is not None:
            self.first = self._key(self.rows, 0)
            self.last = self._key(self.rows, self.rows.num_rows - 1)

    def _key(self, rows: pa.RecordBatch, row: int) -> tuple[Any, ...]:
        return sort_key([rows.column(name)[row].as_py() for name in self._names])
