"""One input of a join of two streams: its time limits, and its records as arrays of equal length.

`_Retained` is the equivalent of a `JoinStore`. `_Waiting` is the equivalent of the `RecordStore` with the records that have
no partner yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from rewindow.dsl.operators.stream_join import StreamJoin
from rewindow.engine.worker.arrow_rows import distinct
from rewindow.engine.worker.vectorized.arrays import Array
from rewindow.engine.worker.vectorized.joins.value_rows import ValueRows
from rewindow.engine.worker.vectorized.keys import KeyTable
from rewindow.engine.worker.vectorized.plans import JoinInput, JoinStore
from rewindow.streams.metrics import EXPIRED_WINDOW_DROP, STORE, Metrics
from rewindow.streams.record import UNKNOWN
from rewindow.streams.state.join_store import JoinStore as RecordExecutionStore

NEW = -1
"""Used instead of a number in the checkpoint for a record that is not in the checkpoint."""
_EARLIER = -1
"""Used instead of an index in the current batch for a record that arrived earlier."""
_MOST_CODES = 2**62


class StreamInput:
    """An input of the join: its retained records, and the records that wait for a partner."""

    def __init__(
        self,
        supplier: StreamJoin,
        join_input: JoinInput,
        stores: Mapping[str, JoinStore],
        clocks: Mapping[str, int],
        *,
        is_left: bool,
    ) -> None:
        """``clocks`` maps the name of a store to its clock in the checkpoint."""
        windows, names = supplier.windows, supplier.left if is_left else supplier.right
        self.is_left = is_left
        self.is_kept = supplier.keeps_left if is_left else supplier.keeps_right
        self.back_ms = windows.before_ms if is_left else windows.after_ms
        self.ahead_ms = windows.after_ms if is_left else windows.before_ms
        self.store, self.waiting_store = names.records, names.unmatched
        self.values = ValueRows(join_input.value)
        self.retained = _Retained(stores[self.store].builder.retention_ms, clocks.get(self.store, UNKNOWN))
        self.waiting = _Waiting(self.ahead_ms + windows.grace_ms) if self.waiting_store else None
        self.peak = 0
        """The largest number of records that any of the input's stores has had at one time."""
        self.clocks = np.empty(0, np.int64)
        """The clock of the store at each record of the batch."""

    def put(self, keys: Array, times: Array, rows: Array, own: Array, metrics: Metrics) -> None:
        """Put the records of a batch at the indexes ``own`` into the store. Expired records are only counted, not put.

        ``keys``, ``times`` and ``rows`` have an item for each record of the batch.
        """
        put_times = np.full(len(times), UNKNOWN)
        put_times[own] = times[own]
        self.clocks = self.retained.clocks(put_times)
        is_retained = self.retained.are_retained(times[own], self.clocks[own])
        if lost := int(np.count_nonzero(~is_retained)):
            reason = RecordExecutionStore.expired_reason
            metrics.measure(STORE, self.store, EXPIRED_WINDOW_DROP, reason).record_many(lost, lost, 1, 1)
        stored = own[is_retained]
        self.retained.add(Records(keys[stored], times[stored], rows[stored], stored, np.full(len(stored), NEW)))
        self.peak = max(self.peak, self.retained.count)

    def end_batch(self) -> None:
        """Advance the clock, drop expired records, and mark all records as arrived before the next batch."""
        self.retained.end_batch(int(self.clocks[-1]))
        records = [self.retained.records]
        if self.waiting is not None:
            self.peak = max(self.peak, self.waiting.count)
            self.waiting.end_batch()
            records.append(self.waiting.records)
        # Both stores refer to the same values. So a value is dropped only if neither store refers to it.
        rows = self.values.compact([kept.rows for kept in records])
        self.retained.records = records[0]._replace(rows=rows[0])
        if self.waiting is not None:
            self.waiting.records = records[1]._replace(rows=rows[1])

    def used_keys(self) -> list[Array]:
        """Return arrays that together have the key numbers of all records."""
        more = [self.waiting.records.keys, self.waiting.gone.keys] if self.waiting is not None else []
        return [self.retained.records.keys, *more]

    def renumber(self, used: Array) -> None:
        """Replace each key number by its index in ``used``, which is ascending."""

        def renumbered(records: Records) -> Records:
            return records._replace(keys=np.searchsorted(used, records.keys))

        self.retained.records = renumbered(self.retained.records)
        if self.waiting is not None:
            self.waiting.records, self.waiting.gone = renumbered(self.waiting.records), renumbered(self.waiting.gone)


class Records(NamedTuple):
    """Records of a store. Each array has one item per record."""

    keys: Array
    """The number of the key."""
    times: Array
    rows: Array
    """The row of the value (`value_rows`)."""
    arrivals: Array
    """The index of the record in the current batch; `_EARLIER` if it arrived before."""
    numbers: Array
    """The record's number in the checkpoint, among the records with its key and timestamp; `NEW` if it has no number."""

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
        """Return these records, marked as having arrived before the current batch."""
        return self._replace(arrivals=np.full(len(self.keys), _EARLIER))


