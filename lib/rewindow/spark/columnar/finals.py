"""Final results of windows, batch by batch: what `core.task` with a `WindowAggregate` does, in bulk.

Why this is exact (design, section 5):

1. The window node's clock at a record is a running maximum, so whether a window still takes it is a comparison.
2. A window that is due takes no record any more, so all that is due may leave at its epoch's end.
3. Results leave by (window end, key bytes), from a suppress or from windows that send them when they close, and what
   leaves later has later ends: one sort an epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.core.checkpoint import TaskState
from rewindow.core.metrics import LATE_RECORD_DROP, NODE, SKIPPED_RECORDS, SUPPRESSION_EMIT, WINDOW_FINAL_EMIT
from rewindow.core.record import MAX_MS, UNKNOWN
from rewindow.core.semantics import Semantics
from rewindow.core.work import Epoch
from rewindow.spark.columnar.clocks import Clocks
from rewindow.spark.columnar.conditions import mask_of
from rewindow.spark.columnar.frame import Array
from rewindow.spark.columnar.groups import Groups
from rewindow.spark.columnar.keys import KeyTable, plain
from rewindow.spark.columnar.numbers import Operand, numbers_of
from rewindow.spark.columnar.plan import Finals, names_of
from rewindow.spark.columnar.windows import windows_of

IDLE_KEYS = 100_000
"""How many keys without a group are kept by number at least."""


class FinalsTask:
    """One task of the lane. ``take`` batches, ``end_epoch``, and in the end write what changed (`changes`)."""

    def __init__(self, plan: Finals, semantics: Semantics, state: TaskState | None) -> None:
        """Begin a task, or take up the small state of a checkpoint; its stores come by `changes.restore`."""
        self.plan = plan
        self.clocks = Clocks(plan.topic, state, semantics)
        self.keys = KeyTable(plan.key)
        self.groups = Groups(
            plan.folds,
            step_ms=plan.windows.advance_ms,
            is_single=plan.is_single,
        )
        state = state or TaskState()
        self.newest_start_ms = state.store_clocks.get(plan.store.name, UNKNOWN)
        self.emitted = state.emitted.get(plan.sink.topic, 0)
        self.gone: list[tuple[Array, list[pa.Array]]] = []
        """Starts and key columns of what the checkpoint's buffer has and this run sent."""
        self._next_end_ms = MAX_MS
        """The end of the first window that is held."""

    @property
    def open_from_ms(self) -> int:
        """Windows that start after this may still take records."""
        return self.clocks.observed(self.plan.window_node) - self.plan.windows.closes_after_ms

    def take(self, timestamps: Array, keys: Sequence[pa.Array], values: Mapping[int, pa.Array]) -> None:
        """Take a batch of records of the current epoch: timestamps, key columns, value columns by their place."""
        plan, clocks = self.plan, self.clocks
        highest = np.maximum.accumulate(timestamps)
        clocks.take(timestamps, np.maximum(highest, clocks.stream_time_ms))
        if plan.condition is not None:
            mask = self._kept(timestamps, keys, values)
            timestamps, keys = timestamps[np.asarray(mask)], [column.filter(mask) for column in keys]
            values = {place: column.filter(mask) for place, column in values.items()}
            if len(timestamps) == 0:
                return
            highest = np.maximum.accumulate(timestamps)
        numbers = self.keys.numbers(keys)
        types = plan.value.columns
        read = {fold.operand for fold in plan.folds}
        operands = {place: numbers_of(values[place], types[place].type) for place in values if place in read}
        if plan.key.is_bare and len(numbers) and numbers.min() < 0:
            with_key = np.flatnonzero(numbers >= 0)
            self._count(plan.window_node, SKIPPED_RECORDS, "null-key", len(numbers) - len(with_key))
            timestamps, numbers = timestamps[with_key], numbers[with_key]
            operands = _of_rows(operands, with_key)
            highest = np.maximum.accumulate(timestamps)
        if len(timestamps):
            self._aggregate(timestamps, highest, numbers, operands)

    def end_epoch(self, epoch: Epoch) -> list[pa.Array]:
        """End an epoch; return the columns of what leaves in it: keys, window bounds, results, timestamps."""
        told_ms = self.clocks.end_epoch(epoch)
        if told_ms != UNKNOWN:
            self.clocks.observe(self.plan.window_node, told_ms)
            self.clocks.observe(self.plan.closing_node, told_ms)
        due_ms = self.clocks.observed(self.plan.closing_node) - self.plan.windows.grace_ms
        leaving = self._leave(due_ms) if self._next_end_ms <= due_ms else []
        self._forget()
        return leaving

    def hold(self, slots: Array) -> None:
        """Note that groups are held back."""
        if len(slots):
            frame = self.groups.frame
            frame["held"][slots] = True
            end_ms = int(frame["start"][slots].min()) + self.plan.windows.size_ms
            self._next_end_ms = min(self._next_end_ms, end_ms)

    def in_order(self, slots: Array) -> Array:
        """Return groups in the order in which they leave."""
        frame = self.groups.frame
        with_start = self.plan.suppress is not None
        return np.asarray(slots[self.keys.order(frame["start"][slots], frame["key"][slots], with_start=with_start)])

    def results(self, slots: Array) -> list[pa.Array]:
        """Return the results of groups."""
        return [fold.result(self.groups.frame, slots) for fold in self.plan.folds]

    def _kept(self, timestamps: Array, keys: Sequence[pa.Array], values: Mapping[int, pa.Array]) -> pa.Array:
        """Return which records fulfil the condition."""
        plan = self.plan
        if plan.condition is None:
            return pa.repeat(True, len(timestamps))
        columns = {"timestamp": pa.array(timestamps), "key": plain(keys[0])}
        for name, (place, _) in names_of(plan.key, plan.value).items():
            if place is not None and place in values:
                columns[name] = values[place]
        return pc.fill_null(mask_of(plan.condition, columns), False)

    def _aggregate(self, timestamps: Array, highest: Array, numbers: Array, operands: Mapping[int, Operand]) -> None:
        plan, clocks = self.plan, self.clocks
        times = np.maximum(highest, clocks.observed(plan.window_node))
        open_from = times - plan.windows.closes_after_ms
        clocks.observe(plan.window_node, int(highest[-1]))
        clocks.count_lateness(NODE, plan.window_node, times - timestamps)
        rows, starts = windows_of(plan.windows, timestamps)
        is_open = starts > (open_from if rows is None else open_from[rows])
        late = len(starts) - int(np.count_nonzero(is_open))
        if late:
            self._count(plan.window_node, LATE_RECORD_DROP, "window-closed", late)
            chosen = np.flatnonzero(is_open)
            rows, starts = chosen if rows is None else rows[chosen], starts[chosen]
        if rows is not None:
            timestamps, numbers = timestamps[rows], numbers[rows]
            operands = _of_rows(operands, rows)
        if len(starts) == 0:
            return
        clocks.observe(plan.closing_node, int(timestamps.max()))
        self.newest_start_ms = max(self.newest_start_ms, int(starts.max()))
        found = self.groups.find(starts, numbers, len(self.keys))
        self.groups.take(found, timestamps, operands)
        self.hold(found.distinct)

    def _leave(self, due_ms: int) -> list[pa.Array]:
        """Send what is due; return its columns."""
        plan, frame = self.plan, self.groups.frame
        held, ends = frame["held"], frame["start"] + plan.windows.size_ms
        is_due = held & (ends <= due_ms)
        held[is_due] = False
        self._next_end_ms = int(ends[held].min()) if held.any() else MAX_MS
        restored = np.flatnonzero(is_due & frame["restored"])
        if len(restored) and plan.suppress:
            self.gone.append((frame["start"][restored], self.keys.columns(frame["key"][restored])))
        slots = self.in_order(np.flatnonzero(is_due & ~self.groups.without_value()))
        results = self.results(slots)
        if plan.suppress and plan.is_single and results[0].null_count:
            kept = np.asarray(results[0].is_valid())  # a tombstone: nothing of its window was ever sent
            slots, results = slots[kept], [results[0].filter(pa.array(kept))]
        if len(slots) == 0:
            return []
        name = SUPPRESSION_EMIT if plan.suppress else WINDOW_FINAL_EMIT
        emit = self.clocks.metrics.measure(NODE, plan.closing_node, name)
        emit.record()
        emit.record_many(len(slots) - 1, len(slots) - 1, 1, 1)
        self.emitted += len(slots)
        starts = frame["start"][slots]
        bounds = [pa.array(starts), pa.array(starts + plan.windows.size_ms)]
        return [*self.keys.columns(frame["key"][slots]), *bounds, *results, pa.array(frame["timestamp"][slots])]

    def _forget(self) -> None:
        """Forget groups whose windows the record lane's store has forgotten, once they are many; and keys without any."""
        frame = self.groups.frame
        expired = frame["start"] <= self.newest_start_ms - self.plan.store.retention_ms
        if 4 * int(np.count_nonzero(expired)) > frame.size:
            self.groups.keep(~expired)
        if len(self.keys) > IDLE_KEYS + 4 * frame.size:
            used, places = np.unique(frame["key"], return_inverse=True)
            self.keys.keep(used)
            self.groups.renumber(places)

    def _count(self, node: str, name: str, reason: str, times: int) -> None:
        self.clocks.metrics.measure(NODE, node, name, reason).record_many(times, times, 1, 1)


def _of_rows(operands: Mapping[int, Operand], rows: Array) -> dict[int, Operand]:
    return {
        place: Operand(values[rows], None if valid is None else valid[rows])
        for place, (values, valid) in operands.items()
    }
