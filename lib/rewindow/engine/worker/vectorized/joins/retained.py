"""The retained records of one input of a join of streams: the equivalent of a `JoinStore`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rewindow.engine.worker.vectorized.group_frame import Array
from rewindow.engine.worker.vectorized.joins.records import KeyTimeOrder, Records, groups_of
from rewindow.streams.record import UNKNOWN


class Pairs(NamedTuple):
    """Arrivals of one input with their partners: the index of each in the batch, and in the retained records."""

    arrivals: Array
    partners: Array


class Retained:
    """The records of one input that can still be joined, ordered by key, time and arrival."""

    def __init__(self, retention_ms: int, clock_ms: int) -> None:
        """Start without records. ``clock_ms``: the highest timestamp put so far."""
        self.clock_ms = clock_ms
        self._retention_ms = retention_ms
        self.records = Records.none()
        self._index()

    @property
    def count(self) -> int:
        """The number of records, those that expired in the current batch included."""
        return len(self.records.keys)

    def add(self, records: Records) -> None:
        """Add records in the order of their arrival."""
        self.records = self.records.followed_by(records)
        self._index()

    def clocks(self, times: Array) -> Array:
        """Return the store's clock at each record of a batch, given the timestamps that are put, and -1 at other records."""
        return np.asarray(np.maximum(np.maximum.accumulate(times), self.clock_ms))

    def are_retained(self, times: Array, clocks: Array | int) -> Array:
        """Return whether records with these times are retained at a clock."""
        return np.asarray(times > clocks - self._retention_ms)

    def between(self, keys: Array, from_ms: Array, to_ms: Array) -> tuple[Array, Array]:
        """Return the first record of each key with a time in ``[from, to]``, and the number of such records."""
        first = np.searchsorted(self._codes, self._order.codes(keys, from_ms))
        after = np.searchsorted(self._codes, self._order.codes(keys, to_ms + 1))
        return first, np.maximum(after - first, 0)

    def pairs(self, arrivals: Array, first: Array, counts: Array, clocks: Array) -> Pairs:
        """Return the partners that `between` found, unless they arrive later or are expired, in the order of fetches.

        ``clocks``: the store's clock at each record of the batch.
        """
        index = np.repeat(np.arange(len(arrivals)), counts)
        before = np.cumsum(counts) - counts
        at, partners = arrivals[index], first[index] + np.arange(len(index)) - before[index]
        is_there = self.records.arrivals[partners] < at
        is_there &= self.are_retained(self.records.times[partners], clocks[at])
        return Pairs(at[is_there], partners[is_there])

    def groups(self, keys: Array, times: Array) -> Array:
        """Return the number of the group of records with each key and time, or -1."""
        first, counts = self.between(keys, times, times)
        found = np.full(len(keys), -1)
        found[counts > 0] = self.group[first[counts > 0]]
        return found

    def end_batch(self, clock_ms: int) -> None:
        """Advance the clock and drop the expired records."""
        self.clock_ms = clock_ms
        is_kept = self.are_retained(self.records.times, clock_ms) if clock_ms != UNKNOWN else np.array([True])
        self.records = (self.records if is_kept.all() else self.records.taken(is_kept)).as_earlier()

    def _index(self) -> None:
        self._order = KeyTimeOrder(self.records.keys, self.records.times)
        codes = self._order.codes(self.records.keys, self.records.times)
        order = np.argsort(codes, kind="stable")
        self.records, self._codes = self.records.taken(order), codes[order]
        self.group = groups_of(self.records.keys, self.records.times)
        """The group of each record: those of a group have the same key and time."""
