"""Compute final results of sessions in batches: the equivalent of `streams.task` with a `SessionAggregate`.

The session of a record depends on all records before it, so a loop over integers (keys, times, bounds) assigns sessions.
Aggregates are then folded in bulk. A record that connects two sessions creates a third session, which starts with the states
of both. So a merged session has a higher level than its parts, and the rows of a batch are folded level by level. This adds
floats in the same order as record execution does, so results are equal bit for bit.

Results can be sent at the end of their epoch, because a closed session accepts no more records, and later results have later
ends. In two cases the results could differ from those of record execution: for some null values
(`FinalResultsPlan.takes_nulls`), and if a session has the bounds of a tombstone. In these cases, `UnfitError` hands the task
over to record execution.

Stores are restored and staged with the same rows as in record execution, so a job can switch between the two executions.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import Epoch, TaskWork
from rewindow.engine.worker.arrow_rows import distinct
from rewindow.engine.worker.changelog_reader import RowGroupFilter, changelog_batches
from rewindow.engine.worker.staging import StagingTarget
from rewindow.engine.worker.vectorized.arrays import LONG_BYTES, Array, Column, GroupFrame, UnfitError
from rewindow.engine.worker.vectorized.folds import Operands, Rows
from rewindow.engine.worker.vectorized.plans import FinalResultsPlan
from rewindow.engine.worker.vectorized.result_sizes import Grown, Session, SessionTexts
from rewindow.engine.worker.vectorized.vectorized_task import ClosingOrder, VectorizedTask, of_rows
from rewindow.engine.worker.vectorized.window_results import write_rows
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import LATE_RECORD_DROP, NODE
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.schema import Shape
from rewindow.streams.settings import Semantics
from rewindow.streams.state.suppress_buffer import ENTRY_BYTES
from rewindow.streams.windows.session_sliding import SessionWindows

_DEAD_SESSIONS = 50_000
"""Closed sessions are removed when there are at least this many."""
_Entry = tuple[int, int, int]
"""A session: its end, its start (epoch ms), and its slot."""


class SessionTask(VectorizedTask):
    """A task with session windows. The functions `restore` and `stage` of this module handle its stores."""

    def __init__(
        self, plan: FinalResultsPlan, windows: SessionWindows, semantics: Semantics, state: TaskState | None
    ) -> None:
        """Start a task, or resume it from the state of a checkpoint without stores."""
        super().__init__(plan, semantics, state)
        self.gap_ms = windows.gap_ms
        self.keep_ms = windows.gap_ms + windows.grace_ms
        """A session closes when the clock is more than this many ms above its end."""
        self.newest_ms = state.store_clocks.get(plan.store.name, UNKNOWN) if state else UNKNOWN
        columns: dict[str, Column] = {"key": (np.int64, 0), "start": (np.int64, 0), "end": (np.int64, 0)}
        columns |= dict.fromkeys(("held", "touched"), (np.bool_, False))
        for fold in plan.folds:
            columns |= fold.columns()
        self.frame = GroupFrame(columns)
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.stored: list[bool] = []
        """For each slot, whether the store in the checkpoint contains a session with the same bounds."""
        self.is_repeat: list[bool] = []
        """For each slot: whether the last record repeated the session's only timestamp.

        If so, the session keeps its bounds, and the size of its buffer entry includes the previous result.
        """
        self._keys: list[int] = []
        """The key numbers of new sessions that have no row in the frame yet."""
        self.sessions = _SessionsByEnd()
        self.replaced: list[Session] = []
        """Sessions that were replaced while they were open. The suppress's buffer holds a tombstone for each."""
        self.removed: list[Session] = []
        """Sessions in the checkpoint's store that this run removed."""
        self.buffered: dict[Session, bool] = {}
        """The sessions that have an entry in the checkpoint's buffer. Each is mapped to whether the entry is a tombstone."""
        self.pending_tombstones: set[Session] = set()
        """Tombstones that were restored and have not been sent."""
        self.texts = SessionTexts(plan.sizes) if plan.suppress and plan.sizes.are_texts else None

    @property
    def stored_from_ms(self) -> int:
        """The store drops sessions that end before this time (epoch ms)."""
        return self.newest_ms - self.keep_ms

    @property
    def held_from_ms(self) -> int:
        """All sessions that end before this time (epoch ms) have been sent."""
        return self.clocks.observed(self.plan.closing_node) - self.keep_ms

    @property
    def rows(self) -> int:
        """See `VectorizedTask`."""
        return self.frame.size

    @property
    def held(self) -> int:
        """See `VectorizedTask`."""
        return int(np.count_nonzero(self.frame["held"]))

    def add(self, key: int, start_ms: int, end_ms: int) -> int:
        """Add a session and return its slot. The frame gets the slot later, in `grow`."""
        slot = len(self.starts)
        self.starts.append(start_ms)
        self.ends.append(end_ms)
        self.stored.append(False)
        self.is_repeat.append(False)
        self._keys.append(key)
        if self.texts:
            self.texts.add()
        return slot

    def grow(self) -> None:
        """Add the slots of new sessions to the frame."""
        made = self.frame.extend(len(self.starts) - self.frame.size)
        self.frame["key"][made] = self._keys
        self._keys = []
        self.note(made)

    def note(self, slots: Array) -> None:
        """Copy the bounds of sessions to the frame."""
        numbers = slots.tolist()
        self.frame["start"][slots] = [self.starts[slot] for slot in numbers]
        self.frame["end"][slots] = [self.ends[slot] for slot in numbers]

    def bounds(self, slots: Array) -> tuple[Array, Array]:
        """Return the starts and ends of sessions."""
        return self.frame["start"][slots], self.frame["end"][slots]

    def due_ms(self, ends: Array) -> Array:
        """See `VectorizedTask`."""
        return np.asarray(ends + self.keep_ms + 1)

    def end_epoch(self, epoch: Epoch) -> list[pa.Array]:
        """See `VectorizedTask`."""
        self._advance_node_clocks(epoch)
        frame = self.frame
        is_due = frame["held"] & (frame["end"] < self.held_from_ms)
        sent = self._send(np.flatnonzero(is_due)) if is_due.any() else []
        held_from = self.held_from_ms
        self.replaced = [session for session in self.replaced if session[2] >= held_from]
        self.pending_tombstones = {session for session in self.pending_tombstones if session[2] >= held_from}
        self._forget()
        return sent

    def _send(self, slots: Array) -> list[pa.Array]:
        frame = self.frame
        frame["held"][slots] = False
        slots = slots[self.order(slots)]
        self._count_emitted(len(slots))
        starts, ends = self.bounds(slots)
        results = [fold.result(frame, slots) for fold in self.plan.folds]
        return [*self.keys.columns(frame["key"][slots]), pa.array(starts), pa.array(ends), *results, pa.array(ends)]

    def order(self, slots: Array) -> Array:
        """Return the indexes that sort sessions in sending order.

        They are sent in the order of end, start and key bytes or, with a suppress, in the order of end and key bytes.
        """
        starts, ends = self.bounds(slots)
        numbers = self.frame["key"][slots]
        by_key = self.keys.order(ends, numbers, with_start=self.plan.suppress is not None)
        if self.plan.suppress:
            return by_key
        return np.asarray(by_key[np.lexsort((starts[by_key], ends[by_key]))])

    def _closing_order(self) -> ClosingOrder:
        return ClosingOrder(1, 0)

    def _group(self, timestamps: Array, highest: Array, numbers: Array, operands: Operands) -> Array:
        plan, clocks = self.plan, self.clocks
        if not plan.takes_nulls and any(operand.valid is not None for operand in operands.values()):
            raise UnfitError
        times = np.maximum(highest, clocks.observed(plan.window_node))
        clocks.observe(plan.window_node, int(highest[-1]))
        clocks.count_lateness(NODE, plan.window_node, times - timestamps)
        grown = self.texts.grown(operands, len(times)) if self.texts else None
        # The session of a record depends on all records before it, so the following is a loop over integers.
        slots, merges, ends = self._join(timestamps.tolist(), (times - self.keep_ms).tolist(), numbers.tolist(), grown)
        clocks.count_needed_grace(plan.window_node, times - self.gap_ms - ends)
        self.grow()
        rows = np.flatnonzero(slots >= 0)
        late = len(slots) - len(rows)
        if late:
            self._count(plan.window_node, LATE_RECORD_DROP, "window-closed", late)
        if len(rows) == 0:
            return rows
        clocks.observe(plan.closing_node, self.newest_ms)
        self._fold(slots[rows], rows, merges, operands)
        touched = distinct(slots[rows])
        self.note(touched)
        self.frame["touched"][touched] = True
        self.frame["held"][touched] = True
        if self.pending_tombstones:
            self._check_tombstones(touched)
        # Sessions that were merged into a new session are neither stored nor sent any more.
        for _, joined in merges:
            self.frame["held"][joined] = self.frame["touched"][joined] = False
        return rows

    def _join(
        self, times: list[int], open_from: list[int], keys: list[int], grown: list[Grown] | None
    ) -> tuple[Array, list[tuple[int, list[int]]], Array]:
        """Return the slot of each record (-1 if late), the merges, and the end of each record's session at that record.

        A merge is a pair ``(new slot, merged slots)``. ``open_from``: for each record, the earliest end that a session has if
        it is open.
        """
        starts, ends, gap_ms = self.starts, self.ends, self.gap_ms
        newest, stored_from = self.newest_ms, self.stored_from_ms
        slots, ends_then = [-1] * len(times), times.copy()
        merges: list[tuple[int, list[int]]] = []
        for row, (time, key, open_from_ms) in enumerate(zip(times, keys, open_from, strict=True)):
            mine = self.sessions.of(key)
            span = _touching(mine, time, gap_ms, open_from_ms)
            touched = mine[span]
            if not touched:
                # A late record keeps the slot -1. Only a record that touches no open session can be late.
                if time < open_from_ms:
                    continue
                slot, end = self.add(key, time, time), time
                self.sessions.add(key, (time, time, slot), stored_from)
            elif len(touched) == 1:
                ((end_before, start_before, slot),) = touched
                start, end = min(time, start_before), max(time, end_before)
                if start == start_before and end == end_before:
                    self.is_repeat[slot] = start == end
                # Record execution treats a session with new bounds as a new session. It sends a tombstone for the old session.
                else:
                    self._replace(key, slot)
                    starts[slot], ends[slot] = start, end
                    mine[span] = [(end, start, slot)]
            else:
                start, end = min(time, touched[0][1]), max(time, touched[-1][0])
                slot, joined = self.add(key, start, end), [part for _, _, part in touched]
                merges.append((slot, joined))
                if self.texts:
                    self.texts.merge(slot, joined)
                for part in joined:
                    self._replace(key, part)
                mine[span] = [(end, start, slot)]
            slots[row], ends_then[row] = slot, end
            if self.texts and grown:
                self.texts.take(slot, grown[row])
            if end > newest:
                newest, stored_from = end, end - self.keep_ms
        self.newest_ms = newest
        return np.array(slots), merges, np.array(ends_then)

    def _replace(self, key: int, slot: int) -> None:
        """Record that a session is replaced by a session with other bounds."""
        session = (key, self.starts[slot], self.ends[slot])
        self.replaced.append(session)
        if self.texts:
            self.texts.replace(session, slot)
        if self.stored[slot]:
            self.removed.append(session)
            self.stored[slot] = False
        self.is_repeat[slot] = False

    def _fold(self, slots: Array, rows: Array, merges: list[tuple[int, list[int]]], operands: Operands) -> None:
        """Fold rows into their sessions. Sessions are folded before the sessions into which they are merged."""
        frame, folds = self.frame, self.plan.folds
        # A merged session starts with the states of its parts. So the parts are folded first, and the session gets a higher
        # level than all of them.
        level = np.zeros(frame.size, np.int64)
        pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for made, joined in merges:
            level[made] = 1 + max(level[part] for part in joined)
            for number, part in enumerate(joined):
                pairs.setdefault((int(level[made]), number), []).append((made, part))
        most = max((len(joined) for _, joined in merges), default=0)
        of_row = level[slots]
        for number in range(int(level.max()) + 1):
            for index in range(most):
                if into := pairs.get((number, index)):
                    made_slots, others = np.array(into).T
                    for fold in folds:
                        fold.merge(frame, made_slots, others)
            chosen = np.flatnonzero(of_row == number) if merges else np.arange(len(slots))
            if len(chosen):
                mine = slots[chosen]
                used, inverse = np.unique(mine, return_inverse=True)
                counts = np.bincount(inverse, minlength=len(used))
                some = of_rows(operands, rows[chosen])
                for fold in folds:
                    fold.take(frame, Rows(mine, used, inverse, counts), some)

    def _check_tombstones(self, touched: Array) -> None:
        """Raise `UnfitError` if a session has the bounds of a tombstone for a session without a value."""
        keys = self.frame["key"][touched].tolist()
        bounds = (side.tolist() for side in self.bounds(touched))
        if not self.pending_tombstones.isdisjoint(
            zip(keys, *bounds, strict=True)
        ) or not self.pending_tombstones.isdisjoint(self.replaced):
            raise UnfitError

    def _forget(self) -> None:
        """Drop closed sessions, if there are many of them."""
        ends = self.frame["end"]
        is_kept = (ends >= self.stored_from_ms) | self.frame["held"]
        if len(ends) - int(np.count_nonzero(is_kept)) < _DEAD_SESSIONS:
            return
        moved = (np.cumsum(is_kept) - 1).tolist()
        kept = is_kept.tolist()
        for name in ("starts", "ends", "stored", "is_repeat"):
            setattr(self, name, [entry for entry, stays in zip(getattr(self, name), kept, strict=True) if stays])
        self.sessions.keep(kept, moved)
        self.frame.keep(is_kept)
        if self.texts:
            self.texts.keep(kept, self.held_from_ms)