def groups_of(keys: Array, times: Array) -> Array:
    """Return the number of each record's group, from 0 on.

    Records with the same key and time are a group. The given records are sorted by key and time.
    """
    if len(keys) == 0:
        return np.empty(0, np.int64)
    is_next = (keys[1:] != keys[:-1]) | (times[1:] != times[:-1])
    return np.append(0, np.cumsum(is_next))


def numbers_in(groups: Array) -> Array:
    """Return the number of each record within its group, from 0 on. The groups are ascending."""
    return np.asarray(np.arange(len(groups)) - np.searchsorted(groups, groups))


class Found(NamedTuple):
    """Arrivals of one input that found partners in the other. Three arrays: the partner's key, its group, and the arrival."""

    keys: Array
    groups: Array
    arrivals: Array


class _KeyTimeOrder:
    """Maps pairs (key, time) to integers that sort as the pairs do."""

    def __init__(self, keys: Array, times: Array) -> None:
        """Choose the mapping for the keys and times of some records. `codes` can map other times, too."""
        self._times: Array | None = None
        self._first_ms, self._width = 0, 0
        if len(times):
            self._first_ms = int(times.min())
            self._width = int(times.max()) - self._first_ms + 1
            # If key and time do not fit into one long, the rank of the time takes the place of the time.
            if self._width * (int(keys.max()) + 1) > _MOST_CODES:
                self._times = distinct(times)
                self._width = len(self._times)

    def codes(self, keys: Array, times: Array) -> Array:
        """Return the integer of each pair. A time that no record has may get the integer of the next time that a record has."""
        if self._times is not None:
            ranks = np.searchsorted(self._times, times)
        else:
            ranks = np.clip(times - self._first_ms, 0, self._width)
        return np.asarray(keys * self._width + ranks)


class _Pairs(NamedTuple):
    """Pairs of an arrival and a partner: the arrival's index in the batch, and the partner's index in the retained records."""

    arrivals: Array
    partners: Array


class _Retained:
    """The records of one input that can still be joined, ordered by key, time and arrival."""

    def __init__(self, retention_ms: int, clock_ms: int) -> None:
        """Start without records. ``clock_ms``: the highest timestamp that was ever put into the store."""
        self.clock_ms = clock_ms
        self._retention_ms = retention_ms
        self.records = Records.none()
        self._index()

    @property
    def count(self) -> int:
        """The number of records, including records that expired in the current batch."""
        return len(self.records.keys)

    def add(self, records: Records) -> None:
        """Add records in the order of their arrival."""
        self.records = self.records.followed_by(records)
        self._index()

    def clocks(self, times: Array) -> Array:
        """Return the store's clock at each record of a batch.

        ``times`` has the timestamps of the records that are put into the store, and -1 for the other records of the batch.
        """
        return np.asarray(np.maximum(np.maximum.accumulate(times), self.clock_ms))

    def are_retained(self, times: Array, clocks: Array | int) -> Array:
        """Return a mask of the ``times`` whose records the store still retains at ``clocks``."""
        return np.asarray(times > clocks - self._retention_ms)

    def between(self, keys: Array, from_ms: Array, to_ms: Array) -> tuple[Array, Array]:
        """Return, for each key, the index of the first record with a time in ``[from, to]``, and the number of such records."""
        start = np.searchsorted(self._codes, self._order.codes(keys, from_ms))
        end = np.searchsorted(self._codes, self._order.codes(keys, to_ms + 1))
        return start, np.maximum(end - start, 0)

    def pairs(self, arrivals: Array, starts: Array, counts: Array, clocks: Array) -> _Pairs:
        """Return pairs of arrivals and the partners that `between` found, without partners that arrive later or have expired.

        The pairs are in the order in which record execution fetches them.

        ``clocks``: the store's clock at each record of the batch.
        """
        index = np.repeat(np.arange(len(arrivals)), counts)
        before = np.cumsum(counts) - counts
        at_arrivals, partners = arrivals[index], starts[index] + np.arange(len(index)) - before[index]
        # All records of the batch are in the store already. So partners that arrive later have to be left out.
        is_there = self.records.arrivals[partners] < at_arrivals
        is_there &= self.are_retained(self.records.times[partners], clocks[at_arrivals])
        return _Pairs(at_arrivals[is_there], partners[is_there])

    def groups(self, keys: Array, times: Array) -> Array:
        """Return, for each key and time, the number of the group of records that have both; -1 if there are none."""
        starts, counts = self.between(keys, times, times)
        groups = np.full(len(keys), -1)
        groups[counts > 0] = self.group[starts[counts > 0]]
        return groups

    def end_batch(self, clock_ms: int) -> None:
        """Advance the clock and drop the expired records."""
        self.clock_ms = clock_ms
        is_kept = self.are_retained(self.records.times, clock_ms) if clock_ms != UNKNOWN else np.array([True])
        self.records = (self.records if is_kept.all() else self.records.taken(is_kept)).as_earlier()

    def _index(self) -> None:
        self._order = _KeyTimeOrder(self.records.keys, self.records.times)
        codes = self._order.codes(self.records.keys, self.records.times)
        order = np.argsort(codes, kind="stable")
        self.records, self._codes = self.records.taken(order), codes[order]
        self.group = groups_of(self.records.keys, self.records.times)
        """The number of each record's group. The records of a group have the same key and time."""


