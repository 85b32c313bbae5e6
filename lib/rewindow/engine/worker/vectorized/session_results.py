"""Final results of sessions: what `streams.task` with a `SessionAggregate` does, a batch at a time.

Which records meet in which session depends on what came before, record by record, so that is a loop over whole numbers:
keys, times, bounds. What is computed of the records is folded in bulk. A record that joins two sessions makes a third,
which begins with both states; so the rows of a batch are folded level by level, and sums of floats are added up in the
record execution's order, to the last bit.

Why results may leave at their epoch's end: a session that is over takes no record any more, and what leaves later has
later ends. Where the two execution modes' rules come apart, `UnfitError` hands over: nulls among the operands where they matter
(`Finals.takes_nulls`), and a session with the bounds of a tombstone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rewindow.contracts.tasks import Epoch
from rewindow.engine.worker.vectorized.arrays import UnfitError
from rewindow.engine.worker.vectorized.folds import Operands, Rows
from rewindow.engine.worker.vectorized.plan import Finals
from rewindow.engine.worker.vectorized.session_list_sizes import Grown, Session, SessionTexts
from rewindow.engine.worker.vectorized.slots import Array, Column, Frame
from rewindow.engine.worker.vectorized.task import VectorizedTask, of_rows
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import LATE_RECORD_DROP, NODE
from rewindow.streams.record import UNKNOWN
from rewindow.streams.semantics import Semantics
from rewindow.streams.windows.session_sliding import SessionWindows

DEAD_SESSIONS = 50_000
"""So many sessions that are over are kept before the others move together."""


class SessionTask(VectorizedTask):
    """One task of the execution. What its stores have comes by `session_changes.restore`."""

    def __init__(self, plan: Finals, windows: SessionWindows, semantics: Semantics, state: TaskState | None) -> None:
        """Begin a task, or take up the small state of a checkpoint."""
        super().__init__(plan, semantics, state)
        self.gap_ms = windows.gap_ms
        self.keep_ms = windows.gap_ms + windows.grace_ms
        """A session is over once the clock is more than this past its end."""
        self.newest_ms = state.store_clocks.get(plan.store.name, UNKNOWN) if state else UNKNOWN
        columns: dict[str, Column] = {"key": (np.int64, 0), "start": (np.int64, 0), "end": (np.int64, 0)}
        columns |= dict.fromkeys(("held", "touched"), (np.bool_, False))
        for fold in plan.folds:
            columns |= fold.columns()
        self.frame = Frame(columns)
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.stored: list[bool] = []
        """Whether the checkpoint's store has a session with these bounds."""
        self.repeats: list[bool] = []
        """Whether its last update was of one single time again: then it carried the result before."""
        self._keys: list[int] = []
        """The keys of sessions that the frame does not have yet."""
        self.sessions_of: dict[int, list[int]] = {}
        self.gone: list[Session] = []
        """Bounds that became others while they were not over: the buffer holds a tombstone for each."""
        self.removed: list[Session] = []
        """What the checkpoint's store has and this run took out."""
        self.buffered: dict[Session, bool] = {}
        """What the checkpoint's buffer has, and whether it is a tombstone."""
        self.tombs: set[Session] = set()
        """Those of its tombstones that have not left."""
        self.texts = SessionTexts(plan.sizes) if plan.suppress and plan.sizes.are_texts else None

    @property
    def stored_from_ms(self) -> int:
        """Sessions that ended before this are forgotten by the store."""
        return self.newest_ms - self.keep_ms

    @property
    def held_from_ms(self) -> int:
        """Sessions that ended before this have left."""
        return self.clocks.observed(self.plan.closing_node) - self.keep_ms

    @property
    def held(self) -> int:
        """See `VectorizedTask`."""
        return int(np.count_nonzero(self.frame["held"])) + len(self.tombstones())

    def tombstones(self) -> set[Session]:
        """Return the bounds of which the buffer holds a tombstone."""
        first = self.held_from_ms
        known = {session for session, is_gone in self.buffered.items() if is_gone}
        return {session for session in known.union(self.gone) if session[2] >= first}

    def add(self, key: int, start_ms: int, end_ms: int) -> int:
        """Make a session; return its slot. The frame gets its own slots later (`grow`)."""
        slot = len(self.starts)
        self.starts.append(start_ms)
        self.ends.append(end_ms)
        self.stored.append(False)
        self.repeats.append(False)
        self._keys.append(key)
        if self.texts:
            self.texts.add()
        return slot

    def grow(self) -> None:
        """Give the frame the slots of new sessions."""
        made = self.frame.extend(len(self.starts) - self.frame.size)
        self.frame["key"][made] = self._keys
        self._keys = []
        self.note(made)

    def note(self, slots: Array) -> None:
        """Tell the frame the bounds of sessions."""
        places = slots.tolist()
        self.frame["start"][slots] = [self.starts[one] for one in places]
        self.frame["end"][slots] = [self.ends[one] for one in places]

    def bounds(self, slots: Array) -> tuple[Array, Array]:
        """Return starts and ends of sessions."""
        return self.frame["start"][slots], self.frame["end"][slots]

    def end_epoch(self, epoch: Epoch) -> list[pa.Array]:
        """See `VectorizedTask`."""
        self._told(epoch)
        frame = self.frame
        is_due = frame["held"] & (frame["end"] < self.held_from_ms)
        leaving = self._leave(np.flatnonzero(is_due)) if is_due.any() else []
        held_from = self.held_from_ms
        self.gone = [session for session in self.gone if session[2] >= held_from]
        self.tombs = {session for session in self.tombs if session[2] >= held_from}
        self._forget()
        return leaving

    def _leave(self, slots: Array) -> list[pa.Array]:
        frame = self.frame
        frame["held"][slots] = False
        slots = slots[self.order(slots)]
        self._count_emitted(len(slots))
        starts, ends = self.bounds(slots)
        results = [fold.result(frame, slots) for fold in self.plan.folds]
        return [*self.keys.columns(frame["key"][slots]), pa.array(starts), pa.array(ends), *results, pa.array(ends)]

    def order(self, slots: Array) -> Array:
        """Return the order in which sessions leave: by end, from a suppress then key bytes, else start and key bytes."""
        starts, ends = self.bounds(slots)
        numbers = self.frame["key"][slots]
        by_key = self.keys.order(ends, numbers, with_start=self.plan.suppress is not None)
        if self.plan.suppress:
            return by_key
        return np.asarray(by_key[np.lexsort((starts[by_key], ends[by_key]))])

    def _aggregate(self, timestamps: Array, highest: Array, numbers: Array, operands: Operands) -> None:
        plan, clocks = self.plan, self.clocks
        if not plan.takes_nulls and any(operand.valid is not None for operand in operands.values()):
            raise UnfitError
        times = np.maximum(highest, clocks.observed(plan.window_node))
        clocks.observe(plan.window_node, int(highest[-1]))
        clocks.count_lateness(NODE, plan.window_node, times - timestamps)
        grown = self.texts.grown(operands, len(times)) if self.texts else None
        slots, merges = self._join(timestamps.tolist(), (times - self.keep_ms).tolist(), numbers.tolist(), grown)
        self.grow()
        rows = np.flatnonzero(slots >= 0)
        late = len(slots) - len(rows)
        if late:
            self._count(plan.window_node, LATE_RECORD_DROP, "window-closed", late)
        if len(rows) == 0:
            return
        clocks.observe(plan.closing_node, self.newest_ms)
        self._fold(slots[rows], rows, merges, operands)
        touched = np.unique(slots[rows])
        self.note(touched)
        self.frame["touched"][touched] = True
        self.frame["held"][touched] = True
        if self.tombs:
            self._check_tombs(touched)
        for _, joined in merges:
            self.frame["held"][joined] = self.frame["touched"][joined] = False

    def _join(
        self, times: list[int], open_from: list[int], keys: list[int], grown: list[Grown] | None
    ) -> tuple[Array, list[tuple[int, list[int]]]]:
        """Return the session of each record, -1 for late ones, and which sessions became one: ``(made, of)``."""
        starts, ends, sessions_of, gap_ms = self.starts, self.ends, self.sessions_of, self.gap_ms
        newest, stored_from = self.newest_ms, self.stored_from_ms
        slots = [-1] * len(times)
        merges: list[tuple[int, list[int]]] = []
        for row, (time, key, is_open_from) in enumerate(zip(times, keys, open_from, strict=True)):
            mine = sessions_of.get(key)
            touched: list[int] = []
            if mine:
                low = max(time - gap_ms, is_open_from)
                touched = [one for one in mine if ends[one] >= low and starts[one] <= time + gap_ms]
            if not touched:
                if time < is_open_from:
                    continue
                slot, end = self.add(key, time, time), time
                kept = [one for one in mine if ends[one] >= stored_from] if mine else []
                sessions_of[key] = [*kept, slot]
            else:
                start = (
                    min(time, *[starts[one] for one in touched]) if len(touched) > 1 else min(time, starts[touched[0]])
                )
                end = max(time, ends[touched[0]])
                if len(touched) > 1:
                    end = max(end, *[ends[one] for one in touched])
                slot = touched[0]
                if len(touched) > 1:
                    touched.sort(key=lambda one: (ends[one], starts[one]))
                    slot = self.add(key, start, end)
                    merges.append((slot, touched))
                    if self.texts:
                        self.texts.merge(slot, touched)
                    for one in touched:
                        self._replace(key, one)
                    sessions_of[key] = [*[one for one in mine or () if one not in touched], slot]
                elif start == starts[slot] and end == ends[slot]:
                    self.repeats[slot] = start == end
                else:
                    self._replace(key, slot)
                    starts[slot], ends[slot] = start, end
            slots[row] = slot
            if self.texts and grown:
                self.texts.take(slot, grown[row])
            if end > newest:
                newest, stored_from = end, end - self.keep_ms
        self.newest_ms = newest
        return np.array(slots), merges

    def _replace(self, key: int, slot: int) -> None:
        """Note that a session's bounds are no more."""
        session = (key, self.starts[slot], self.ends[slot])
        self.gone.append(session)
        if self.texts:
            self.texts.replace(session, slot)
        if self.stored[slot]:
            self.removed.append(session)
            self.stored[slot] = False
        self.repeats[slot] = False

    def _fold(self, slots: Array, rows: Array, merges: list[tuple[int, list[int]]], operands: Operands) -> None:
        """Fold rows into their sessions. What was made of others comes after those."""
        frame, folds = self.frame, self.plan.folds
        level = np.zeros(frame.size, np.int64)
        pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for made, joined in merges:
            level[made] = 1 + max(level[one] for one in joined)
            for number, one in enumerate(joined):
                pairs.setdefault((int(level[made]), number), []).append((made, one))
        most = max((len(joined) for _, joined in merges), default=0)
        of_row = level[slots]
        for number in range(int(level.max()) + 1):
            for place in range(most):
                if into := pairs.get((number, place)):
                    made_slots, others = np.array(into).T
                    for fold in folds:
                        fold.merge(frame, made_slots, others)
            chosen = np.flatnonzero(of_row == number) if merges else np.arange(len(slots))
            if len(chosen):
                mine = slots[chosen]
                distinct, places = np.unique(mine, return_inverse=True)
                counts = np.bincount(places, minlength=len(distinct))
                some = of_rows(operands, rows[chosen])
                for fold in folds:
                    fold.take(frame, Rows(mine, distinct, places, counts), some)

    def _check_tombs(self, touched: Array) -> None:
        """Hand over where a session has the bounds of a tombstone: that was no session's, but one without a value."""
        keys = self.frame["key"][touched].tolist()
        bounds = (side.tolist() for side in self.bounds(touched))
        if not self.tombs.isdisjoint(zip(keys, *bounds, strict=True)) or not self.tombs.isdisjoint(self.gone):
            raise UnfitError

    def _forget(self) -> None:
        """Forget sessions that are over, once they are many."""
        ends = self.frame["end"]
        is_kept = (ends >= self.stored_from_ms) | self.frame["held"]
        if len(ends) - int(np.count_nonzero(is_kept)) < DEAD_SESSIONS:
            return
        moved = (np.cumsum(is_kept) - 1).tolist()
        kept = is_kept.tolist()
        for name in ("starts", "ends", "stored", "repeats"):
            setattr(self, name, [one for one, stays in zip(getattr(self, name), kept, strict=True) if stays])
        sessions = ((key, [moved[one] for one in mine if kept[one]]) for key, mine in self.sessions_of.items())
        self.sessions_of = {key: mine for key, mine in sessions if mine}
        self.frame.keep(is_kept)
        if self.texts:
            self.texts.keep(kept, self.held_from_ms)