class _SessionsByEnd:
    """The sessions of each key number, in a list sorted by their ends.

    Open sessions of a key do not overlap, so they are also sorted by their starts. Closed sessions come before them.
    """

    def __init__(self) -> None:
        """Start without sessions."""
        self._of_key: dict[int, list[_Entry]] = {}

    def of(self, key: int) -> list[_Entry]:
        """Return the list of a key's sessions. The caller may change it."""
        return self._of_key.setdefault(key, [])

    def add(self, key: int, entry: _Entry, expired_ms: int) -> None:
        """Add a session to a key, and drop the key's sessions that ended before ``expired_ms``."""
        mine = self.of(key)
        del mine[: bisect_left(mine, (expired_ms,))]
        insort(mine, entry)

    def keep(self, kept: Sequence[bool], moved: Sequence[int]) -> None:
        """Drop the sessions whose slot is false in ``kept``. ``moved`` has the new slots of the others."""
        left = ((key, list(_kept(mine, kept, moved))) for key, mine in self._of_key.items())
        self._of_key = {key: mine for key, mine in left if mine}


def _touching(mine: Sequence[_Entry], time_ms: int, gap_ms: int, open_from_ms: int) -> slice:
    """Return the slice of a key's open sessions that a record at ``time_ms`` touches. They are merged into one session."""
    # Closed sessions end before `open_from_ms`, and come before the open ones.
    start = bisect_left(mine, (max(time_ms - gap_ms, open_from_ms),))
    end = start
    while end < len(mine) and mine[end][1] <= time_ms + gap_ms:
        end += 1
    return slice(start, end)


