"""Kafka's partition group decides which record a task processes next, and whether the task waits for more (KIP-353, KIP-695).

A replay does not need this class, because all landings are known: one sort orders the records (`streams.ordering`), and the
landings record for which partitions the watermark waited (D16). The test driver uses the class to process records one by one,
and tests use it to check the sort (L1).

The rules:

1. The partition whose first record has the smallest timestamp is next. Ties go to the first partition of the group. Within a
   partition, records keep their offset order.
2. A record's timestamp is validated when the record becomes the first of its partition (the head). An invalid (negative)
   timestamp fails, is skipped, or is replaced by the partition time of the records processed so far.
3. A group is ready if each partition either has a record or timed out, and at least one has a record. An empty partition whose
   lag is unknown or positive never times out. An empty partition without lag times out after it has been empty for
   ``max_task_idle_ms``. Timers run one after the other, because the check stops at the first partition to wait for. A task
   never waits for a partition of a global table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from rewindow.errors import DataError
from rewindow.streams.metrics import ENFORCED_PROCESSING, SKIPPED_RECORDS, Metrics
from rewindow.streams.record import MAX_MS, UNKNOWN, TopicPartition

NEVER_WAIT = -1
"""The value of ``max_task_idle_ms`` with which a task never waits."""


class InvalidTimestamp(Enum):
    """What to do with a record with a negative timestamp."""

    FAIL = "fail"
    SKIP = "skip"
    PARTITION_TIME = "partition_time"


class Picked(NamedTuple):
    """A record that `PartitionGroup.pick` removed from the group.

    ``is_corrupted``: the record was skipped. Its timestamp is -1, and it only advances the offset.
    """

    partition: TopicPartition
    offset: int
    timestamp: int
    key: Any
    value: Any
    is_corrupted: bool = False


class PartitionGroup:
    """The queues of a task's partitions. Their order decides ties: by topics as in the topology, then by partition numbers."""

    def __init__(
        self,
        partitions: Sequence[TopicPartition],
        *,
        max_task_idle_ms: int = 0,
        invalid_timestamp: InvalidTimestamp = InvalidTimestamp.FAIL,
        metrics: Metrics | None = None,
        not_awaited: Collection[TopicPartition] = (),
    ) -> None:
        """Start empty. ``max_task_idle_ms``: `NEVER_WAIT`, 0 (wait only for known lag), a duration, or `MAX_MS`.

        ``not_awaited``: the partitions of global tables, for which the task does not wait.
        """
        self.metrics = metrics or Metrics()
        self.stream_time_ms = UNKNOWN
        self.ties = 0
        """How many ties rule 1 has decided."""
        self._max_idle_ms = max_task_idle_ms
        self._not_awaited = not_awaited
        skipped = self.metrics.measure("task", "", SKIPPED_RECORDS, "invalid-timestamp").record
        self._queues = {partition: _Queue(partition, invalid_timestamp, skipped) for partition in partitions}
        self._lags: dict[TopicPartition, int | None] = {}
        self._deadlines: dict[TopicPartition, int] = {}

    def add(self, partition: TopicPartition, rows: Iterable[tuple[int, int, Any, Any]]) -> None:
        """Add records ``(offset, timestamp, key, value)`` to a partition's queue.

        Raises `DataError` for an invalid timestamp at the head, unless the group skips such records or replaces their
        timestamps.
        """
        self._queues[partition].add(rows)

    def set_lag(self, partition: TopicPartition, lag: int | None) -> None:
        """Set how many records of a partition's log are not in the queue yet; None if this is unknown."""
        self._lags[partition] = lag

    def set_partition_time(self, partition: TopicPartition, timestamp: int) -> None:
        """Restore a partition time. Stream time becomes at least as large as this time."""
        self._queues[partition].time_ms = timestamp
        self.stream_time_ms = max(self.stream_time_ms, timestamp)

    def is_ready(self, now_ms: int) -> bool:
        """Return whether the task may process a record now (rule 3). Starts timers, and counts enforced processing."""
        if self._max_idle_ms == NEVER_WAIT:
            return True
        given_up = held = awaited = 0
        for partition, queue in self._queues.items():
            if len(queue):
                self._deadlines.pop(partition, None)
                held += 1
                awaited += partition not in self._not_awaited
            elif partition in self._not_awaited:
                continue
            elif self._lags.get(partition) != 0:
                self._deadlines.pop(partition, None)
                return False
            elif now_ms < self._deadlines.setdefault(partition, min(now_ms + self._max_idle_ms, MAX_MS)):
                return False
            else:
                given_up += 1
        if given_up and awaited:
            self.metrics.measure("task", "", ENFORCED_PROCESSING).record()
        return bool(held)

    def pick(self, released: Mapping[TopicPartition, int] | None = None) -> Picked | None:
        """Remove and return the next record, even if the group is not ready; None if there is no record.

        ``released`` maps partitions to the largest timestamp of a record that may be removed. A head with a larger timestamp
        blocks its partition.
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
        """The largest timestamp removed from each partition so far, -1 before the first record."""
        return {partition: queue.time_ms for partition, queue in self._queues.items()}

    def buffered(self, partition: TopicPartition | None = None) -> int:
        """Return the number of waiting records in a partition, or in all partitions."""
        queues = self._queues.values() if partition is None else (self._queues[partition],)
        return sum(len(queue) for queue in queues)


class _Queue:
    """The records of a partition. Only the timestamp of the first record (the head) has been validated."""

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
        self._advance()

    def take(self) -> Picked:
        picked, self.head = self.head, None
        assert picked is not None, "the queue is empty"
        self.time_ms = max(self.time_ms, picked.timestamp)
        self._advance()
        return picked

    def _advance(self) -> None:
        dropped: Picked | None = None
        while self.head is None and self._behind:
            offset, timestamp, key, value = self._behind.popleft()
            timestamp = self._valid(offset, timestamp)
            if timestamp < 0:
                self._skipped()
                dropped = Picked(self._partition, offset, UNKNOWN, None, None, is_corrupted=True)
            else:
                self.head = Picked(self._partition, offset, timestamp, key, value)
        # Kafka commits only offsets of records that were processed. So the last skipped record becomes the head, and with it
        # all are committed.
        self.head = self.head or dropped

    def _valid(self, offset: int, timestamp: int) -> int:
        if timestamp >= 0 or self._invalid is InvalidTimestamp.SKIP:
            return timestamp
        if self._invalid is InvalidTimestamp.PARTITION_TIME and self.time_ms != UNKNOWN:
            return self.time_ms
        topic, partition = self._partition
        raise DataError(
            "record-timestamp-negative",
            "{topic} partition {partition} offset {offset} has the timestamp {timestamp}, but epoch milliseconds "
            "are never negative. In a run, `invalid_timestamp` of the log decides about such records when they are "
            "landed",
            topic=topic,
            partition=partition,
            offset=offset,
            timestamp=timestamp,
        )