class _Waiting:
    """The records that wait, in the order of their arrival. A record waits until it finds a partner or its wait is over."""

    def __init__(self, waits_ms: int) -> None:
        """Start without records. A record's wait is over when the clock is more than ``waits_ms`` above its timestamp."""
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
        """Return a mask of the records whose wait is over. ``clocks``: the node's clock, or one clock for each record."""
        return np.asarray(times + self._waits_ms < clocks)

    def take_due(self, matches: Found, retained: _Retained, clocks: Array, end: int) -> tuple[Records, Array]:
        """Remove records that found a partner while they waited, and records whose wait ends before the arrival ``end``.

        Return the second kind of records, and the arrivals at which their waits end. ``matches`` says which arrivals found
        which groups of records. ``clocks`` has the node's clock at each arrival of the batch.
        """
        candidates = np.flatnonzero(self._may_end(matches.keys, int(clocks[end - 1])))
        keys, times, _, arrivals, _ = self.records.taken(candidates)
        # The node's clock never decreases, so a binary search finds the first arrival at which the wait is over.
        over_at = np.searchsorted(clocks, times + self._waits_ms, "right")
        # An arrival finds all records of a group or, once the group has expired, none of them. So groups are compared, not
        # records.
        width = len(clocks) + 1
        codes = np.append(distinct(matches.groups * width + matches.arrivals), np.iinfo(np.int64).max)
        groups = retained.groups(keys, times)
        next_found = codes[np.searchsorted(codes, groups * width + arrivals + 1)]
        found_at = np.where((groups >= 0) & (next_found // width == groups), next_found % width, width)
        is_found = found_at < over_at
        is_due = ~is_found & (over_at < end)
        due, ends_at = self.records.taken(candidates[is_due]), over_at[is_due]
        gone = np.zeros(self.count, np.bool_)
        gone[candidates[is_found | is_due]] = True
        self._remove(gone)
        return due, ends_at

    def pop(self, clock_ms: int) -> Records:
        """Remove and return the records whose wait is over."""
        is_due = self.are_over(self.records.times, clock_ms)
        due = self.records.taken(is_due)
        self._remove(is_due)
        return due

    def end_batch(self) -> None:
        """Mark all records as arrived before the next batch."""
        self.records = self.records.as_earlier()

    def changes(self, keys: KeyTable, values: ValueRows) -> tuple[list[pa.Array], Array]:
        """Return the columns of the rows to write, ordered by key bytes, time and number, and a mask of the tombstones."""
        both = self.records.followed_by(self.gone)
        is_gone = np.arange(len(both.keys)) >= self.count
        order = np.lexsort((is_gone, both.times, keys.ranks(both.keys)))
        both, is_gone = both.taken(order), is_gone[order]
        groups = groups_of(both.keys, both.times)
        # The waiting records of a group are numbered from 0. So they overwrite the group's rows, and a row that none of them
        # overwrites needs a tombstone.
        live = np.bincount(groups[~is_gone], minlength=len(groups))
        numbers = np.where(is_gone, both.numbers, numbers_in(groups))
        is_written = np.where(is_gone, numbers >= live[groups], both.numbers == NEW)
        both, is_gone, numbers = both.taken(is_written), is_gone[is_written], numbers[is_written]
        columns = [*keys.columns(both.keys), pa.array(both.times), pa.array(numbers)]
        return [*columns, *values.columns(np.where(is_gone, -1, both.rows))], is_gone

    def _may_end(self, keys: Array, clock_ms: int) -> Array:
        """Return a mask of the records whose wait is over at ``clock_ms``, or whose key found a partner (``keys``)."""
        may_end = self.are_over(self.records.times, clock_ms)
        if len(keys) and self.count:
            is_found = np.zeros(int(max(keys.max(), self.records.keys.max())) + 1, np.bool_)
            is_found[keys] = True
            may_end |= is_found[self.records.keys]
        return may_end

    def _remove(self, mask: Array) -> None:
        if mask.any():
            self.gone = self.gone.followed_by(self.records.taken(mask & (self.records.numbers != NEW)))
            self.records = self.records.taken(~mask)
