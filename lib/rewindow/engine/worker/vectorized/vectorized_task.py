"""The base of vectorized tasks. It advances clocks, applies prefix operators and numbers keys before a batch is aggregated.

Final results that another sub-topology reads have order keys (L1). Record execution sends a result when a record advances the
clock of the closing node to the result's due time. So the result gets the order key of this record. Vectorized execution
sends the result at the end of the epoch. `ClosingOrder` finds the record that advanced the clock to the due time.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from rewindow.contracts.tasks import Epoch
from rewindow.engine.worker.arrow_rows import distinct
from rewindow.engine.worker.vectorized.arrays import LEAST, Array, Operand, numbers_of
from rewindow.engine.worker.vectorized.batches import Batch, name_at
from rewindow.engine.worker.vectorized.folds import Operands
from rewindow.engine.worker.vectorized.json_columns import Texts
from rewindow.engine.worker.vectorized.keys import KeyTable
from rewindow.engine.worker.vectorized.plans import FinalResultsPlan
from rewindow.engine.worker.vectorized.prefix_operators import apply_prefix
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import (
    GRACE_BOUNDS_MS,
    GRACE_BUCKETS,
    GRACE_NEEDED,
    NODE,
    PROCESS,
    RECORD_LATENESS,
    SIMULATED_TIME,
    SKIPPED_RECORDS,
    SUPPRESSION_EMIT,
    TASK,
    WINDOW_FINAL_EMIT,
    Metrics,
)
from rewindow.streams.record import MAX_MS, UNKNOWN
from rewindow.streams.settings import Semantics, StreamTime, StreamTimeFrom, WallClock


class Clocks:
    """The state of a task except its stores: clocks, offsets and metrics, as in `streams.task`. There are no punctuations."""

    def __init__(self, topics: Sequence[str], state: TaskState | None, semantics: Semantics, lag_ms: int = 0) -> None:
        """Resume the clocks of a checkpoint. ``lag_ms`` lowers the watermarks of the topics (D22)."""
        self._semantics, self._lag_ms = semantics, lag_ms
        self._state = state or TaskState()
        self.metrics = Metrics()
        self.stream_time_ms = self._state.stream_time_ms
        self._wall_clock_ms = self._state.wall_clock_ms
        self._partition_times = {topic: self._state.partition_times.get(topic, UNKNOWN) for topic in topics}
        self.offsets = {topic: self._state.offsets.get(topic, 0) for topic in topics}
        """The next offset of each topic."""
        self._node_times = dict(self._state.node_times)
        self._start_ms = self._wall_clock_ms
        """The wall clock at the start of the epoch or, if it was unknown then, its first known time."""

    def take(self, timestamps: Array, ranks: Array | None = None) -> None:
        """Advance the clocks by records in their order (at least one).

        ``ranks``: the index of each record's topic; None if there is a single topic.
        """
        times = self._stream_times(timestamps, ranks)
        self.stream_time_ms = int(times[-1])
        for rank, topic in enumerate(self.offsets):
            own = timestamps if ranks is None else timestamps[ranks == rank]
            self.offsets[topic] += len(own)
            self._partition_times[topic] = max(self._partition_times[topic], int(own.max(initial=UNKNOWN)))
        if self._semantics.wall_clock is WallClock.STREAM_TIME:
            self._advance_wall_clock(int(timestamps[0]))
            self._advance_wall_clock(int(timestamps.max()))
        count = len(timestamps)
        self.metrics.measure(TASK, "", PROCESS).record_many(count, count, 1, 1)
        self.count_lateness(TASK, "", np.maximum(times - timestamps, 0))

    def count_lateness(self, level: str, node: str, late_by: Array) -> None:
        """Record the lateness of records (KIP-328)."""
        summary = (int(late_by.sum()), int(late_by.min()), int(late_by.max()))
        self.metrics.measure(level, node, RECORD_LATENESS).record_many(len(late_by), *summary)

    def count_needed_grace(self, node: str, grace_ms: Array) -> None:
        """Count records that arrived after the end of their last window, by the grace period that they would have needed.

        ``grace_ms`` has, for each record, the smallest grace period with which the record would not have been late.
        """
        needed = grace_ms[grace_ms > 0]
        if len(needed) == 0:
            return
        buckets = np.searchsorted(GRACE_BOUNDS_MS, needed)
        for bucket in distinct(buckets):
            mine = needed[buckets == bucket]
            measure = self.metrics.measure(NODE, node, GRACE_NEEDED, GRACE_BUCKETS[bucket])
            measure.record_many(len(mine), int(mine.sum()), int(mine.min()), int(mine.max()))

    def observed(self, node: str) -> int:
        """Return a node's observed time."""
        return self._node_times.get(node, UNKNOWN)

    def observe(self, node: str, time_ms: int) -> None:
        """Advance a node's observed time, unless it is later already."""
        if time_ms > self.observed(node):
            self._node_times[node] = time_ms

    def watermark_ms(self, epoch: Epoch) -> int:
        """Return the watermark that nodes observe at an epoch's end; -1 if they observe none."""
        follows = self._semantics.stream_time_from is StreamTimeFrom.WATERMARK
        return max(epoch.watermark_ms - self._lag_ms, UNKNOWN) if follows else UNKNOWN

    def end_epoch(self, epoch: Epoch) -> int:
        """Advance the clocks to an epoch's end. Return the time that nodes observe then; -1 if they observe none."""
        if epoch.clock_to_ms != UNKNOWN:
            self._advance_wall_clock(epoch.clock_to_ms)
        if self._semantics.wall_clock is WallClock.STREAM_TIME:
            self._advance_wall_clock(epoch.watermark_ms)
        if self._wall_clock_ms > self._start_ms:
            self.metrics.measure(TASK, "", SIMULATED_TIME).record(self._wall_clock_ms - self._start_ms)
        self._start_ms = self._wall_clock_ms
        time_ms = self.watermark_ms(epoch)
        self.stream_time_ms = max(self.stream_time_ms, time_ms)
        return MAX_MS if epoch.is_final else time_ms

    def state(self, emitted: dict[str, int], store_clocks: dict[str, int], held: dict[str, int]) -> TaskState:
        """Return the checkpoint of the task, without its stores."""
        return dataclasses.replace(
            self._state,
            stream_time_ms=self.stream_time_ms,
            wall_clock_ms=self._wall_clock_ms,
            partition_times=self._partition_times,
            offsets=self.offsets,
            emitted=emitted,
            node_times=dict(sorted(self._node_times.items())),
            store_clocks=store_clocks,
            held=held,
        )

    def _stream_times(self, timestamps: Array, ranks: Array | None) -> Array:
        """Return the task's stream time at each record."""
        if ranks is None or self._semantics.stream_time is not StreamTime.MIN:
            return np.asarray(np.maximum(np.maximum.accumulate(timestamps), self.stream_time_ms))
        times = [
            np.maximum(np.maximum.accumulate(np.where(ranks == rank, timestamps, UNKNOWN)), time_ms)
            for rank, time_ms in enumerate(self._partition_times.values())
        ]
        return np.asarray(np.maximum(np.min(times, axis=0), self.stream_time_ms))

    def _advance_wall_clock(self, now_ms: int) -> None:
        if self._wall_clock_ms == UNKNOWN:
            self._start_ms = now_ms
        self._wall_clock_ms = max(self._wall_clock_ms, now_ms)


