"""Replay consecutive records of one topic, one by one or in batches, in variants of the loop of `streams.task`.

Within one topic, order keys never decrease. So the loop over records does not check the order. The stream time after each
record can be computed in advance, so lateness is measured for many records at once.

The steps for each batch:

1. The clocks advance to the first record, which fires due wall-clock punctuations.
2. The end of the batch is determined. The batch ends with the first record at which a stream-time punctuation is due, or before
   the first record at which a wall-clock punctuation is due.
3. The processor handles the batch.
4. For each record, the clocks advance, the records that the processor sent for it pass through the nodes below, and due
   stream-time punctuations fire. These include punctuations that the nodes below schedule in this step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice, repeat
from operator import sub
from typing import Any

from rewindow.errors import InvariantError
from rewindow.streams.batch import Batch, Columns
from rewindow.streams.batch_processor import BatchProcessor
from rewindow.streams.clocks import Clocks
from rewindow.streams.forwarding import Take
from rewindow.streams.limits import CHECK_EVERY
from rewindow.streams.metrics import PROCESS, RECORD_LATENESS, Metrics
from rewindow.streams.ordering import Rows
from rewindow.streams.processor import Processor
from rewindow.streams.record import MAX_MS, UNKNOWN, make_record
from rewindow.streams.settings import Limits
from rewindow.streams.task_context import TaskContext


class RecordReplay:
    """Passes rows of a task's only topic to the graph, one by one."""

    def __init__(
        self, take: Take, topic: str, clocks: Clocks, task_context: TaskContext, check: Callable[[], None]
    ) -> None:
        """``take`` is the entry function of the topic's source. ``check`` is called every `CHECK_EVERY` records."""
        self._take, self._topic = take, topic
        self._clocks, self._task_context = clocks, task_context
        self._check = check

    def replay(self, rows: Rows) -> None:
        """Process consecutive records. ``rows.running_ms`` must be the records' order keys."""
        # Records of a global table are never late, so their own timestamps serve as stream times.
        is_global = self._clocks.partition_times[0] == MAX_MS
        stream_times = rows.timestamps if is_global else self._clocks.stream_times(0, rows.running_ms)
        records = map(make_record, zip(rows.keys, rows.values, rows.timestamps, repeat(())))
        events = zip(rows.offsets, rows.timestamps, rows.running_ms, records, strict=True)
        for _ in range(0, len(rows.timestamps), CHECK_EVERY):
            self._replay(islice(events, CHECK_EVERY))
            self._check()
        _measure_records(self._task_context.metrics, stream_times, rows.timestamps)

    def _replay(self, events: Iterable[tuple[Any, Any, Any, Any]]) -> None:
        take, topic, clocks, task_context = self._take, self._topic, self._clocks, self._task_context
        record_context, stream_queue = task_context.record_context, clocks.stream_queue
        record_context.topic = topic
        stream_ms, highest_ms = task_context.stream_time_ms, clocks.partition_times[0]
        # The record and its context share one int object as timestamp, which `Forwarding.forward` compares by identity.
        for offset, timestamp, order_ms, record in events:
            # A clock can advance only at a new highest timestamp of the topic.
            if timestamp > highest_ms:
                clocks.take(0, timestamp)
                stream_ms, highest_ms, record_context.topic = task_context.stream_time_ms, timestamp, topic
            record_context.offset, record_context.timestamp, record_context.order_ms = offset, timestamp, order_ms
            take(record)
            if stream_queue.next_due_ms <= stream_ms:
                stream_queue.fire(stream_ms, clocks.punctuate)
                record_context.topic = topic


