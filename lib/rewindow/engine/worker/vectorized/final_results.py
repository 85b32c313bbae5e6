"""Final results of windows, batch by batch: what `streams.task` with a `WindowAggregate` does, in bulk.

Why this is exact (L4):

1. The window node's clock at a record is a running maximum, so whether a window still takes it is a comparison.
2. A window that is due takes no record any more, so all that is due may leave at its epoch's end.
3. Results leave by (window end, key bytes), from a suppress or from windows that send them when they close, and what
   leaves later has later ends: one sort an epoch.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rewindow.contracts.tasks import Epoch
from rewindow.engine.worker.vectorized.folds import Operands
from rewindow.engine.worker.vectorized.groups import Groups
from rewindow.engine.worker.vectorized.plan import Finals
from rewindow.engine.worker.vectorized.slots import Array
from rewindow.engine.worker.vectorized.task import VectorizedTask, of_rows
from rewindow.engine.worker.vectorized.windows import windows_of
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import LATE_RECORD_DROP, NODE
from rewindow.streams.record import MAX_MS, UNKNOWN
from rewindow.streams.semantics import Semantics
from rewindow.streams.windows.time import TimeWindows

IDLE_KEYS = 100_000
"""How many keys without a group are kept by number at least."""


class FinalsTask(VectorizedTask):
    """One task of the execution. ``take`` batches, ``end_epoch``, and in the end write what changed (`changes`)."""

    def __init__(self, plan: Finals, windows: TimeWindows, semantics: Semantics, state: TaskState | None) -> None:
        """Begin a task, or take up the small state of a checkpoint; its stores come by `changes.restore`."""
        super().__init__(plan, semantics, state)
        self.windows = windows
        self.groups = Groups(
            plan.folds,
            step_ms=self.windows.advance_ms,
            is_single=plan.is_single,
        )
        state = state or TaskState()
        self.newest_ms = state.store_clocks.get(plan.store.name, UNKNOWN)
        self.gone: list[tuple[Array, list[pa.Array]]] = []
        """Starts and key columns of what the checkpoint's buffer has and this run sent."""
        self._next_end_ms = MAX_MS
        """The end of the first window that is held."""

    @property
    def open_from_ms(self) -> int:
        """Windows that start after this may still take records."""
        return self.clocks.observed(self.plan.window_node) - self.windows.closes_after_ms

    @property
    def held(self) -> int:
        """See `VectorizedTask`."""
        return int(np.count_nonzero(self.groups.frame["held"]))

    def end_epoch(self, epoch: Epoch) -> list[pa.Array]:
        """See `VectorizedTask`."""
        self._told(epoch)
        due_ms = self.clocks.observed(self.plan.closing_node) - self.windows.grace_ms
        leaving = self._leave(due_ms) if self._next_end_ms <= due_ms else []
        self._forget()
        return leaving

    def hold(self, slots: Array) -> None:
        """Note that groups are held back."""
        if len(slots):
            frame = self.groups.frame
            frame["held"][slots] = True
            end_ms = int(frame["start"][slots].min()) + self.windows.size_ms
            self._next_end_ms = min(self._next_end_ms, end_ms)

    def in_order(self, slots: Array) -> Array:
        """Return groups in the order in which they leave."""
        frame = self.groups.frame
        with_start = self.plan.suppress is not None
        return np.asarray(slots[self.keys.order(frame["start"][slots], frame["key"][slots], with_start=with_start)])

    def results(self, slots: Array) -> list[pa.Array]:
        """Return the results of groups."""
        return [fold.result(self.groups.frame, slots) for fold in self.plan.folds]

    def _aggregate(self, timestamps: Array, highest: Array, numbers: Array, operands: Operands) -> None:
        plan, clocks = self.plan, self.clocks
        times = np.maximum(highest, clocks.observed(plan.window_node))
        open_from = times - self.windows.closes_after_ms
        clocks.observe(plan.window_node, int(highest[-1]))
        clocks.count_lateness(NODE, plan.window_node, times - timestamps)
        rows, starts = windows_of(self.windows, timestamps)
        is_open = starts > (open_from if rows is None else open_from[rows])
        late = len(starts) - int(np.count_nonzero(is_open))
        if late:
            self._count(plan.window_node, LATE_RECORD_DROP, "window-closed", late)
            chosen = np.flatnonzero(is_open)
            rows, starts = chosen if rows is None else rows[chosen], starts[chosen]
        if rows is not None:
            timestamps, numbers = timestamps[rows], numbers[rows]
            operands = of_rows(operands, rows)
        if len(starts) == 0:
            return
        clocks.observe(plan.closing_node, int(timestamps.max()))
        self.newest_ms = max(self.newest_ms, int(starts.max()))
        found = self.groups.find(starts, numbers, len(self.keys))
        self.groups.take(found, timestamps, operands)
        self.hold(found.distinct)

    def _leave(self, due_ms: int) -> list[pa.Array]:
        """Send what is due; return its columns."""
        plan, frame = self.plan, self.groups.frame
        held, ends = frame["held"], frame["start"] + self.windows.size_ms
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
        self._count_emitted(len(slots))
        starts = frame["start"][slots]
        bounds = [pa.array(starts), pa.array(starts + self.windows.size_ms)]
        return [*self.keys.columns(frame["key"][slots]), *bounds, *results, pa.array(frame["timestamp"][slots])]

    def _forget(self) -> None:
        """Forget groups whose windows record execution's store has forgotten, once they are many; and keys without any."""
        frame = self.groups.frame
        expired = frame["start"] <= self.newest_ms - self.plan.store.retention_ms
        if 4 * int(np.count_nonzero(expired)) > frame.size:
            self.groups.keep(~expired)
        if len(self.keys) > IDLE_KEYS + 4 * frame.size:
            used, places = np.unique(frame["key"], return_inverse=True)
            self.keys.keep(used)
            self.groups.renumber(places)