class VectorizedTask(ABC):
    """A vectorized task. Callers call `take` for each batch and `end_epoch` after each epoch, then stage the changes."""

    newest_ms: int
    """The latest time observed by the windows' store."""

    def __init__(self, plan: FinalResultsPlan, semantics: Semantics, state: TaskState | None) -> None:
        """Start a task, or resume it from the state of a checkpoint. Its stores are restored later."""
        self.plan = plan
        self.closing_order = self._closing_order()
        self._is_ordered = plan.suffix is not None
        self.clocks = Clocks([plan.topic], state, semantics, plan.lag_ms)
        self.keys = KeyTable(plan.key)

    def take(self, batch: Batch) -> None:
        """Process a batch of the current epoch."""
        plan, clocks, timestamps = self.plan, self.clocks, batch.timestamps
        clocks.take(timestamps)
        highest = np.maximum.accumulate(timestamps)
        if self._is_ordered:
            batch = replace(batch, orders=self.closing_order.keys(timestamps))
        if plan.prefix:
            batch = apply_prefix(plan.prefix, batch, reads_key=plan.key.is_bare and "key" in plan.reads)
            timestamps = batch.timestamps
            if len(timestamps) == 0:
                return
            highest = np.maximum.accumulate(timestamps)
        numbers, orders = self.keys.numbers(batch.keys), batch.orders
        types = plan.value.columns
        read = {fold.operand for fold in plan.folds if fold.operand is not None}
        value_columns = [batch.columns.get(name_at(plan.value, index)) for index in range(len(types))]
        operands: Operands = {
            operand: operand.of([value_columns[index] for index in operand.indexes])
            if isinstance(operand, Texts)
            else numbers_of(value_columns[operand], types[operand].type)
            for operand in read
        }
        if plan.key.is_bare and len(numbers) and numbers.min() < 0:
            with_key = np.flatnonzero(numbers >= 0)
            self._count(plan.window_node, SKIPPED_RECORDS, "null-key", len(numbers) - len(with_key))
            timestamps, numbers = timestamps[with_key], numbers[with_key]
            operands = of_rows(operands, with_key)
            # Records without a key do not reach the window node, so their times do not advance its clock.
            highest = np.maximum.accumulate(timestamps)
            orders = None if orders is None else orders[with_key]
        if len(timestamps):
            self._aggregate(timestamps, highest, numbers, operands, orders)

    @abstractmethod
    def end_epoch(self, epoch: Epoch) -> list[pa.Array]:
        """End an epoch; return the columns of the results that it sends: keys, window bounds, results, timestamps."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows in memory: the rows of the windows' store, and expired rows that have not been removed yet."""

    @property
    @abstractmethod
    def held(self) -> int:
        """The number of results in the buffer of the suppress (see `streams.checkpoint.held_in`)."""

    def _aggregate(
        self, timestamps: Array, highest: Array, numbers: Array, operands: Operands, orders: Array | None
    ) -> None:
        """Aggregate records that have a key."""
        clocks, node = self.clocks, self.plan.closing_node
        before_ms = clocks.observed(node)
        taken = self._group(timestamps, highest, numbers, operands)
        if orders is not None and len(taken):
            reached = np.maximum(np.maximum.accumulate(timestamps[taken]), before_ms)
            self.closing_order.observe(reached, orders[taken])

    @abstractmethod
    def due_ms(self, ends: Array) -> Array:
        """Return the times of the closing node's clock at which windows with these ends close."""

    @abstractmethod
    def _closing_order(self) -> ClosingOrder:
        """Return a `ClosingOrder` with the due times of the windows, for the first epoch."""

    @abstractmethod
    def _group(self, timestamps: Array, highest: Array, numbers: Array, operands: Operands) -> Array:
        """Add records to their groups. Return the rows of records that are not late, in order.

        A row may occur several times.
        """

    def _advance_node_clocks(self, epoch: Epoch) -> None:
        """Advance the observed times of the nodes at the end of an epoch."""
        time_ms = self.clocks.end_epoch(epoch)
        if time_ms != UNKNOWN:
            self.clocks.observe(self.plan.window_node, time_ms)
            self.clocks.observe(self.plan.closing_node, time_ms)

    def _count_emitted(self, number: int) -> None:
        """Count final results that are sent."""
        name = SUPPRESSION_EMIT if self.plan.suppress else WINDOW_FINAL_EMIT
        sends = self.clocks.metrics.measure(NODE, self.plan.closing_node, name)
        sends.record()
        sends.record_many(number - 1, number - 1, 1, 1)

    def _count(self, node: str, name: str, reason: str, times: int) -> None:
        self.clocks.metrics.measure(NODE, node, name, reason).record_many(times, times, 1, 1)


