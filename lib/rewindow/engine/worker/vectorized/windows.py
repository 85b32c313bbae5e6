"""Which windows hold which timestamps, for whole columns."""

from __future__ import annotations

import numpy as np

from rewindow.engine.worker.vectorized.slots import Array
from rewindow.streams.windows.time import TimeWindows


def windows_of(windows: TimeWindows, timestamps: Array) -> tuple[Array | None, Array]:
    """Return for each pair of a row and one of its windows the row's number and the window's start, in that order.

    Row numbers are None where each row has one window.
    """
    advance_ms = windows.advance_ms
    first = np.maximum(timestamps - (windows.size_ms - advance_ms), 0) // advance_ms * advance_ms
    if windows.size_ms == advance_ms:
        return None, first
    counts = (timestamps - first) // advance_ms + 1
    rows = np.repeat(np.arange(len(timestamps)), counts)
    before = np.cumsum(counts) - counts
    return rows, first[rows] + (np.arange(len(rows)) - before[rows]) * advance_ms
