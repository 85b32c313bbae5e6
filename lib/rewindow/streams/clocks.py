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
from rewindow.streams.task_context import TaskContext


class Clocks:
    """Moves the clocks of a task's scope. ``partition_times``: the highest timestamp of each topic so far."""

    def __init__(
        self, task_context: TaskContext, semantics: Semantics, partition_times: list[int], limits: Limits
    ) -> None:
        self.partition_times = partition_times
        self.stream_queue = task_context.schedules.queues[PunctuationType.STREAM_TIME]
        self._wall_queue = task_context.schedules.queues[PunctuationType.WALL_CLOCK_TIME]
        self._task_context = task_context
        self._glides = semantics.wall_clock is WallClock.STREAM_TIME
        self._is_lowest = semantics.stream_time is StreamTime.MIN
        self._punctuations = Punctuations(limits, task_context)

    def take(self, rank: int, timestamp: int) -> None:
        """Take the highest timestamp of a topic so far."""
        self.glide(timestamp)
        self.partition_times[rank] = timestamp
        self.move_stream_time(min(self.partition_times) if self._is_lowest else timestamp)

    def move_stream_time(self, reached: int) -> None:
        """Move stream time, which never goes back."""
        task_context = self._task_context
        if reached <= task_context.stream_time_ms:
            return
        if task_context.stream_time_ms == UNKNOWN:
            task_context.stream_time_ms = reached
            self.stream_queue.clock_became_known(reached)
        task_context.stream_time_ms = reached

    def glide(self, now_ms: int) -> None:
        """Move the wall clock where it follows time, firing on the way what is due, each at its own time (D8)."""
        task_context = self._task_context
        if not self._glides or now_ms <= task_context.wall_clock_ms:
            return
        if task_context.wall_clock_ms == UNKNOWN:
            task_context.wall_clock_ms = now_ms
            task_context.begin_time()
            self._wall_queue.clock_became_known(now_ms)
        if self._wall_queue.next_due_ms <= now_ms:
            self._wall_queue.fire_each(now_ms, self._punctuate_on_the_way)
        task_context.wall_clock_ms = max(task_context.wall_clock_ms, now_ms)

    def jump(self, now_ms: int) -> None:
        """Move the wall clock at once: what is due fires once, with the clock as argument (D8, ``run``)."""
        task_context = self._task_context
        if task_context.wall_clock_ms == UNKNOWN:
            self._wall_queue.clock_became_known(now_ms)
        task_context.wall_clock_ms = max(task_context.wall_clock_ms, now_ms)
        # The records are done: what a jump emits comes after all that they did (D8, D21).
        task_context.record_context.order_ms = MAX_MS
        self._wall_queue.fire(task_context.wall_clock_ms, self.punctuate)

    def fire_stream_time(self) -> None:
        """Fire what is due by stream time at an epoch's end, after all that its records did."""
        self._task_context.record_context.order_ms = MAX_MS
        self.stream_queue.fire(self._task_context.stream_time_ms, self.punctuate)

    def fire_last(self) -> None:
        """Fire each schedule one last time, at its next due time (D18)."""
        self._wall_queue.fire_last(self._punctuate_on_the_way)
        self._task_context.record_context.order_ms = MAX_MS
        self.stream_queue.fire_last(self.punctuate)

    def end_epoch(self) -> None:
        """Begin to count the punctuations of another epoch."""
        self._punctuations.clear()

    def punctuate(self, schedule: Schedule, now_ms: int) -> None:
        """Call a schedule. Raises `LimitError` (71) if the epoch has had too many."""
        task_context, record_context = self._task_context, self._task_context.record_context
        if schedule.type is PunctuationType.WALL_CLOCK_TIME:
            task_context.wall_clock_ms = max(task_context.wall_clock_ms, now_ms)
        else:
            task_context.stream_time_ms = max(task_context.stream_time_ms, now_ms)
        record_context.topic, record_context.offset, record_context.timestamp = None, UNKNOWN, now_ms
        record_context.scheduled_ms = schedule.due_ms if schedule.due_ms is not None else now_ms
        record_context.firing = (f"schedule-{schedule.registration}", record_context.scheduled_ms)
        task_context.metrics.measure("node", schedule.node, PUNCTUATE, schedule.type.value).record()
        self._punctuations.add(schedule.node)
        task_context.schedules.call(schedule, now_ms)
        record_context.scheduled_ms = UNKNOWN

    def _punctuate_on_the_way(self, schedule: Schedule, now_ms: int) -> None:
        """Fire at its own due time, which is its place among the records (D21)."""
        self._task_context.record_context.order_ms = now_ms
        self.punctuate(schedule, now_ms)