def _kept(mine: Sequence[_Entry], kept: Sequence[bool], moved: Sequence[int]) -> Iterator[_Entry]:
    return ((end, start, moved[slot]) for end, start, slot in mine if kept[slot])


def restore(task: SessionTask, task_work: TaskWork) -> None:
    """Restore the sessions that may still change. Raises `UnfitError` for rows that vectorized execution never writes."""
    plan = task.plan
    batches: list[list[pa.Array]] = []
    locations: dict[Session, tuple[int, int]] = {}
    store = _rows(task, task_work, plan.store.name, plan.store_shapes, task.stored_from_ms)
    for sessions, values, tombstones in store:
        for row, (session, is_tombstone) in enumerate(zip(sessions, tombstones, strict=True)):
            locations.pop(session, None)
            if not is_tombstone:
                locations[session] = (len(batches), row)
        batches.append(values)
    held_from = task.held_from_ms
    for number, values in enumerate(batches):
        mine = [(session, row) for session, (batch, row) in locations.items() if batch == number]
        slots = np.array([task.add(*session) for session, _ in mine], np.int64)
        task.grow()
        if len(slots) == 0:
            continue
        rows = pa.array([row for _, row in mine])
        state = [column.take(rows) for column in values]
        if not plan.takes_nulls and any(column.null_count for column in state):
            raise UnfitError
        position = 0
        for fold in plan.folds:
            fold.restore(task.frame, slots, state[position : position + len(fold.state_types)])
            position += len(fold.state_types)
        if task.texts:
            task.texts.restore(slots, state[:position])
        for slot, ((key, start, end), _) in zip(slots.tolist(), mine, strict=True):
            task.stored[slot] = True
            task.sessions.add(key, (end, start, slot), task.stored_from_ms)
            task.frame["held"][slot] = end >= held_from
    if plan.suppress:
        # `null_index` is the index of the column that says whether the result is null.
        null_index = len(plan.folds)
        for sessions, values, tombstones in _rows(
            task, task_work, plan.suppress.store, plan.suppress.shapes, held_from
        ):
            is_null = values[null_index].to_pylist()
            for session, is_empty, is_tombstone in zip(sessions, is_null, tombstones, strict=True):
                task.buffered.pop(session, None)
                if not is_tombstone:
                    task.buffered[session] = bool(is_empty)
        task.pending_tombstones = {session for session, is_empty in task.buffered.items() if is_empty}