class BatchReplay:
    """Passes rows of one topic to a batch processor."""

    def __init__(
        self,
        processor: Processor,
        rank: int,
        topic: str,
        clocks: Clocks,
        task_context: TaskContext,
        limits: Limits,
    ) -> None:
        if not isinstance(processor, BatchProcessor):
            raise InvariantError(
                "processor-without-batches", "a {type} takes no batches", type=type(processor).__name__
            )
        self._processor, self._rank, self._topic = processor, rank, topic
        self._clocks, self._task_context = clocks, task_context
        self._most_outputs = limits.outputs_per_record

    def replay(self, rows: Rows) -> None:
        """Process consecutive records. ``rows.running_ms`` must be the records' order keys."""
        rows = rows._replace(keys=_sequence(rows.keys), values=_sequence(rows.values))
        start, count = 0, len(rows.running_ms)
        while start < count:
            start = self._batch(rows, start, min(start + CHECK_EVERY, count))

    def _batch(self, rows: Rows, start: int, limit: int) -> int:
        """Process the batch that begins at index ``start`` and ends at index ``limit`` or before. Return its end index."""
        clocks, task_context = self._clocks, self._task_context
        self._advance(rows, start)
        end = clocks.batch_end(rows.running_ms, start, limit)
        columns = _columns(rows, start, end, clocks.stream_times(self._rank, rows.running_ms[start:end]))
        _measure_records(task_context.metrics, columns.stream_times_ms, columns.timestamps, is_lowest=clocks.is_lowest)
        batch = self._processor.context.batch(self._topic, columns)
        record_context = task_context.record_context
        self._enter(rows, start)
        record_context.last_offset = rows.offsets[end - 1]
        self._processor.run(batch)
        record_context.last_offset = UNKNOWN
        sink = self._processor.context.sink
        if batch.at and (sink is None or batch.to or len(batch.at) > self._most_outputs):
            self._deliver(batch, rows, start, end)
            return end
        self._advance_to(rows, end - 1)
        if batch.at and sink is not None:
            records = [record for _, record, _ in batch.outputs()]
            keys, values, timestamps, _ = zip(*records, strict=True)
            sink.process_many(keys, values, timestamps)
        self._fire()
        return end

    def _deliver(self, batch: Batch, rows: Rows, start: int, end: int) -> None:
        """For each record of the batch, pass on the records that it caused."""
        context = self._processor.context
        outputs = batch.outputs()
        index, record, to = next(outputs)
        for position in range(start, end):
            if position > start:
                self._advance(rows, position)
            self._enter(rows, position)
            while start + index == position:
                context.deliver(record, to)
                index, record, to = next(outputs, (UNKNOWN - start, record, to))
            self._fire()

    def _advance(self, rows: Rows, position: int) -> None:
        """Advance the clocks to the record at index ``position``."""
        timestamp = rows.timestamps[position]
        if timestamp == rows.running_ms[position] and timestamp > self._clocks.partition_times[self._rank]:
            self._clocks.take(self._rank, timestamp)

    def _advance_to(self, rows: Rows, position: int) -> None:
        """Advance the clocks over several records at which no punctuation is due, and make the last the current event."""
        running_ms = rows.running_ms[position]
        if running_ms > self._clocks.partition_times[self._rank]:
            self._clocks.take(self._rank, running_ms)
        self._enter(rows, position)

    def _enter(self, rows: Rows, position: int) -> None:
        record_context = self._task_context.record_context
        record_context.topic, record_context.offset = self._topic, rows.offsets[position]
        record_context.timestamp, record_context.order_ms = rows.timestamps[position], rows.running_ms[position]

    def _fire(self) -> None:
        stream_ms = self._task_context.stream_time_ms
        if self._clocks.stream_queue.next_due_ms <= stream_ms:
            self._clocks.stream_queue.fire(stream_ms, self._clocks.punctuate)


def _measure_records(
    metrics: Metrics, stream_times: Sequence[int], timestamps: Sequence[int], *, is_lowest: bool = False
) -> None:
    """Count records and measure their lateness, which is stream time after the record minus the record's timestamp.

    ``is_lowest``: whether stream time is the lowest partition time of several topics. Records may then be ahead of stream
    time, and such records are not late.
    """
    late_ms = list(map(sub, stream_times, timestamps))
    if is_lowest:
        late_ms = [max(milliseconds, 0) for milliseconds in late_ms]
    taken, least_ms = len(late_ms), 0 if 0 in late_ms else min(late_ms)
    metrics.measure("task", "", PROCESS).record_many(taken, taken, 1, 1)
    metrics.measure("task", "", RECORD_LATENESS).record_many(taken, sum(late_ms), least_ms, max(late_ms))


def _columns(rows: Rows, start: int, end: int, stream_times: Sequence[int]) -> Columns:
    keys, values, some = _sequence(rows.keys), _sequence(rows.values), slice(start, end)
    return Columns(keys[some], lambda: values[some], rows.timestamps[some], rows.offsets[some], stream_times)


def _sequence(items: Any) -> Sequence[Any]:
    return items if isinstance(items, Sequence) else list(items)
