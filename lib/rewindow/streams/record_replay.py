"""Replays the records of a sub-topology's only topic, one by one: the loop of `streams.task`, without the order of topics.

With one topic, an event's order key never falls, and stream time after each record is known in advance. So this loop
checks no order, and how late the records were is measured for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice, repeat
from operator import sub
from typing import Any

from rewindow.streams.clocks import Clocks
from rewindow.streams.forwarding import Take
from rewindow.streams.limits import CHECK_EVERY
from rewindow.streams.metrics import PROCESS, RECORD_LATENESS, Metrics
from rewindow.streams.ordering import Rows
from rewindow.streams.record import MAX_MS, make_record
from rewindow.streams.task_context import TaskContext


class RecordReplay:
    """Passes rows of the only topic to the graph."""

    def __init__(
        self, take: Take, topic: str, clocks: Clocks, task_context: TaskContext, check: Callable[[], None]
    ) -> None:
        """``take`` is the entry function of the topic's source. ``check`` is called now and then (`streams.limits`)."""
        self._take, self._topic = take, topic
        self._clocks, self._task_context = clocks, task_context
        self._check = check

    def replay(self, rows: Rows) -> None:
        """Process consecutive records. ``running_ms`` must have their order keys."""
        is_global = self._clocks.partition_times[0] == MAX_MS  # then its records are never late
        stream_times = rows.timestamps if is_global else self._clocks.stream_times(0, rows.running_ms)
        records = map(make_record, zip(rows.keys, rows.values, rows.timestamps, repeat(())))
        events = zip(rows.offsets, rows.timestamps, rows.running_ms, records, strict=True)
        for _ in range(0, len(rows.timestamps), CHECK_EVERY):
            self._replay(islice(events, CHECK_EVERY))
            self._check()
        measure_records(self._task_context.metrics, stream_times, rows.timestamps)

    def _replay(self, events: Iterable[tuple[Any, Any, Any, Any]]) -> None:
        take, topic, clocks, task_context = self._take, self._topic, self._clocks, self._task_context
        record_context, stream_queue = task_context.record_context, clocks.stream_queue
        record_context.topic = topic
        stream_ms, highest_ms = task_context.stream_time_ms, clocks.partition_times[0]
        # This loop runs for each record. Its timestamp is one object for the record and its context (`Forwarding.forward`).
        for offset, timestamp, order_ms, record in events:
            if timestamp > highest_ms:  # only then can a clock advance
                clocks.take(0, timestamp)
                stream_ms, highest_ms, record_context.topic = task_context.stream_time_ms, timestamp, topic
            record_context.offset, record_context.timestamp, record_context.order_ms = offset, timestamp, order_ms
            take(record)
            if stream_queue.next_due_ms <= stream_ms:
                stream_queue.fire(stream_ms, clocks.punctuate)
                record_context.topic = topic


def measure_records(
    metrics: Metrics, stream_times: Sequence[int], timestamps: Sequence[int], *, is_lowest: bool = False
) -> None:
    """Measure records and how late each was, given stream time after it.

    ``is_lowest``: stream time is the lowest of several topics', so records may be ahead of it. They are not late.
    """
    late_ms = list(map(sub, stream_times, timestamps))
    if is_lowest:
        late_ms = [max(one, 0) for one in late_ms]
    taken, least_ms = len(late_ms), 0 if 0 in late_ms else min(late_ms)
    metrics.measure("task", "", PROCESS).record_many(taken, taken, 1, 1)
    metrics.measure("task", "", RECORD_LATENESS).record_many(taken, sum(late_ms), least_ms, max(late_ms))