def stage(task: SessionTask, targets: Mapping[str, StagingTarget], *, partition: int, run: int) -> list[StagedFile]:
    """Stage the changes of the stores."""
    plan, frame = task.plan, task.frame
    _, ends = task.bounds(np.arange(frame.size))
    slots = np.flatnonzero(frame["touched"] & (ends >= task.stored_from_ms))
    slots = slots[task.order(slots)]
    state = [column for fold in plan.folds for column in fold.state(frame, slots)]
    rows = [*_keys(task, slots), *state]
    files = write_rows(targets[plan.store.name], plan.store_shapes, [rows, _of(task, task.removed)], partition, run)
    if plan.suppress:
        held_from_ms = task.held_from_ms
        left = [session for session in task.buffered if session[2] < held_from_ms]
        slots = np.flatnonzero(frame["touched"] & frame["held"])
        slots = slots[task.order(slots)]
        made = {session for session in task.replaced if session[2] >= held_from_ms}
        chunks = [_entries(task, slots), _tombstones(task, sorted(made)), _of(task, left)]
        files += write_rows(targets[plan.suppress.store], plan.suppress.shapes, chunks, partition, run)
    return files


def _entries(task: SessionTask, slots: Array) -> list[pa.Array]:
    """Return the columns of the buffer entries that this run wrote and that are still held."""
    results = [fold.result(task.frame, slots) for fold in task.plan.folds]
    is_repeat = np.array(task.is_repeat, np.bool_)[slots] if len(slots) else np.zeros(0, np.bool_)
    now, before = task.plan.sizes.of(task.frame, slots)
    sizes = _sizes(task, task.frame["key"][slots]) + now + np.where(is_repeat, before, 0)
    _, ends = task.bounds(slots)
    return [*_keys(task, slots), *results, *_entry(results, ends, sizes, is_null=False)]


