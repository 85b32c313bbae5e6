"""Kafka's partition group: which record a task takes next, and whether it waits for more (KIP-353, KIP-695).

A replay does not need it: with the landings at hand, order is one sort (`streams.ordering`) and waiting is data (D16). It
is here for what sees records one by one: the test driver, and whoever wants to see that the sort is right (L1).

Rules of this file:

1. Of the partitions that hold records, the one whose head has the smallest timestamp is next; ties go to the one that
   stands first in the group. Within a partition the order is that of the offsets.
2. A timestamp is looked at when its record becomes the head. An invalid (negative) one fails, is skipped, or takes the
   partition time, which then covers the records taken so far and not those that wait.
3. A group is ready if every partition holds a record, or has been given up and another holds one. An empty partition
   whose lag is unknown or positive is waited for, however long. One without lag is given up once it was seen empty for
   ``max_task_idle_ms``; the timers run one after the other, since the first partition that is waited for ends the look.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from rewindow.errors import DataError
from rewindow.streams.metrics import ENFORCED_PROCESSING, SKIPPED_RECORDS, Metrics
from rewindow.streams.record import MAX_MS, UNKNOWN, TopicPartition

NEVER_WAIT = -1
"""``max_task_idle_ms``: take whatever is there."""


class InvalidTimestamp(Enum):
    """What a record with a negative timestamp gets."""

    FAIL = "fail"
    SKIP = "skip"
    PARTITION_TIME = "partition_time"


class Picked(NamedTuple):
    """A record that was taken. ``is_corrupted``: a skipped one that only moves the offset on, with timestamp -1."""

    partition: TopicPartition
    offset: int
    timestamp: int
    key: Any
    value: Any
    is_corrupted: bool = False


class PartitionGroup:
    """The queues of one task, in the order that decides ties: topics as in the topology, then partitions."""

    def __init__(
        self,
        partitions: Sequence[TopicPartition],
        *,
        max_task_idle_ms: int = 0,
        invalid_timestamp: InvalidTimestamp = InvalidTimestamp.FAIL,
        metrics: Metrics | None = None,
    ) -> None:
        """Begin empty. ``max_task_idle_ms``: `NEVER_WAIT`, 0 (only known lag is waited for), a limit, or `MAX_MS`."""
        self.metrics = metrics or Metrics()
        self.stream_time_ms = UNKNOWN
        self.ties = 0
        """How often rule 1's second half decided."""
        self._max_idle_ms = max_task_idle_ms
        skipped = self.metrics.measure("task", "", SKIPPED_RECORDS, "invalid-timestamp").record
        self._queues = {partition: _Queue(partition, invalid_timestamp, skipped) for partition in partitions}
        self._lags: dict[TopicPartition, int | None] = {}
        self._deadlines: dict[TopicPartition, int] = {}

    def add(self, partition: TopicPartition, rows: Iterable[tuple[int, int, Any, Any]]) -> None:
        """Put records ``(offset, timestamp, key, value)`` into a partition's queue.

        Raises `DataError` for an invalid timestamp at the head, unless the group skips or replaces them.
        """
        self._queues[partition].add(rows)

    def set_lag(self, partition: TopicPartition, lag: int | None) -> None:
        """Say how many records the log has beyond the queue; None if that is not known."""
        self._lags[partition] = lag

    def set_partition_time(self, partition: TopicPartition, timestamp: int) -> None:
        """Restore a partition time. Stream time is at least the largest of them."""
        self._queues[partition].time_ms = timestamp
        self.stream_time_ms = max(self.stream_time_ms, timestamp)

    def is_ready(self, now_ms: int) -> bool:
        """Say whether the task may take a record now. Asking starts timers, and counts enforced processing (rule 3)."""
        if self._max_idle_ms == NEVER_WAIT:
            return True
        given_up = held = 0
        for partition, queue in self._queues.items():
            if len(queue):
                self._deadlines.pop(partition, None)
                held += 1
            elif self._lags.get(partition) != 0:
                self._deadlines.pop(partition, None)
                return False
            elif now_ms < self._deadlines.setdefault(partition, min(now_ms + self._max_idle_ms, MAX_MS)):
                return False
            else:
                given_up += 1
        if given_up and held:
            self.metrics.measure("task", "", ENFORCED_PROCESSING).record()
        return bool(held)

    def pick(self, released: Mapping[TopicPartition, int] | None = None) -> Picked | None:
        """Take the next record, ready or not; None if there is none.

        ``released`` gives for some partitions the largest timestamp that may be taken; a head above it holds its
        partition back.
        """
        best: _Queue | None = None
        tied = False
        for partition, queue in self._queues.items():
            head = queue.head
            if head is None or (released and head.timestamp > released.get(partition, MAX_MS)):
                continue
            if best is None or best.head is None or head.timestamp < best.head.timestamp:
                best, tied = queue, False
            else:
                tied = tied or head.timestamp == best.head.timestamp
        if best is None:
            return None
        self.ties += tied
        picked = best.take()
        self.stream_time_ms = max(self.stream_time_ms, picked.timestamp)
        return picked

    @property
    def partition_times(self) -> dict[TopicPartition, int]:
        """The largest timestamp taken from each partition, -1 before the first."""
        return {partition: queue.time_ms for partition, queue in self._queues.items()}

    @property
    def all_buffered(self) -> bool:
        """Whether every partition holds a record."""
        return all(len(queue) for queue in self._queues.values())

    def buffered(self, partition: TopicPartition | None = None) -> int:
        """Return the number of records that wait, in all partitions or in one."""
        queues = self._queues.values() if partition is None else (self._queues[partition],)
        return sum(len(queue) for queue in queues)


class _Queue:
    """The records of one partition; the head's timestamp has been looked at, those behind it have not."""

    def __init__(self, partition: TopicPartition, invalid: InvalidTimestamp, skipped: Any) -> None:
        self.head: Picked | None = None
        self.time_ms = UNKNOWN
        self._partition = partition
        self._invalid = invalid
        self._skipped = skipped
        self._behind: deque[tuple[int, int, Any, Any]] = deque()

    def __len__(self) -> int:
        return len(self._behind) + (self.head is not None)

    def add(self, rows: Iterable[tuple[int, int, Any, Any]]) -> None:
        self._behind.extend(rows)
        self._look_at_next()

    def take(self) -> Picked:
        picked, self.head = self.head, None
        assert picked is not None, "a queue without a head is not taken from"
        self.time_ms = max(self.time_ms, picked.timestamp)
        self._look_at_next()
        return picked

    def _look_at_next(self) -> None:
        dropped: Picked | None = None
        while self.head is None and self._behind:
            offset, timestamp, key, value = self._behind.popleft()
            timestamp = self._valid(offset, timestamp)
            if timestamp < 0:
                self._skipped()
                dropped = Picked(self._partition, offset, UNKNOWN, None, None, is_corrupted=True)
            else:
                self.head = Picked(self._partition, offset, timestamp, key, value)
        # Kafka commits offsets of taken records only, so the last skipped one stands in for all of them.
        self.head = self.head or dropped

    def _valid(self, offset: int, timestamp: int) -> int:
        if timestamp >= 0 or self._invalid is InvalidTimestamp.SKIP:
            return timestamp
        if self._invalid is InvalidTimestamp.PARTITION_TIME and self.time_ms != UNKNOWN:
            return self.time_ms
        topic, partition = self._partition
        message = (
            f"{topic} partition {partition} offset {offset} has the timestamp {timestamp}: epoch milliseconds are "
            "never negative. Fix the source, or let the feed skip such records or give them the partition time"
        )
        raise DataError(message)
