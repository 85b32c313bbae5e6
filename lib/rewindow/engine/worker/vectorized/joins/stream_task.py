"""Join two streams in batches: the equivalent of `streams.task` with a `StreamJoin`.

Why this is exact (L4), rule by rule of `dsl.operators.stream_join`:

1. The partners of a record have its key and a time in a range. They arrive before it, and the other store still retains
   them. The store's clock is a running maximum. So all partners can be found when the whole batch is known.
2. A record without a partner waits until an arrival finds it as a partner, or until the node's clock is past its time. The node's
   clock is a running maximum, too. The earlier of the two arrivals decides what happens to the record.
3. A stable sort by arrival gives the order of results. At each arrival, the results of records whose wait is over come first,
   then the results of the arrival itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import Epoch, SubTopologyWork, TaskWork
from rewindow.engine.worker.arrow_rows import distinct
from rewindow.engine.worker.changelog_reader import RowGroupFilter, changelog_batches, row_columns
from rewindow.engine.worker.staging import StagingTarget
from rewindow.engine.worker.vectorized.arrays import Array, UnfitError
from rewindow.engine.worker.vectorized.joins.join_task import LATEST_MS, Arrivals, Joined, JoinTask
from rewindow.engine.worker.vectorized.joins.stream_input import NEW, Found, Records, StreamInput, groups_of, numbers_in
from rewindow.engine.worker.vectorized.joins.value_rows import ValueRows
from rewindow.engine.worker.vectorized.keys import KeyTable
from rewindow.engine.worker.vectorized.plans import JoinPlan, JoinStore
from rewindow.engine.worker.vectorized.window_results import write_changes
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import NODE
from rewindow.streams.record import MAX_MS, UNKNOWN
from rewindow.streams.settings import Limits, Semantics

MOST_PAIRS = 2**18
"""The approximate number of pairs of records that are processed together. This limit bounds memory."""
IDLE_KEYS = 100_000
"""Keys that no record has any more are removed when there are more than about this many."""
_NONE = -1


class StreamJoinTask(JoinTask):
    """A join of two streams."""

    def __init__(self, plan: JoinPlan, semantics: Semantics, state: TaskState | None, limits: Limits) -> None:
        """See `JoinTask`."""
        super().__init__(plan, semantics, state, limits)
        clocks = state.store_clocks if state else {}
        left, right = plan.inputs[plan.left], plan.inputs[1 - plan.left]
        supplier: Any = plan.supplier
        self.left = StreamInput(supplier, left, plan.stores, clocks, is_left=True)
        self.right = StreamInput(supplier, right, plan.stores, clocks, is_left=False)
        self._both = ((self.left, self.right), (self.right, self.left))
        """Two pairs (input, other input), one for each input."""
        self._has_waiting = self.left.waiting is not None or self.right.waiting is not None

    @property
    def store_clocks(self) -> dict[str, int]:
        """See `JoinTask`."""
        clocks = {side.store: side.retained.clock_ms for side, _ in self._both}
        return {name: clocks.get(name, UNKNOWN) for name in self.plan.stores}

    def restore(self, work: SubTopologyWork, task_work: TaskWork) -> None:
        """See `JoinTask`."""
        del work
        for side, _ in self._both:
            _restore(side, self.keys, self.plan.stores, task_work)
        self._check_memory()

    def end_epoch(self, epoch: Epoch) -> Iterator[Joined]:
        """See `JoinTask`. The watermark ends the waits of records. In a final epoch, all waits end."""
        times = [self.clocks.watermark_ms(epoch), MAX_MS if epoch.is_final else UNKNOWN]
        self.clocks.end_epoch(epoch)
        for time_ms in times:
            if time_ms != UNKNOWN and self._has_waiting:
                self.clocks.observe(self.plan.node, time_ms)
                clock_ms = self.clocks.observed(self.plan.node)
                due = [(side, side.waiting.pop(clock_ms)) for side, _ in self._both if side.waiting]
                sent = self._unmatched(
                    [(side, records, np.zeros(len(records.keys), np.int64)) for side, records in due]
                )
                if len(sent.keys):
                    yield self._joined(sent, None, np.array([MAX_MS]))

    def stage(self, targets: dict[str, StagingTarget], *, partition: int, run: int) -> list[StagedFile]:
        """See `JoinTask`."""
        inputs = (self.left, self.right)
        return _stage(inputs, self.keys, self.plan.stores, targets, partition=partition, run=run)

    def _stored(self) -> Sequence[tuple[int, ValueRows]]:
        return [(side.peak, side.values) for side, _ in self._both]

    def _join(self, arrivals: Arrivals, orders: Array) -> Iterator[Joined]:
        batch = self._put(arrivals)
        for start, end in _chunks(batch.counts):
            sent = self._results(batch, start, end)
            if len(sent.keys):
                yield self._joined(sent, arrivals, orders)
        for side, _ in self._both:
            side.end_batch()
        self._forget()

    def _put(self, arrivals: Arrivals) -> _Batch:
        """Put the records into the stores, and look up the range of possible partners of each record."""
        keys, times, is_left = arrivals.keys, arrivals.times, arrivals.is_left
        # The node's clock is needed only if records may wait.
        clocks = self._observe(times) if self._has_waiting else times
        is_kept = np.where(is_left, self.left.is_kept, self.right.is_kept)
        skipped = ~arrivals.has_value | ((keys < 0) & ~is_kept)
        self._count(self.plan.node, "null-key", int(np.count_nonzero(skipped & (keys < 0))))
        self._count(self.plan.node, "null-value", int(np.count_nonzero(skipped & (keys >= 0))))
        is_joining = ~skipped & (keys >= 0)
        rows, starts, counts = (np.zeros(len(keys), np.int64) for _ in range(3))
        for (side, _), columns in zip(self._both, arrivals.columns, strict=True):
            own = np.flatnonzero(is_joining & (is_left == side.is_left))
            if len(own):
                rows[own] = side.values.add(columns)[arrivals.rows[own]]
            side.put(keys, times, rows, own, self.clocks.metrics)
        # All records of the batch are put into the stores before partners are looked up. `pairs` leaves out partners that
        # arrive later.
        for side, other in self._both:
            own = np.flatnonzero(is_joining & (is_left == side.is_left))
            earliest, latest = np.maximum(times[own] - side.back_ms, 0), np.maximum(times[own] + side.ahead_ms, 0)
            starts[own], counts[own] = other.retained.between(keys[own], earliest, latest)
        return _Batch(arrivals, rows, is_joining, ~skipped & (keys < 0), starts, counts, clocks)

    def _observe(self, times: Array) -> Array:
        """Advance the node's clock by records. Return the clock at each record."""
        before_ms = self.clocks.observed(self.plan.node)
        if before_ms > LATEST_MS:
            raise UnfitError
        clocks = np.maximum(np.maximum.accumulate(times), before_ms)
        self.clocks.observe(self.plan.node, int(clocks[-1]))
        self.clocks.count_lateness(NODE, self.plan.node, clocks - times)
        return np.asarray(clocks)

    def _results(self, batch: _Batch, start: int, end: int) -> _Sent:
        """Return the results that the arrivals ``[start, end)`` send, in order."""
        arrivals, keys, times = batch.arrivals, batch.arrivals.keys, batch.arrivals.times
        parts: list[_Sent] = []
        matches: dict[bool, Found] = {}
        chunk = np.arange(start, end)
        for side, other in self._both:
            own = chunk[arrivals.is_left[start:end] == side.is_left]
            joining = own[batch.is_joining[own]]
            joined, partners = other.retained.pairs(joining, batch.first[joining], batch.counts[joining], other.clocks)
            matches[other.is_left] = Found(keys[joined], other.retained.group[partners], joined)
            records = other.retained.records
            count = len(joined)
            joined_at = np.maximum(times[joined], records.times[partners])
            own_values, partner_values = (
                _Origin.of(count, arrivals=joined),
                _Origin.of(count, rows=records.rows[partners]),
            )
            parts.append(_Sent.by(joined, keys[joined], joined_at, own_values, partner_values, is_left=side.is_left))
            has_partner = np.zeros(end - start, np.bool_)
            has_partner[joined - start] = True
            alone = own[batch.is_alone[own]]
            if side.is_kept:
                without = joining[~has_partner[joining - start]]
                alone = np.concatenate([alone, self._wait(side, batch, without)])
            nulls, own_values = _Origin.of(len(alone)), _Origin.of(len(alone), arrivals=alone)
            parts.append(_Sent.by(alone, keys[alone], times[alone], own_values, nulls, is_left=side.is_left))
        due = [
            (side, *side.waiting.take_due(matches[side.is_left], side.retained, batch.clocks, end))
            for side, _ in self._both
            if side.waiting
        ]
        return _in_order([self._unmatched(due), *parts])

    def _wait(self, side: StreamInput, batch: _Batch, records: Array) -> Array:
        """Let records without a partner wait. Return the records whose wait is already over.

        If records of this input never wait, return all records.
        """
        if side.waiting is None:
            return records
        keys, times = batch.arrivals.keys, batch.arrivals.times
        is_over = side.waiting.are_over(times[records], batch.clocks[records])
        left = records[~is_over]
        side.waiting.add(Records(keys[left], times[left], batch.rows[left], left, np.full(len(left), NEW)))
        return records[is_over]

    def _unmatched(self, due: Sequence[tuple[StreamInput, Records, Array]]) -> _Sent:
        """Return the results of records whose wait is over, in order.

        ``due`` has triples (input, records, arrivals at which their waits end).
        """
        parts = [
            _Sent.by(
                ends_at,
                records.keys,
                records.times,
                _Origin.of(len(ends_at), rows=records.rows),
                _Origin.of(len(ends_at)),
                is_left=side.is_left,
            )
            for side, records, ends_at in due
        ]
        sent = _concatenated(parts)
        is_left = sent.left_rows >= 0
        return sent.taken(np.lexsort((self.keys.ranks(sent.keys), is_left, sent.times, sent.at)))

    def _joined(self, sent: _Sent, arrivals: Arrivals | None, orders: Array) -> Joined:
        """Return results with their values. ``arrivals`` is None if the results are sent at the end of an epoch."""
        lefts, rights = self._decoded(self.left, sent.lefts, arrivals), self._decoded(self.right, sent.rights, arrivals)
        positions = np.full(len(sent.at), -1) if arrivals is None else arrivals.positions[sent.at]
        values = self._joined_values(sent.keys, lefts, rights)
        return Joined(sent.keys, values, sent.times, orders[np.maximum(positions, 0)], positions)

    def _decoded(self, side: StreamInput, origin: _Origin, arrivals: Arrivals | None) -> list[Any]:
        by_arrival, by_row = np.flatnonzero(origin.arrivals >= 0), np.flatnonzero(origin.rows >= 0)
        values: list[Any] = []
        if arrivals is not None:
            values += self._values(arrivals, arrivals.rows[origin.arrivals[by_arrival]], is_left=side.is_left)
        values += side.values.values(origin.rows[by_row]) if len(by_row) else []
        index = np.full(len(origin.rows), len(values))
        index[by_arrival], index[by_row] = np.arange(len(by_arrival)), len(by_arrival) + np.arange(len(by_row))
        values.append(None)
        return [values[position] for position in index.tolist()]

    def _forget(self) -> None:
        """Drop the keys without records, if there are many."""
        records = sum(side.retained.count + (side.waiting.count if side.waiting else 0) for side, _ in self._both)
        if len(self.keys) > IDLE_KEYS + 4 * records:
            used = distinct(np.concatenate([keys for side, _ in self._both for keys in side.used_keys()]))
            self.keys.keep(used)
            for side, _ in self._both:
                side.renumber(used)