def _tombstones(task: SessionTask, sessions: Sequence[Session]) -> list[pa.Array]:
    """Return the columns of the buffer entries of replaced sessions, which are tombstones without a result."""
    rows = len(sessions)
    nulls = [pa.nulls(rows, fold.result(task.frame, np.zeros(0, np.int64)).type) for fold in task.plan.folds]
    keys, ends = (np.array([session[index] for session in sessions], np.int64) for index in (0, 2))
    sizes = _sizes(task, keys) + _result_bytes(task, sessions)
    return [*_of(task, sessions), *nulls, *_entry(nulls, ends, sizes, is_null=True)]


def _entry(results: Sequence[pa.Array], ends: Array, sizes: Array, *, is_null: bool) -> list[pa.Array]:
    rows = len(ends)
    prior = [pa.nulls(rows, result.type) for result in results]
    times = [pa.array(ends), pa.array(ends), pa.array(sizes)]
    return [pa.repeat(is_null, rows), *times, *prior, pa.repeat(True, rows)]


def _sizes(task: SessionTask, keys: Array) -> Array:
    """Return the sizes of entries (bytes), without their values.

    A suppress limits these sizes (`streams.state.suppress_buffer`).
    """
    return ENTRY_BYTES + task.keys.sizes(keys) + 2 * LONG_BYTES + len(task.plan.topic)


