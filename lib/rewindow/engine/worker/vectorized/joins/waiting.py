"""The records of one input that wait for a partner: the equivalent of the `RecordStore` of unmatched records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.arrow_rows import distinct
from rewindow.engine.worker.vectorized.group_frame import Array
from rewindow.engine.worker.vectorized.joins.records import NEW, Records, groups_of, numbers_in
from rewindow.engine.worker.vectorized.joins.retained import Retained
from rewindow.engine.worker.vectorized.joins.value_rows import ValueRows
from rewindow.engine.worker.vectorized.keys import KeyTable


class Found(NamedTuple):
    """Groups of retained records, with their keys, that an arrival of the other input found."""

    keys: Array
    groups: Array
    arrivals: Array


class Waiting:
    """Records in the order of their arrival, until they have found a partner or their wait is over."""

    def __init__(self, waits_ms: int) -> None:
        """Start without records. Their wait is over when a clock is more than ``waits_ms`` past them."""
        self._waits_ms = waits_ms
        self.records = Records.none()
        self.gone = Records.none()
        """Records of the checkpoint that no longer wait."""

    @property
    def count(self) -> int:
        """The number of records."""
        return len(self.records.keys)

    def add(self, records: Records) -> None:
        """Add records."""
        self.records = self.records.followed_by(records)

    def are_over(self, times: Array, clocks: Array | int) -> Array:
        """Return whether the wait of records is over at a clock."""
        return np.asarray(times + self._waits_ms < clocks)

    def take_due(self, found: Found, retained: Retained, clocks: Array, end: int) -> tuple[Records, Array]:
        """Remove the records that were found while they waited, and those whose wait is over before the arrival ``end``.

        Return the latter with the arrival at which it is over. ``clocks``: the node's clock at each arrival of the batch.
        """
        candidates = np.flatnonzero(self._may_end(found.keys, int(clocks[end - 1])))
        keys, times, _, arrivals, _ = self.records.taken(candidates)
        over_at = np.searchsorted(clocks, times + self._waits_ms, "right")
        # An arrival finds all records of a key and time together, or, once they are expired, none of them.
        width = len(clocks) + 1
        codes = np.append(distinct(found.groups * width + found.arrivals), np.iinfo(np.int64).max)
        groups = retained.groups(keys, times)
        next_found = codes[np.searchsorted(codes, groups * width + arrivals + 1)]
        found_at = np.where((groups >= 0) & (next_found // width == groups), next_found % width, width)
        is_found = found_at < over_at
        is_due = ~is_found & (over_at < end)
        due, at = self.records.taken(candidates[is_due]), over_at[is_due]
        gone = np.zeros(self.count, np.bool_)
        gone[candidates[is_found | is_due]] = True
        self._remove(gone)
        return due, at

    def pop(self, clock_ms: int) -> Records:
        """Remove and return the records whose wait is over."""
        is_due = self.are_over(self.records.times, clock_ms)
        due = self.records.taken(is_due)
        self._remove(is_due)
        return due

    def end_batch(self) -> None:
        """Take all records as earlier ones."""
        self.records = self.records.as_earlier()

    def changes(self, keys: KeyTable, values: ValueRows) -> tuple[list[pa.Array], Array]:
        """Return the rows to write, by key bytes, time and number: their columns, and which are tombstones."""
        both = self.records.followed_by(self.gone)
        is_gone = np.arange(len(both.keys)) >= self.count
        order = np.lexsort((is_gone, both.times, keys.ranks(both.keys)))
        both, is_gone = both.taken(order), is_gone[order]
        groups = groups_of(both.keys, both.times)
        # Those that wait are numbered anew if their group was removed. They overwrite the first of the removed ones.
        live = np.bincount(groups[~is_gone], minlength=len(groups))
        numbers = np.where(is_gone, both.numbers, numbers_in(groups))
        is_written = np.where(is_gone, numbers >= live[groups], both.numbers == NEW)
        both, is_gone, numbers = both.taken(is_written), is_gone[is_written], numbers[is_written]
        columns = [*keys.columns(both.keys), pa.array(both.times), pa.array(numbers)]
        return [*columns, *values.columns(np.where(is_gone, -1, both.rows))], is_gone

    def _may_end(self, found: Array, clock_ms: int) -> Array:
        """Return the records whose wait is over at a clock, or whose key was found."""
        may_end = self.are_over(self.records.times, clock_ms)
        if len(found) and self.count:
            is_found = np.zeros(int(max(found.max(), self.records.keys.max())) + 1, np.bool_)
            is_found[found] = True
            may_end |= is_found[self.records.keys]
        return may_end

    def _remove(self, mask: Array) -> None:
        if mask.any():
            self.gone = self.gone.followed_by(self.records.taken(mask & (self.records.numbers != NEW)))
            self.records = self.records.taken(~mask)
