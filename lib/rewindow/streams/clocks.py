"""A task's two clocks, and what fires as they move: stream time and the simulated wall clock (D1, D5, D8, KIP-138).

The wall clock moves first. What it passes on its way fires at its own due time, and that is its place among the records
(D21); a jump fires what is due once, with the clock. Stream-time punctuations fire after the record that moved time has
passed through the graph, so here time only moves, and `fire_stream_time` comes later.
"""

from __future__ import annotations

from rewindow.streams.limits import Punctuations
from rewindow.streams.metrics import PUNCTUATE
from rewindow.streams.punctuation import PunctuationType, Schedule
from rewindow.streams.record import MAX_MS, UNKNOWN
from rewindow.streams.semantics import Semantics, StreamTime, WallClock
from rewindow.streams.settings import Limits
from rewindow.streams.task_context import TaskScope


class Clocks:
    """Moves the clocks of a task's scope. ``partition_times``: the highest timestamp of each topic so far."""

    def __init__(self, scope: TaskScope, semantics: Semantics, partition_times: list[int], limits: Limits) -> None:
        self.partition_times = partition_times
        self.stream_queue = scope.schedules.queues[PunctuationType.STREAM_TIME]
        self._wall_queue = scope.schedules.queues[PunctuationType.WALL_CLOCK_TIME]
        self._scope = scope
        self._glides = semantics.wall_clock is WallClock.STREAM_TIME
        self._is_lowest = semantics.stream_time is StreamTime.MIN
        self._punctuations = Punctuations(limits, scope)

    def take(self, rank: int, timestamp: int) -> None:
        """Take the highest timestamp of a topic so far."""
        self.glide(timestamp)
        self.partition_times[rank] = timestamp
        self.move_stream_time(min(self.partition_times) if self._is_lowest else timestamp)

    def move_stream_time(self, reached: int) -> None:
        """Move stream time, which never goes back."""
        scope = self._scope
        if reached <= scope.stream_time_ms:
            return
        if scope.stream_time_ms == UNKNOWN:
            scope.stream_time_ms = reached
            self.stream_queue.clock_became_known(reached)
        scope.stream_time_ms = reached

    def glide(self, now_ms: int) -> None:
        """Move the wall clock where it follows time, firing on the way what is due, each at its own time (D8)."""
        scope = self._scope
        if not self._glides or now_ms <= scope.wall_clock_ms:
            return
        if scope.wall_clock_ms == UNKNOWN:
            scope.wall_clock_ms = now_ms
            scope.begin_time()
            self._wall_queue.clock_became_known(now_ms)
        if self._wall_queue.next_due_ms <= now_ms:
            self._wall_queue.fire_each(now_ms, self._punctuate_on_the_way)
        scope.wall_clock_ms = max(scope.wall_clock_ms, now_ms)

    def jump(self, now_ms: int) -> None:
        """Move the wall clock at once: what is due fires once, with the clock as argument (D8, ``run``)."""
        scope = self._scope
        if scope.wall_clock_ms == UNKNOWN:
            self._wall_queue.clock_became_known(now_ms)
        scope.wall_clock_ms = max(scope.wall_clock_ms, now_ms)
        # The records are done: what a jump emits comes after all that they did (D8, D21).
        scope.moment.order_ms = MAX_MS
        self._wall_queue.fire(scope.wall_clock_ms, self.punctuate)

    def fire_stream_time(self) -> None:
        """Fire what is due by stream time at an epoch's end, after all that its records did."""
        self._scope.moment.order_ms = MAX_MS
        self.stream_queue.fire(self._scope.stream_time_ms, self.punctuate)

    def fire_last(self) -> None:
        """Fire each schedule one last time, at its next due time (D18)."""
        self._wall_queue.fire_last(self._punctuate_on_the_way)
        self._scope.moment.order_ms = MAX_MS
        self.stream_queue.fire_last(self.punctuate)

    def end_epoch(self) -> None:
        """Begin to count the punctuations of another epoch."""
        self._punctuations.clear()

    def punctuate(self, schedule: Schedule, now_ms: int) -> None:
        """Call a schedule. Raises `LimitError` (71) if the epoch has had too many."""
        scope, moment = self._scope, self._scope.moment
        if schedule.type is PunctuationType.WALL_CLOCK_TIME:
            scope.wall_clock_ms = max(scope.wall_clock_ms, now_ms)
        else:
            scope.stream_time_ms = max(scope.stream_time_ms, now_ms)
        moment.topic, moment.offset, moment.timestamp = None, UNKNOWN, now_ms
        moment.scheduled_ms = schedule.due_ms if schedule.due_ms is not None else now_ms
        moment.firing = (f"schedule-{schedule.registration}", moment.scheduled_ms)
        scope.metrics.measure("node", schedule.node, PUNCTUATE, schedule.type.value).record()
        self._punctuations.add(schedule.node)
        scope.schedules.call(schedule, now_ms)
        moment.scheduled_ms = UNKNOWN

    def _punctuate_on_the_way(self, schedule: Schedule, now_ms: int) -> None:
        """Fire at its own due time, which is its place among the records (D21)."""
        self._scope.moment.order_ms = now_ms
        self.punctuate(schedule, now_ms)
