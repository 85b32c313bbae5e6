"""Find the windows of whole columns of timestamps: for windows at fixed times, and for windows in local time."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.vectorized.arrays import LEAST, Array
from rewindow.streams.windows.calendar import CalendarWindows
from rewindow.streams.windows.time import TimeWindows


class RowWindows(NamedTuple):
    """All pairs of a row and one of its windows, ordered by row and start, with the bounds of the windows.

    ``rows`` has the row number of each pair. It is None if each row has exactly one window. ``last_ends`` has, for each row, the
    end of its last window.
    """

    rows: Array | None
    starts: Array
    ends: Array
    last_ends: Array


class WindowGrid(Protocol):
    """The windows of an aggregate. Each window is identified by its start."""

    step_ms: int
    """All starts are multiples of this number."""
    due_step_ms: int
    due_shift_ms: int
    """Windows close at multiples of ``due_step_ms`` plus ``due_shift_ms`` (`ClosingOrder`)."""

    def windows_of(self, timestamps: Array) -> RowWindows:
        """Return the windows of rows (at least one)."""

    def ends(self, starts: Array) -> Array:
        """Return the ends of windows."""

    def start_order_is_end_order(self) -> bool:
        """Return whether of two windows the one that starts later also ends later."""


class FixedGrid:
    """`TimeWindows`: each starts at a multiple of the advance."""

    def __init__(self, windows: TimeWindows) -> None:
        self._size_ms, self.step_ms = windows.size_ms, windows.advance_ms
        self.due_step_ms, self.due_shift_ms = windows.advance_ms, windows.closes_after_ms

    def windows_of(self, timestamps: Array) -> RowWindows:
        """See `WindowGrid`."""
        size_ms, advance_ms = self._size_ms, self.step_ms
        last_starts = timestamps // advance_ms * advance_ms
        last_ends = last_starts + size_ms
        if size_ms == advance_ms:
            return RowWindows(None, last_starts, last_ends, last_ends)
        first_starts = np.maximum(timestamps - (size_ms - advance_ms), 0) // advance_ms * advance_ms
        counts = (timestamps - first_starts) // advance_ms + 1
        rows = np.repeat(np.arange(len(timestamps)), counts)
        before = np.cumsum(counts) - counts
        starts = first_starts[rows] + (np.arange(len(rows)) - before[rows]) * advance_ms
        return RowWindows(rows, starts, starts + size_ms, last_ends)

    def ends(self, starts: Array) -> Array:
        """See `WindowGrid`."""
        return np.asarray(starts + self._size_ms)

    def start_order_is_end_order(self) -> bool:
        """See `WindowGrid`."""
        return True


class CalendarGrid:
    """`CalendarWindows`: the arithmetic of that class for whole columns."""

    due_step_ms, due_shift_ms = 1, 0

    def __init__(self, windows: CalendarWindows) -> None:
        self._windows, clock = windows, windows.clock
        # Clocks change at whole seconds.
        self.step_ms = gcd(1000, windows.offset_ms)
        self._changes, self._until_walls = (
            np.array(times, np.int64) for times in (clock.changes_ms, clock.until_wall_ms)
        )
        self._offsets, self._from = (
            np.array(times, np.int64) for times in (clock.offsets_ms, (LEAST, *clock.changes_ms))
        )

    def windows_of(self, timestamps: Array) -> RowWindows:
        """See `WindowGrid`."""
        steps, (last, next_times) = self._windows.steps, self._last_points(timestamps)
        if steps == 1:
            return RowWindows(None, np.maximum(self._instants(last), 0), next_times, next_times)
        # Many rows have the same windows. Arrow's hash table finds the distinct points faster than sorting does.
        encoded = pa.array(last).dictionary_encode()
        distinct, index = np.asarray(encoded.dictionary), np.asarray(encoded.indices)
        points = distinct[:, np.newaxis] + np.arange(1 - steps, 1)
        starts = np.maximum(self._instants(points.ravel()), 0).reshape(points.shape)
        ends = self._instants(points.ravel() + steps).reshape(points.shape)
        # Where points coincide, the last one replaces the others.
        is_last = np.append(starts[:, :-1] < starts[:, 1:], np.ones((len(distinct), 1), np.bool_), axis=1)
        is_kept, rows = is_last[index].ravel(), np.repeat(np.arange(len(timestamps)), steps)
        kept_starts, kept_ends = (bounds[index].ravel()[is_kept] for bounds in (starts, ends))
        return RowWindows(rows[is_kept], kept_starts, kept_ends, ends[index, -1])

    def ends(self, starts: Array) -> Array:
        """See `WindowGrid`."""
        if len(starts) == 0:
            return starts
        steps, (last, next_times) = self._windows.steps, self._last_points(starts)
        return next_times if steps == 1 else self._instants(last + steps)

    def start_order_is_end_order(self) -> bool:
        """See `WindowGrid`. Windows that overlap may end at the same time, where the clock skips their ends."""
        return self._windows.steps == 1

    def _last_points(self, times: Array) -> tuple[Array, Array]:
        """Return the number of the last point at or before each instant, and the instant of the point after it."""
        windows = self._windows
        walls = times + (self._offsets[_intervals(self._changes, times)] - windows.first_wall_ms)
        if windows.months:
            points = walls.astype("M8[ms]").astype("M8[M]").astype(np.int64) // windows.months
        else:
            points = walls // windows.step_ms
        # While the clock shows times again, it may be behind points that it has passed already.
        while (is_behind := (next_times := self._instants(points + 1)) <= times).any():
            points = points + is_behind
        return points, next_times

    def _instants(self, points: Array) -> Array:
        """Return the instants of points, given by number (at least one)."""
        windows = self._windows
        if windows.months:
            walls = (points * windows.months).astype("M8[M]").astype("M8[ms]").astype(np.int64) + windows.first_wall_ms
        else:
            walls = points * windows.step_ms + windows.first_wall_ms
        periods = _intervals(self._until_walls, walls)
        # A period of the clock may begin later than at the wall time, which is missing then.
        return np.asarray(np.maximum(walls - self._offsets[periods], self._from[periods]))


def _intervals(bounds: Array, values: Array) -> Array:
    """Return for each value how many bounds are not greater; a single number if it is the same for all values."""
    first, last = np.searchsorted(bounds, (values.min(), values.max()), "right")
    if first == last:
        return np.asarray(first)
    return np.asarray(first + np.searchsorted(bounds[first:last], values, "right"))