class _Batch(NamedTuple):
    """The records of a batch. Each array has one item per record."""

    arrivals: Arrivals
    rows: Array
    """The index of the record's value in the stored values of its input."""
    is_joining: Array
    is_alone: Array
    """Whether a record's result is sent at once without a partner, because the record has no key."""
    first: Array
    counts: Array
    """A possible partner is a retained record of the other input in the range of times. ``first`` is the index of the first
    possible partner, and ``counts`` is their number."""
    clocks: Array
    """The node's clock."""


def _chunks(counts: Array) -> Iterator[tuple[int, int]]:
    """Yield ranges ``[start, end)`` of records. Together, the records of a range have about `MOST_PAIRS` possible partners."""
    before = np.cumsum(counts) - counts
    cuts = np.flatnonzero(np.diff(before // MOST_PAIRS)) + 1
    return pairwise([0, *cuts.tolist(), len(counts)])


class _Origin(NamedTuple):
    """The origin of each value: an arrival of the batch, or a row of the store's values. If both are -1, the value is null."""

    arrivals: Array
    rows: Array

    @classmethod
    def of(cls, count: int, *, arrivals: Array | None = None, rows: Array | None = None) -> _Origin:
        """Return the origins of ``count`` values. If both ``arrivals`` and ``rows`` are None, the values are null."""
        nulls = np.full(count, _NONE)
        return cls(nulls if arrivals is None else arrivals, nulls if rows is None else rows)


class _Sent(NamedTuple):
    """Results: the arrival that sends each result, its key number, its timestamp, and the origins of its two values."""

    at: Array
    keys: Array
    times: Array
    left_arrivals: Array
    left_rows: Array
    right_arrivals: Array
    right_rows: Array

    @classmethod
    def by(cls, at: Array, keys: Array, times: Array, own: _Origin, other: _Origin, *, is_left: bool) -> _Sent:
        """Return results. ``own`` has the origins of one input's values, ``other`` those of the other input.

        ``is_left``: ``own`` is left.
        """
        left, right = (own, other) if is_left else (other, own)
        return cls(at, keys, times, *left, *right)

    @classmethod
    def none(cls) -> _Sent:
        """Return no results."""
        return cls(*(np.empty(0, np.int64) for _ in cls._fields))

    def taken(self, rows: Array) -> _Sent:
        """Return the results at these indexes."""
        return _Sent(*(array[rows] for array in self))

    @property
    def lefts(self) -> _Origin:
        """The origin of the left values."""
        return _Origin(self.left_arrivals, self.left_rows)

    @property
    def rights(self) -> _Origin:
        """The origin of the right values."""
        return _Origin(self.right_arrivals, self.right_rows)


def _concatenated(parts: Sequence[_Sent]) -> _Sent:
    """Return the results of several parts, one after the other."""
    return _Sent(*(np.concatenate(arrays) for arrays in zip(_Sent.none(), *parts, strict=True)))


def _in_order(parts: Sequence[_Sent]) -> _Sent:
    """Return the results of all parts, sorted by the arrival that sends them. Results of one arrival keep the parts' order."""
    both = _concatenated(parts)
    return both.taken(np.argsort(both.at, kind="stable"))


def _restore(side: StreamInput, keys: KeyTable, stores: Mapping[str, JoinStore], task_work: TaskWork) -> None:
    """Restore the stores of an input. Raises `UnfitError` for times above `LATEST_MS`."""
    clock_ms, retained = side.retained.clock_ms, side.retained
    records = _read(side, keys, stores[side.store], task_work, clock_ms - stores[side.store].builder.retention_ms)
    if clock_ms != UNKNOWN:
        records = records.taken(retained.are_retained(records.times, clock_ms))
    retained.add(records)
    side.peak = retained.count
    if side.waiting and side.waiting_store:
        side.waiting.add(_read(side, keys, stores[side.waiting_store], task_work, UNKNOWN))
        side.peak = max(side.peak, side.waiting.count)


def _stage(
    inputs: Sequence[StreamInput],
    keys: KeyTable,
    stores: Mapping[str, JoinStore],
    targets: Mapping[str, StagingTarget],
    *,
    partition: int,
    run: int,
) -> list[StagedFile]:
    """Stage the changes of all stores."""
    changes = {}
    for side in inputs:
        records = side.retained.records
        numbers = numbers_in(groups_of(records.keys, records.times))
        new = np.flatnonzero(records.numbers == NEW)
        new = new[np.lexsort((numbers[new], records.times[new], keys.ranks(records.keys[new])))]
        columns = [*keys.columns(records.keys[new]), pa.array(records.times[new]), pa.array(numbers[new])]
        changes[side.store] = [*columns, *side.values.columns(records.rows[new])], np.zeros(len(new), np.bool_)
        if side.waiting and side.waiting_store:
            changes[side.waiting_store] = side.waiting.changes(keys, side.values)
    staged: list[StagedFile] = []
    for name, store in stores.items():
        staged += write_changes(targets[name], store.shapes, *changes[name], partition=partition, run=run)
    return staged


def _read(side: StreamInput, keys: KeyTable, store: JoinStore, task_work: TaskWork, above_ms: int) -> Records:
    """Return the records of a store, ordered by key, time and number.

    If several rows have the same key, time and number, the last row counts. A tombstone removes the record.
    """
    key, value = store.shapes
    width = len(key.columns) - 2
    parts = [Records.none()]
    gone = [np.empty(0, np.bool_)]
    wanted = RowGroupFilter(key.names[width], above_ms) if above_ms > UNKNOWN else None
    paths = task_work.stores.get(store.builder.name, ())
    for batch in changelog_batches(paths, task_work.partition, row_columns(key, value), wanted=wanted):
        if batch.num_rows:
            columns = batch.columns
            times, numbers = np.asarray(columns[width]), np.asarray(columns[width + 1])
            if times.max() > LATEST_MS:
                raise UnfitError
            rows = side.values.add(columns[width + 2 : -1])
            parts.append(Records(keys.numbers(columns[:width]), times, rows, np.full(len(times), NEW), numbers))
            gone.append(np.asarray(columns[-1]))
    records = Records(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    order = np.lexsort((records.numbers, records.times, records.keys))
    records, is_gone = records.taken(order), np.concatenate(gone)[order]
    same = [array[1:] == array[:-1] for array in (records.keys, records.times, records.numbers)]
    is_last = np.append(~np.logical_and.reduce(same), True)[: len(order)]
    return records.taken(is_last & ~is_gone)