def _result_bytes(task: SessionTask, sessions: Sequence[Session]) -> Any:
    """Return the encoded sizes of the results of replaced sessions, in bytes. None of these results contains a null."""
    if task.texts:
        return np.array([task.texts.sizes[session] for session in sessions], np.int64)
    kinds = [fold.result_type for fold in task.plan.folds]
    return sum(1 if kind == "boolean" else LONG_BYTES for kind in kinds) + task.plan.sizes.row_bytes


def _keys(task: SessionTask, slots: Array) -> list[pa.Array]:
    starts, ends = task.bounds(slots)
    return [*task.keys.columns(task.frame["key"][slots]), pa.array(starts), pa.array(ends)]


def _of(task: SessionTask, sessions: Iterable[Session]) -> list[pa.Array]:
    """Return the key columns of sessions."""
    rows = np.array(list(sessions), np.int64).reshape(-1, 3)
    return [*task.keys.columns(rows[:, 0].copy()), pa.array(rows[:, 1].copy()), pa.array(rows[:, 2].copy())]


def _rows(
    task: SessionTask, task_work: TaskWork, store: str, shapes: tuple[Shape, Shape], ends_from_ms: int
) -> Iterator[tuple[list[Session], list[pa.Array], list[bool]]]:
    """Yield triples for the batches of a store, in the order of writing.

    A triple has the sessions that end at ``ends_from_ms`` or later, their value columns, and for each session whether its row
    is a tombstone.
    """
    key, value = shapes
    columns = [*key.names, *value.names, "_tombstone"]
    width = len(key.columns)
    wanted = RowGroupFilter(key.names[-1], ends_from_ms - 1)
    for batch in changelog_batches(task_work.stores.get(store, ()), task_work.partition, columns, wanted=wanted):
        mask = np.asarray(batch.column(width - 1)) >= ends_from_ms
        some = batch if mask.all() else batch.filter(pa.array(mask))
        if some.num_rows:
            numbers = task.keys.numbers(some.columns[: width - 2]).tolist()
            bounds = [some.column(width - 2).to_pylist(), some.column(width - 1).to_pylist()]
            yield list(zip(numbers, *bounds, strict=True)), some.columns[width:-1], some.column(-1).to_pylist()
