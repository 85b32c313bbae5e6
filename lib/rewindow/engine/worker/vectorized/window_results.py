"""Compute final results of windows in batches: the equivalent of `streams.task` with a `WindowAggregate`.

Why this is exact (L4):

1. The window node's clock at a record is a running maximum. So a comparison with this clock decides whether a window still
   accepts the record.
2. A closed window accepts no more records. So the results of all closed windows can be sent at the end of the epoch.
3. A suppress, and windows that emit on close, send results by (window end, key bytes), and later results have later ends. So
   one sort per epoch is enough.

A group is a window of a key. Each group has one slot, which is found by an integer code. A group is *held* until its final
result is sent, *touched* if this run changed it, and *restored* if it was in the checkpoint's buffer. It is dropped when its
window would expire in the window store of record execution.

Stores are restored and staged with the same rows as in record execution, so a job can switch between the two executions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import Epoch, TaskWork
from rewindow.engine.worker.changelog_reader import RowGroupFilter, changelog_batches
from rewindow.engine.worker.staging import StagingTarget
from rewindow.engine.worker.vectorized.arrays import LONG_BYTES, Array, Column, GroupFrame, UnfitError
from rewindow.engine.worker.vectorized.folds import Fold, Operands, Rows
from rewindow.engine.worker.vectorized.plans import FinalResultsPlan
from rewindow.engine.worker.vectorized.vectorized_task import ClosingOrder, VectorizedTask, of_rows
from rewindow.engine.worker.vectorized.window_grids import CalendarGrid, FixedGrid, WindowGrid
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import LATE_RECORD_DROP, NODE
from rewindow.streams.record import MAX_MS, UNKNOWN
from rewindow.streams.serde.schema import CHANGELOG_META, Shape
from rewindow.streams.settings import Semantics
from rewindow.streams.state.suppress_buffer import ENTRY_BYTES
from rewindow.streams.windows.calendar import CalendarWindows
from rewindow.streams.windows.time import TimeWindows

_IDLE_KEYS = 100_000
"""Keys without groups are removed when there are more than about this many."""
_MOST_CODES = 2**62


class WindowTask(VectorizedTask):
    """A task with time windows. The functions `restore` and `stage` of this module handle its stores."""

    def __init__(
        self,
        plan: FinalResultsPlan,
        windows: TimeWindows | CalendarWindows,
        semantics: Semantics,
        state: TaskState | None,
    ) -> None:
        """Start a task, or resume it from the state of a checkpoint without stores."""
        self.windows = windows
        self.grid: WindowGrid = FixedGrid(windows) if isinstance(windows, TimeWindows) else CalendarGrid(windows)
        super().__init__(plan, semantics, state)
        self.groups = _Groups(
            plan.folds,
            step_ms=self.grid.step_ms,
            is_single=plan.is_single,
        )
        state = state or TaskState()
        self.newest_ms = state.store_clocks.get(plan.store.name, UNKNOWN)
        self.sent_entries: list[tuple[Array, list[pa.Array]]] = []
        """Pairs (window starts, key columns) of buffer entries that were restored and whose results this run sent."""
        self._next_end_ms = MAX_MS
        """The earliest end of the windows of held groups."""

    @property
    def ended_ms(self) -> int:
        """Windows that end after this time still accept records."""
        return self.clocks.observed(self.plan.window_node) - self.windows.grace_ms

    @property
    def rows(self) -> int:
        """See `VectorizedTask`."""
        return self.groups.frame.size

    @property
    def held(self) -> int:
        """See `VectorizedTask`."""
        slots = np.flatnonzero(self.groups.frame["held"] & ~self.groups.without_value())
        return len(slots) - (self.results(slots)[0].null_count if self.plan.is_single else 0)

    def end_epoch(self, epoch: Epoch) -> list[pa.Array]:
        """See `VectorizedTask`."""
        self._advance_node_clocks(epoch)
        due_ms = self.clocks.observed(self.plan.closing_node) - self.windows.grace_ms
        sent = self._send(due_ms) if self._next_end_ms <= due_ms else []
        self._forget()
        return sent

    def due_ms(self, ends: Array) -> Array:
        """See `VectorizedTask`."""
        return np.asarray(ends + self.windows.grace_ms)

    def hold(self, slots: Array) -> None:
        """Mark groups as held."""
        if len(slots):
            frame = self.groups.frame
            frame["held"][slots] = True
            first = frame["start"][slots].min(keepdims=True)
            self._next_end_ms = min(self._next_end_ms, int(self.grid.ends(first)[0]))

    def in_order(self, slots: Array) -> Array:
        """Return groups by start and key bytes."""
        frame = self.groups.frame
        with_start = self.plan.suppress is not None
        return np.asarray(slots[self.keys.order(frame["start"][slots], frame["key"][slots], with_start=with_start)])

    def _as_sent(self, slots: Array) -> Array:
        """Return groups in the order in which their results are sent: that of the windows' ends if a suppress sends them."""
        if self.plan.suppress is None or self.grid.start_order_is_end_order():
            return self.in_order(slots)
        starts, keys = self.groups.frame["start"][slots], self.groups.frame["key"][slots]
        return np.asarray(slots[self.keys.order_by_ends(self.grid.ends(starts), starts, keys)])

    def results(self, slots: Array) -> list[pa.Array]:
        """Return the results of groups."""
        return [fold.result(self.groups.frame, slots) for fold in self.plan.folds]

    def _closing_order(self) -> ClosingOrder:
        return ClosingOrder(self.grid.due_step_ms, self.grid.due_shift_ms)

    def _group(self, timestamps: Array, highest: Array, numbers: Array, operands: Operands) -> Array:
        plan, clocks = self.plan, self.clocks
        # The clock at a record decides whether the record's windows are open. A later record of the batch must not close them.
        times = np.maximum(highest, clocks.observed(plan.window_node))
        ended = times - self.windows.grace_ms
        clocks.observe(plan.window_node, int(highest[-1]))
        clocks.count_lateness(NODE, plan.window_node, times - timestamps)
        rows, starts, ends, last_ends = self.grid.windows_of(timestamps)
        clocks.count_needed_grace(plan.window_node, times - last_ends + 1)
        is_open = ends > (ended if rows is None else ended[rows])
        late = len(starts) - int(np.count_nonzero(is_open))
        if late:
            self._count(plan.window_node, LATE_RECORD_DROP, "window-closed", late)
            chosen = np.flatnonzero(is_open)
            rows, starts = chosen if rows is None else rows[chosen], starts[chosen]
        if rows is not None:
            timestamps, numbers = timestamps[rows], numbers[rows]
            operands = of_rows(operands, rows)
        # `taken` has a row number for each pair of a record and one of its windows: that of the record.
        taken = np.arange(len(timestamps)) if rows is None else rows
        if len(starts) == 0:
            return taken
        clocks.observe(plan.closing_node, int(timestamps.max()))
        self.newest_ms = max(self.newest_ms, int(starts.max()))
        groups = self.groups.find(starts, numbers, len(self.keys))
        self.groups.take(groups, timestamps, operands)
        self.hold(groups.distinct)
        return taken

    def _send(self, due_ms: int) -> list[pa.Array]:
        """Send the results that are due; return their columns."""
        plan, frame = self.plan, self.groups.frame
        held, ends = frame["held"], self.grid.ends(frame["start"])
        is_due = held & (ends <= due_ms)
        held[is_due] = False
        # In most epochs, the earliest end already shows that no result is due. So not all groups have to be read.
        self._next_end_ms = int(ends[held].min()) if held.any() else MAX_MS
        # The checkpoint's buffer has an entry of each restored group. Tombstones have to be staged for these entries.
        restored = np.flatnonzero(is_due & frame["restored"])
        if len(restored) and plan.suppress:
            self.sent_entries.append((frame["start"][restored], self.keys.columns(frame["key"][restored])))
        slots = self._as_sent(np.flatnonzero(is_due & ~self.groups.without_value()))
        results = self.results(slots)
        if plan.suppress and plan.is_single and results[0].null_count:
            # A null result would be sent as a tombstone. There is nothing to delete, because the window has sent no result
            # before.
            kept = np.asarray(results[0].is_valid())
            slots, results = slots[kept], [results[0].filter(pa.array(kept))]
        if len(slots) == 0:
            return []
        self._count_emitted(len(slots))
        starts = frame["start"][slots]
        return [
            *self.keys.columns(frame["key"][slots]),
            *_bounds(self, starts),
            *results,
            pa.array(frame["timestamp"][slots]),
        ]

    def _forget(self) -> None:
        """If there are many of them, drop the groups whose windows are past retention, and the keys without groups."""
        frame = self.groups.frame
        expired = frame["start"] <= self.newest_ms - self.plan.store.retention_ms
        # Dropping groups copies all other groups. So groups are dropped only when a quarter of them has expired.
        if 4 * int(np.count_nonzero(expired)) > frame.size:
            self.groups.keep(~expired)
        if len(self.keys) > _IDLE_KEYS + 4 * frame.size:
            used, inverse = np.unique(frame["key"], return_inverse=True)
            self.keys.keep(used)
            self.groups.renumber(inverse)


