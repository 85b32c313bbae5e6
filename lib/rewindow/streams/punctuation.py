"""Schedules and when they are due (KIP-138, the time-shift proposal, KIP-1146; decisions D2-D8).

Rules of this file:

1. A schedule is due when its clock is equal to or later than ``due_ms``.
2. The due times of a schedule form a grid: ``due_ms`` plus multiples of the interval. After firing at clock ``T``, the schedule
   is next due at the first point of its grid strictly after ``T``. So a jump of the clock fires the schedule once.
3. A schedule is pending (it has no due time) until its clock is known. Exception: a stream-time schedule with a
   ``start_time`` is due at that time from the beginning.
4. Schedules that are due together fire in the order of due time, then of registration (D6).
5. A schedule is data: the node, a method's name, and arguments that can be encoded. So a schedule can outlive an epoch (D7).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from rewindow.streams.duration import at_or_after, strictly_after
from rewindow.streams.record import MAX_MS, UNKNOWN
from rewindow.streams.serde.canonical_json import from_tagged, to_tagged

UNALIGNED = (
    "A stream-time schedule without start_time or time_shift fires at the first record and then one interval after each firing "
    "(D2). Kafka's grid is start_time='0s'"
)
"""The warning of `plan` and the test driver about schedules whose due times depend on the first record."""
NEVER = MAX_MS + 1
"""A due time that no clock reaches."""


class PunctuationType(Enum):
    """The clock that a schedule follows (KIP-138)."""

    STREAM_TIME = "STREAM_TIME"
    WALL_CLOCK_TIME = "WALL_CLOCK_TIME"


@dataclass(slots=True)
class Schedule:
    """A repeated callback of one node.

    ``identity`` is ``name:<name>`` for a named schedule, ``init:<k>`` for the k-th unnamed schedule made in `init`, or
    ``call:<n>`` for an unnamed schedule made elsewhere. ``registration`` numbers the schedules of a task. ``due_ms`` is
    None while the schedule is pending.
    """

    node: str
    identity: str
    type: PunctuationType
    interval_ms: int
    method: str
    args: tuple[Any, ...]
    time_shift_ms: int | None
    start_time_ms: int | None
    registration: int
    due_ms: int | None = None
    is_cancelled: bool = False

    @property
    def is_unaligned(self) -> bool:
        """Whether the first record decides when the schedule fires (D2)."""
        return self.type is PunctuationType.STREAM_TIME and self.time_shift_ms is None and self.start_time_ms is None

    def arm(self, now_ms: int, *, is_firing: bool = False) -> None:
        """Set the first due time, given the clock ``now_ms``. If the clock is unknown (-1), the schedule may stay pending.

        ``is_firing``: whether a punctuation of this clock is running. If so, and with a time shift, the first due time is
        strictly after the clock (D3).
        """
        is_stream = self.type is PunctuationType.STREAM_TIME
        # A stream-time schedule with a start time is due even while stream time is unknown. A wall-clock schedule stays
        # pending until the clock has a first value.
        if self.start_time_ms is not None and (is_stream or now_ms != UNKNOWN):
            late = self.start_time_ms < now_ms
            self.due_ms = strictly_after(now_ms, self.start_time_ms, self.interval_ms) if late else self.start_time_ms
        elif now_ms != UNKNOWN and self.time_shift_ms is not None:
            # If the new schedule were due at the current clock, it would fire during the punctuation that makes it.
            first_due = strictly_after if is_firing else at_or_after
            self.due_ms = first_due(now_ms, self.time_shift_ms, self.interval_ms)
        elif now_ms != UNKNOWN:
            self.due_ms = now_ms + self.interval_ms

    def become_known(self, now_ms: int) -> None:
        """Set a pending schedule's due time, given the clock's first value.

        A stream-time schedule without shift is due now (D2).
        """
        fires_now = self.type is PunctuationType.STREAM_TIME and self.time_shift_ms is None
        if fires_now:
            self.due_ms = now_ms
        else:
            self.arm(now_ms)

    def advance(self, now_ms: int) -> None:
        """Advance the due time to the next point of the schedule's grid that is strictly after the clock ``now_ms``."""
        due_ms = self.due_ms if self.due_ms is not None else now_ms
        self.due_ms = strictly_after(now_ms, due_ms, self.interval_ms)

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary for `json`."""
        return {**asdict(self), "type": self.type.value, "args": to_tagged(list(self.args))}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Schedule:
        """Return the schedule that `as_json` described."""
        return cls(**{**data, "type": PunctuationType(data["type"]), "args": tuple(from_tagged(data["args"]))})


class Cancellable:
    """The handle of a schedule (KIP-138). Cancelling twice is harmless."""

    __slots__ = ("_schedule",)

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    def cancel(self) -> None:
        """Stop the schedule, even if it is due at this moment."""
        self._schedule.is_cancelled = True


class PunctuationQueue:
    """The schedules of one type in one task, ordered by due time."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Schedule]] = []
        self._pending: list[Schedule] = []
        self.next_due_ms = NEVER
        """The earliest due time, possibly of a cancelled schedule; `NEVER` if no schedule has a due time."""

    def add(self, schedule: Schedule) -> None:
        """Add a schedule, with or without a due time."""
        if schedule.due_ms is None:
            self._pending.append(schedule)
            return
        # Schedules that are due together fire in the order of their registration (D6).
        heapq.heappush(self._heap, (schedule.due_ms, schedule.registration, schedule))
        self.next_due_ms = self._heap[0][0]

    def clock_became_known(self, now_ms: int) -> None:
        """Set the due times of the pending schedules, given the clock's first value."""
        pending, self._pending = self._pending, []
        for schedule in pending:
            if not schedule.is_cancelled:
                schedule.become_known(now_ms)
                self.add(schedule)

    def fire(self, now_ms: int, punctuate: Callable[[Schedule, int], None]) -> None:
        """Fire each due schedule once, with ``now_ms`` as argument, because the clock has jumped to ``now_ms``."""
        while (schedule := self._pop_due(now_ms)) is not None:
            self._run(schedule, now_ms, punctuate)

    def fire_each(self, until_ms: int, punctuate: Callable[[Schedule, int], None]) -> None:
        """Fire each schedule at each of its due times up to ``until_ms``, because the clock advances there gradually."""
        while (schedule := self._pop_due(until_ms)) is not None:
            due_ms = schedule.due_ms
            if due_ms is not None:
                self._run(schedule, due_ms, punctuate)

    def fire_last(self, punctuate: Callable[[Schedule, int], None]) -> None:
        """Fire every schedule that is not cancelled once more, with its next due time, in the order of due times (D18)."""
        entries, self._heap, self.next_due_ms = sorted(self._heap, key=lambda entry: entry[:2]), [], NEVER
        for due_ms, _, schedule in entries:
            if not schedule.is_cancelled:
                punctuate(schedule, due_ms)
                schedule.is_cancelled = True

    def mark(self) -> Callable[[], None]:
        """Return a function that restores the queue to its present state."""
        heap, pending, next_due_ms = self._heap.copy(), self._pending.copy(), self.next_due_ms

        def restore() -> None:
            self._heap, self._pending, self.next_due_ms = heap, pending, next_due_ms

        return restore

    def forget_cancelled(self) -> None:
        """Remove cancelled schedules."""
        self._heap = [entry for entry in self._heap if not entry[2].is_cancelled]
        heapq.heapify(self._heap)
        self._pending = [schedule for schedule in self._pending if not schedule.is_cancelled]
        self.next_due_ms = self._heap[0][0] if self._heap else NEVER

    def __iter__(self) -> Iterator[Schedule]:
        """Iterate over the schedules that are not cancelled, in the order of registration."""
        entries = [schedule for _, _, schedule in self._heap] + self._pending
        return iter(sorted((s for s in entries if not s.is_cancelled), key=lambda s: s.registration))

    def _pop_due(self, now_ms: int) -> Schedule | None:
        schedule = None
        while schedule is None and self._heap and self._heap[0][0] <= now_ms:
            _, _, candidate = heapq.heappop(self._heap)
            schedule = None if candidate.is_cancelled else candidate
        self.next_due_ms = self._heap[0][0] if self._heap else NEVER
        return schedule

    def _run(self, schedule: Schedule, now_ms: int, punctuate: Callable[[Schedule, int], None]) -> None:
        punctuate(schedule, now_ms)
        # The method that was called may have cancelled the schedule that called it.
        if not schedule.is_cancelled:
            schedule.advance(now_ms)
            self.add(schedule)
