"""The two clocks of a task, stream time and the simulated wall clock, and the schedules they fire (D1, D5, D8, KIP-138).

The wall clock advances before stream time does. When the wall clock advances gradually (`glide`), a schedule fires at each of
its due times. The due time is also the order key of the output (D21). When the wall clock jumps (`jump`), each due schedule
fires once, and gets the clock as argument. Stream-time schedules fire only after the record that advanced stream time has
passed through the graph. So `take` does not fire them. The task's loop fires them after the record, and `fire_stream_time`
fires them at an epoch's end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from rewindow.streams.limits import Punctuations
from rewindow.streams.metrics import PUNCTUATE
from rewindow.streams.punctuation import PunctuationType, Schedule
from rewindow.streams.record import MAX_MS, UNKNOWN
from rewindow.streams.settings import Limits, Semantics, StreamTime, WallClock
from rewindow.streams.task_context import TaskContext


class Clocks:
    """Advances the clocks of a task. ``partition_times`` has the highest timestamp so far of each topic, by rank."""

    def __init__(
        self, task_context: TaskContext, semantics: Semantics, partition_times: list[int], limits: Limits
    ) -> None:
        self.partition_times = partition_times
        self.stream_queue = task_context.schedules.queues[PunctuationType.STREAM_TIME]
        self._wall_queue = task_context.schedules.queues[PunctuationType.WALL_CLOCK_TIME]
        self._task_context = task_context
        self._punctuations = Punctuations(limits, task_context)
        self.adopt(semantics)

    def adopt(self, semantics: Semantics) -> None:
        """Advance the clocks by these semantics from now on."""
        self._glides = semantics.wall_clock is WallClock.STREAM_TIME
        self.is_lowest = semantics.stream_time is StreamTime.MIN
        """Whether stream time is the lowest partition time of all topics. A record may then be ahead of stream time."""

    def take(self, rank: int, timestamp: int) -> None:
        """Advance both clocks to a topic's new highest timestamp. ``rank`` is the topic's index in the topology."""
        task_context = self._task_context
        # This is called for nearly every record of an ordered log, so the usual case needs no further call.
        if UNKNOWN < task_context.wall_clock_ms <= timestamp < self._wall_queue.next_due_ms and self._glides:
            task_context.wall_clock_ms = timestamp
        else:
            self.glide(timestamp)
        self.partition_times[rank] = timestamp
        self.move_stream_time(min(self.partition_times) if self.is_lowest else timestamp)

    def move_stream_time(self, reached: int) -> None:
        """Advance stream time to ``reached``. A lower value changes nothing."""
        task_context = self._task_context
        if reached <= task_context.stream_time_ms:
            return
        if task_context.stream_time_ms == UNKNOWN:
            task_context.stream_time_ms = reached
            self.stream_queue.clock_became_known(reached)
        task_context.stream_time_ms = reached

    def glide(self, now_ms: int) -> None:
        """Advance the wall clock gradually, if it follows stream time, so that schedules fire at each of their due times (D8)."""
        task_context = self._task_context
        if not self._glides or now_ms <= task_context.wall_clock_ms:
            return
        if task_context.wall_clock_ms == UNKNOWN:
            task_context.wall_clock_ms = now_ms
            task_context.begin_time()
            self._wall_queue.clock_became_known(now_ms)
        # The clock passes every due time on its way, so a schedule fires once for each of them.
        if self._wall_queue.next_due_ms <= now_ms:
            self._wall_queue.fire_each(now_ms, self._punctuate_in_order)
        task_context.wall_clock_ms = max(task_context.wall_clock_ms, now_ms)

    def jump(self, now_ms: int) -> None:
        """Set the wall clock to ``now_ms``, and fire each due schedule once, with the clock as argument (D8, `WallClock.RUN`)."""
        task_context = self._task_context
        if task_context.wall_clock_ms == UNKNOWN:
            self._wall_queue.clock_became_known(now_ms)
        task_context.wall_clock_ms = max(task_context.wall_clock_ms, now_ms)
        # All records have been processed, so the output of a jump comes after the records' output (D8, D21).
        task_context.record_context.order_ms = MAX_MS
        self._wall_queue.fire(task_context.wall_clock_ms, self.punctuate)

    def fire_stream_time(self) -> None:
        """Fire the due stream-time schedules at an epoch's end. Their output comes after the output of the epoch's records."""
        self._task_context.record_context.order_ms = MAX_MS
        self.stream_queue.fire(self._task_context.stream_time_ms, self.punctuate)

    def fire_last(self) -> None:
        """Fire each schedule one last time, with its next due time, at the end of a final run (D18)."""
        self._wall_queue.fire_last(self._punctuate_in_order)
        # Stream-time punctuations at an epoch's end come after the output of all its records.
        self._task_context.record_context.order_ms = MAX_MS
        self.stream_queue.fire_last(self.punctuate)

    def batch_end(self, running_ms: Sequence[int], start: int, limit: int) -> int:
        """Return the end index, at most ``limit``, of a batch that begins at index ``start``.

        A record after which a stream-time schedule may be due is the last of its batch. A record before which a wall-clock
        schedule may be due is the first of the next batch. ``running_ms`` has the records' order keys, which never decrease.
        """
        if self.stream_queue.next_due_ms <= self._task_context.stream_time_ms:
            return start + 1
        # Stream-time schedules fire after the record that makes them due, wall-clock schedules before it.
        end = min(limit, bisect_left(running_ms, self.stream_queue.next_due_ms, start, limit) + 1)
        return bisect_left(running_ms, self._wall_queue.next_due_ms, start + 1, end) if self._glides else end

    def stream_times(self, rank: int, running_ms: Sequence[int]) -> list[int]:
        """Return the stream time after each of a topic's next records, given their order keys. Does not advance the clock."""
        stream_ms = self._task_context.stream_time_ms
        if self.is_lowest:
            others = min((at_ms for other, at_ms in enumerate(self.partition_times) if other != rank), default=MAX_MS)
            reached = self.partition_times[rank]
            return [max(stream_ms, min(others, max(reached, at_ms))) for at_ms in running_ms]
        below = bisect_left(running_ms, stream_ms)
        return [*([stream_ms] * below), *running_ms[below:]]

    def end_epoch(self) -> None:
        """Reset the count of punctuations."""
        self._punctuations.clear()

    def punctuate(self, schedule: Schedule, now_ms: int) -> None:
        """Call a schedule's method. Raises `LimitError` (71) if this epoch has had too many punctuations."""
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

    def _punctuate_in_order(self, schedule: Schedule, now_ms: int) -> None:
        """Call a schedule's method at the due time ``now_ms``, which is also the order key of its output (D21)."""
        self._task_context.record_context.order_ms = now_ms
        self.punctuate(schedule, now_ms)
