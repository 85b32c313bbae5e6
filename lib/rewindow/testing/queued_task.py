"""A task of the test driver with its input queues."""

from __future__ import annotations

from typing import Any

from rewindow.streams.ordering import Event
from rewindow.streams.record import TopicPartition
from rewindow.streams.topology import SubTopology
from rewindow.testing.local_task import LocalTask
from rewindow.testing.partition_group import InvalidTimestamp, PartitionGroup, Picked


class QueuedTask:
    """A task and its input queues."""

    def __init__(self, local: LocalTask, max_task_idle_ms: int, invalid_timestamp: InvalidTimestamp) -> None:
        self.local = local
        part: SubTopology = local.part
        self._ranks = {source.topic: rank for rank, source in enumerate(part.sources)}
        self._internal = {source.topic for source in part.sources if source.is_internal and not source.is_global}
        self._next_offset = dict.fromkeys(self._ranks, 0)
        partitions = [TopicPartition(topic, local.partition) for topic in self._ranks]
        everywhere = {source.topic for source in part.sources if source.is_global}
        self.group = PartitionGroup(
            partitions,
            max_task_idle_ms=max_task_idle_ms,
            invalid_timestamp=invalid_timestamp,
            not_awaited=[partition for partition in partitions if partition.topic in everywhere],
        )
        for partition in partitions:
            self.group.set_lag(partition, 0)

    @property
    def turn(self) -> tuple[bool, int, int]:
        """When it is the task's turn: first tasks that send to a global table, because its readers order the records.

        Then downstream ones, so that a record passes all repartitions before the next starts.
        """
        part = self.local.part
        return not any(sink.is_global for sink in part.sinks), -part.index, self.local.partition

    def is_internal(self, topic: str) -> bool:
        """Return whether a topic is a repartition topic."""
        return topic in self._internal

    def enqueue(self, topic: str, key: Any, value: Any, timestamp: int) -> None:
        """Put a record into the queue of its topic."""
        offset = self._next_offset[topic]
        self._next_offset[topic] = offset + 1
        self.group.add(TopicPartition(topic, self.local.partition), [(offset, timestamp, key, value)])

    def process(self, picked: Picked) -> None:
        """Process one record."""
        if not picked.is_corrupted:
            order_ms = self.group.partition_times[picked.partition]
            rank = self._ranks[picked.partition.topic]
            event: Event = (order_ms, rank, picked.offset, picked.timestamp, picked.key, picked.value)
            self.local.task.replay((event,))
