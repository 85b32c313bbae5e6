"""Records of one input of a join of streams, as arrays of equal length."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from rewindow.engine.worker.arrow_rows import distinct
from rewindow.engine.worker.vectorized.group_frame import Array

EARLIER = -1
"""The arrival of a record that came before the current batch."""
NEW = -1
"""The number of a record that no checkpoint has."""
_MOST_CODES = 2**62


class Records(NamedTuple):
    """Records of a store."""

    keys: Array
    """Key numbers."""
    times: Array
    rows: Array
    """The row of each value (`value_rows`)."""
    arrivals: Array
    """The index of each record in the current batch."""
    numbers: Array
    """The number that the checkpoint gives a record among those of its key and timestamp, or `NEW`."""

    @classmethod
    def none(cls) -> Self:
        """Return no records."""
        return cls(*(np.empty(0, np.int64) for _ in cls._fields))

    def taken(self, rows: Array) -> Records:
        """Return the records at these indexes, or where a mask is true."""
        return Records(*(array[rows] for array in self))

    def followed_by(self, others: Records) -> Records:
        """Return these records and then others."""
        return Records(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))

    def as_earlier(self) -> Records:
        """Return the records at the end of the batch."""
        return self._replace(arrivals=np.full(len(self.keys), EARLIER))


class KeyTimeOrder:
    """Numbers keys and times so that the numbers have the order of both."""

    def __init__(self, keys: Array, times: Array) -> None:
        """Fit the numbers to records. Times between theirs get numbers that fit in between."""
        self._times: Array | None = None
        self._first_ms, self._width = 0, 0
        if len(times):
            self._first_ms = int(times.min())
            self._width = int(times.max()) - self._first_ms + 1
            if self._width * (int(keys.max()) + 1) > _MOST_CODES:
                self._times = distinct(times)
                self._width = len(self._times)

    def codes(self, keys: Array, times: Array) -> Array:
        """Return the number of each key and time, or that of the next time of these records."""
        if self._times is not None:
            ranks = np.searchsorted(self._times, times)
        else:
            ranks = np.clip(times - self._first_ms, 0, self._width)
        return np.asarray(keys * self._width + ranks)


def groups_of(keys: Array, times: Array) -> Array:
    """Number the groups of equal keys and times of records that are ordered by both."""
    if len(keys) == 0:
        return np.empty(0, np.int64)
    is_next = (keys[1:] != keys[:-1]) | (times[1:] != times[:-1])
    return np.append(0, np.cumsum(is_next))


def numbers_in(groups: Array) -> Array:
    """Return the number of each record in its group, given ascending groups."""
    return np.asarray(np.arange(len(groups)) - np.searchsorted(groups, groups))