def of_rows(operands: Operands, rows: Array) -> Operands:
    """Return operands with only the given rows."""
    return {
        index: Operand(values[rows], None if valid is None else valid[rows])
        for index, (values, valid) in operands.items()
    }


class ClosingOrder:
    """The order keys of the records at which the closing node's clock reached a new step, in one epoch.

    All due times are ``shift_ms`` plus a multiple of ``step_ms``, so it is enough to keep the first record of each step.
    """

    def __init__(self, step_ms: int, shift_ms: int) -> None:
        """Start before the first epoch."""
        self._step_ms, self._shift_ms = step_ms, shift_ms
        self.end_epoch()

    def end_epoch(self) -> None:
        """Forget the records of the epoch, because order keys begin anew in the next one."""
        self._latest_ms, self._last_step = UNKNOWN, LEAST
        self._steps: list[Array] = []
        self._orders: list[Array] = []

    def keys(self, timestamps: Array) -> Array:
        """Return the order keys of the epoch's next records: the running maximum of all timestamps of the epoch."""
        orders = np.maximum(np.maximum.accumulate(timestamps), self._latest_ms)
        self._latest_ms = int(orders[-1])
        return np.asarray(orders)

    def observe(self, times: Array, orders: Array) -> None:
        """Note the node's clock and the order key at each record that reaches the node. The clock never decreases."""
        steps = (times - self._shift_ms) // self._step_ms
        is_new = steps > np.concatenate([[self._last_step], steps[:-1]])
        self._last_step = int(steps[-1])
        self._steps.append(steps[is_new])
        self._orders.append(orders[is_new])

    def of(self, due_ms: Array) -> Array:
        """Return the order keys of results, given their due times. If no record closed a window, the end of the epoch did."""
        steps, orders = (np.concatenate([np.empty(0, np.int64), *some]) for some in (self._steps, self._orders))
        indexes = np.searchsorted(steps, (due_ms - self._shift_ms) // self._step_ms)
        # An index one past the last step stands for the end of the epoch.
        return np.append(orders, MAX_MS)[indexes]