class _Groups:
    """The groups, which can be found by window start and key number."""

    def __init__(self, folds: Sequence[Fold], *, step_ms: int, is_single: bool) -> None:
        """All window starts are multiples of ``step_ms``. ``is_single``: see `FinalResultsPlan`."""
        self._folds = folds
        self._starts_at_first_value = is_single and folds[0].is_null_at_first
        columns: dict[str, Column] = {"start": (np.int64, 0), "key": (np.int64, 0), "timestamp": (np.int64, -1)}
        columns["updates"] = (np.int64, 0)
        columns |= dict.fromkeys(("held", "touched", "restored"), (np.bool_, False))
        for fold in folds:
            columns |= fold.columns()
        self.frame = GroupFrame(columns)
        self._codes = np.empty(0, np.int64)
        """The codes of all groups, ascending."""
        self._slots = np.empty(0, np.int64)
        """The slot of each code."""
        self._base, self._width, self._step = 0, 1, step_ms

    def find(self, starts: Array, keys: Array, key_count: int) -> Rows:
        """Return the groups of rows (at least one), given their window starts and key numbers. Creates missing groups."""
        least = int(starts.min()) // self._step
        self._fit(least, int(starts.max()) // self._step, key_count)
        encoded = pa.array((starts // self._step - self._base) * self._width + keys).dictionary_encode()
        # Arrow's hash table finds the distinct codes. A batch has few of them, so this is faster than sorting its rows.
        codes, inverse = np.asarray(encoded.dictionary), np.asarray(encoded.indices).astype(np.intp)
        slots = self._slots_of(codes)
        return Rows(slots[inverse], slots, inverse, np.bincount(inverse, minlength=len(slots)))

    def take(self, rows: Rows, timestamps: Array, operands: Operands) -> None:
        """Fold rows into their groups, in row order."""
        frame = self.frame
        if self._starts_at_first_value:
            self._stamp_from_first_value(rows, timestamps, operands[self._folds[0].operand or 0].valid)
        else:
            np.maximum.at(frame["timestamp"], rows.slots, timestamps)
        for fold in self._folds:
            fold.take(frame, rows, operands)
        frame["updates"][rows.distinct] += rows.counts
        frame["touched"][rows.distinct] = True

    def without_value(self) -> Array:
        """Return a mask of the groups without state, which the window store of record execution would not contain."""
        if not self._starts_at_first_value:
            return np.zeros(self.frame.size, np.bool_)
        return np.asarray(self.frame[f"{self._folds[0].name}.number"] == 0)

    def keep(self, mask: Array) -> None:
        """Drop the groups where the mask is false."""
        moved = np.cumsum(mask) - 1
        is_kept = mask[self._slots]
        self._codes, self._slots = self._codes[is_kept], moved[self._slots[is_kept]]
        self.frame.keep(mask)

    def renumber(self, keys: Array) -> None:
        """Set the key numbers of all groups. ``keys`` has the new number of each slot's key."""
        self.frame["key"][:] = keys
        self._recode()

    def _stamp_from_first_value(self, rows: Rows, timestamps: Array, valid: Array | None) -> None:
        """Set each group's timestamp to the largest timestamp of its rows since its first value.

        A group without a value gets the timestamp of its last row.
        """
        stamps, number = self.frame["timestamp"], self.frame[f"{self._folds[0].name}.number"]
        is_new = number[rows.distinct] == 0
        if valid is None:
            stamps[rows.distinct[is_new]] = -1
            np.maximum.at(stamps, rows.slots, timestamps)
            return
        count = len(timestamps)
        # Rows are assigned in reverse order. The last assignment wins, which is that of the first row with a value.
        first_rows = np.full(len(rows.distinct), count)
        with_value = np.flatnonzero(valid)[::-1]
        first_rows[rows.inverse[with_value]] = with_value
        first_rows[~is_new] = -1
        stamps[rows.distinct[is_new]] = -1
        counts = np.arange(count) >= first_rows[rows.inverse]
        np.maximum.at(stamps, rows.slots[counts], timestamps[counts])
        without = first_rows[rows.inverse] == count
        # If a slot occurs several times, the last assignment wins, which is the timestamp of its last row.
        stamps[rows.slots[without]] = timestamps[without]

    def _fit(self, least: int, most: int, key_count: int) -> None:
        """Choose a width that makes the codes of all windows and keys distinct. Raises `UnfitError` if codes exceed 64 bits."""
        # A code is the window's number times the width, plus the key's number. The width grows in powers of two, so the codes
        # of existing groups rarely change.
        if self.frame.size == 0 or least < self._base or key_count > self._width:
            if self.frame.size:
                least = min(least, int(self.frame["start"].min()) // self._step)
            self._base = least
            self._width = max(self._width, 1 << max(0, key_count - 1).bit_length())
            self._recode()
        if (most - self._base + 1) * self._width > _MOST_CODES:
            raise UnfitError

    def _recode(self) -> None:
        codes = (self.frame["start"] // self._step - self._base) * self._width + self.frame["key"]
        self._slots = np.argsort(codes, kind="stable")
        self._codes = codes[self._slots]

    def _slots_of(self, codes: Array) -> Array:
        positions = np.searchsorted(self._codes, codes)
        is_known = np.zeros(len(codes), np.bool_)
        in_range = positions < len(self._codes)
        is_known[in_range] = self._codes[positions[in_range]] == codes[in_range]
        slots = np.empty(len(codes), np.int64)
        slots[is_known] = self._slots[positions[is_known]]
        new = codes[~is_known]
        if len(new):
            order = np.argsort(new)
            made = self.frame.extend(len(new))
            self.frame["start"][made] = (new // self._width + self._base) * self._step
            self.frame["key"][made] = new % self._width
            slots[~is_known] = made
            into = positions[~is_known][order]
            self._codes = np.insert(self._codes, into, new[order])
            self._slots = np.insert(self._slots, into, made[order])
        return slots


def restore(task: WindowTask, task_work: TaskWork) -> None:
    """Restore the groups that may still change. Raises `UnfitError` for rows that vectorized execution never writes."""
    plan = task.plan
    for columns, slots in _open_rows(task, task_work, plan.store.name, plan.store_shapes):
        if pc.any(columns[-1]).as_py():
            raise UnfitError
        position = 0
        for fold in plan.folds:
            width = len(fold.state_types)
            fold.restore(task.groups.frame, slots, columns[position : position + width])
            position += width
        _set_restored(task, slots, columns[position])
    if plan.suppress and plan.starts_at_first_value:
        for columns, slots in _open_rows(task, task_work, plan.suppress.store, plan.suppress.shapes):
            is_null = np.asarray(columns[1].fill_null(False)) & task.groups.without_value()[slots]
            _set_restored(task, slots[is_null], columns[2].filter(pa.array(is_null)))


def stage(task: WindowTask, targets: Mapping[str, StagingTarget], *, partition: int, run: int) -> list[StagedFile]:
    """Stage the changes of the stores."""
    plan, frame = task.plan, task.groups.frame
    is_kept = frame["start"] > task.newest_ms - plan.store.retention_ms
    slots = task.in_order(np.flatnonzero(frame["touched"] & is_kept & ~task.groups.without_value()))
    state = [column for fold in plan.folds for column in fold.state(frame, slots)]
    rows = [*_keys(task, slots), *state, pa.array(frame["timestamp"][slots])]
    files = write_rows(targets[plan.store.name], plan.store_shapes, [rows], partition, run)
    if plan.suppress:
        sent_entries = [[*columns, *_bounds(task, starts)] for starts, columns in task.sent_entries]
        chunks = [_entries(task), *sent_entries]
        files += write_rows(targets[plan.suppress.store], plan.suppress.shapes, chunks, partition, run)
    return files


def _entries(task: WindowTask) -> list[pa.Array]:
    """Return the columns of the buffer entries that this run wrote and that are still held."""
    plan, frame = task.plan, task.groups.frame
    slots = task.in_order(np.flatnonzero(frame["touched"] & frame["held"]))
    results = task.results(slots)
    is_null = results[0].is_null() if plan.is_single else pa.repeat(False, len(slots))
    ends = pa.array(task.grid.ends(frame["start"][slots]))
    entry = [is_null, pa.array(frame["timestamp"][slots]), ends, pa.array(_entry_sizes(task, slots))]
    prior = [pa.nulls(len(slots), result.type) for result in results]
    return [*_keys(task, slots), *results, *entry, *prior, pa.repeat(True, len(slots))]


def _open_rows(
    task: WindowTask, task_work: TaskWork, store: str, shapes: tuple[Shape, Shape]
) -> Iterator[tuple[list[pa.Array], Array]]:
    """Yield the value and tombstone columns of rows with open windows, and the slots of their groups.

    Raises `UnfitError` if a window of the checkpoint has another end than the clock of the zone now gives, and one of both has
    not passed. Record execution then keeps the end of the checkpoint.
    """
    key, value = shapes
    columns = [*key.names, *value.names, "_tombstone"]
    width = len(key.columns)
    wanted = RowGroupFilter(key.names[width - 2], task.ended_ms - task.windows.size_ms)
    for batch in changelog_batches(task_work.stores.get(store, ()), task_work.partition, columns, wanted=wanted):
        starts, ends = (np.asarray(batch.column(index)) for index in (width - 2, width - 1))
        is_open, own_ends = ends > task.ended_ms, task.grid.ends(starts)
        if (np.maximum(ends, own_ends)[ends != own_ends] > task.ended_ms).any():
            raise UnfitError
        arrays = batch.columns if is_open.all() else batch.filter(pa.array(is_open)).columns
        if len(arrays[0]):
            numbers = task.keys.numbers(arrays[: width - 2])
            rows = task.groups.find(np.asarray(arrays[width - 2]), numbers, len(task.keys))
            yield arrays[width:], rows.slots


def _entry_sizes(task: WindowTask, slots: Array) -> Array:
    """Return the sizes of buffer entries (bytes). A suppress limits these sizes (`streams.state.suppress_buffer`)."""
    frame = task.groups.frame
    keys = task.keys.sizes(frame["key"][slots])
    now, before = task.plan.sizes.of(frame, slots)
    results = now + np.where(frame["updates"][slots] > 1, before, 0)
    return np.asarray(ENTRY_BYTES + keys + LONG_BYTES + len(task.plan.topic) + results)


def _set_restored(task: WindowTask, slots: Array, timestamps: pa.Array) -> None:
    frame = task.groups.frame
    frame["timestamp"][slots] = np.asarray(timestamps)
    frame["restored"][slots] = True
    frame["updates"][slots] = 1
    task.hold(slots)


def _keys(task: WindowTask, slots: Array) -> list[pa.Array]:
    frame = task.groups.frame
    return [*task.keys.columns(frame["key"][slots]), *_bounds(task, frame["start"][slots])]


def _bounds(task: WindowTask, starts: Array) -> list[pa.Array]:
    return [pa.array(starts), pa.array(task.grid.ends(starts))]


def write_rows(
    target: StagingTarget, shapes: tuple[Shape, Shape], chunks: Sequence[Sequence[pa.Array]], partition: int, run: int
) -> list[StagedFile]:
    """Write chunks of a store's rows to a file. A chunk without value columns contains tombstones."""
    key, value = shapes
    with target.file((*key.columns, *value.columns, *CHANGELOG_META), ["_run"], partition) as file:
        for columns in chunks:
            rows = len(columns[0])
            is_tombstone = len(columns) == len(key.columns)
            nulls = [pa.nulls(rows, file.schema.field(name).type) for name in value.names] if is_tombstone else []
            meta = [pa.repeat(run, rows), pa.repeat(is_tombstone, rows)]
            file.write(pa.RecordBatch.from_arrays([*columns, *nulls, *meta], schema=file.schema))
        staged = file.close()
    return [staged] if staged else []


def write_changes(
    target: StagingTarget,
    shapes: tuple[Shape, Shape],
    columns: Sequence[pa.Array],
    is_gone: Array,
    *,
    partition: int,
    run: int,
) -> list[StagedFile]:
    """Write rows of a store. Rows where ``is_gone`` is true are tombstones; their values must be null."""
    key, value = shapes
    with target.file((*key.columns, *value.columns, *CHANGELOG_META), ["_run"], partition) as file:
        meta = [pa.repeat(run, len(is_gone)), pa.array(is_gone)]
        file.write(pa.RecordBatch.from_arrays([*columns, *meta], schema=file.schema))
        staged = file.close()
    return [staged] if staged else []
