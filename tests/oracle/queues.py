"""The queues of a task, as KIP-353 and KIP-695 describe them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.oracle.heap import Queue
from tests.oracle.rules import Rules

NEVER_WAIT, LARGEST = -1, 2**63 - 1


@dataclass
class Waiting:
    """One partition: its buffered records, its partition time, and the lag that the consumer knows."""

    index: int
    policy: str = "fail"
    rows: list[tuple[int, int, Any]] = field(default_factory=list)
    head: tuple[int, int, Any] | None = None
    time: int = -1
    lag: int | None = None
    deadline: int | None = None
    dropped: int = 0

    def look(self) -> None:
        """Find the next head: ``(offset, timestamp, record)``. The timestamp -1 marks a dropped record."""
        last_dropped = None
        while self.head is None and self.rows:
            offset, timestamp, record = self.rows.pop(0)
            if timestamp < 0 and self.policy == "partition_time":
                timestamp = self.time
            if timestamp < 0 and self.policy != "skip":
                message = f"timestamp {timestamp}"
                raise ValueError(message)
            if timestamp < 0:
                last_dropped = (offset, -1, None)
                self.dropped += 1
            else:
                self.head = (offset, timestamp, record)
        self.head = self.head or last_dropped

    def size(self) -> int:
        """Return the number of buffered records."""
        return len(self.rows) + (self.head is not None)


class Queues:
    """The partitions of a task, in the order of the topology."""

    def __init__(
        self, count: int, max_idle: int, rules: Rules, *, lag: int | None = None, policy: str = "fail"
    ) -> None:
        self.partitions = [Waiting(index, policy, lag=lag) for index in range(count)]
        self.stream_time = -1
        self.enforced = 0
        self._max_idle = max_idle
        self._overflows = rules.follow_kafka("D16")
        self._heads: Queue[Waiting] = Queue(
            lambda one: one.head[1] if one.head else LARGEST,
            lambda one: one.index,
            is_java=rules.follow_kafka("L1"),
        )

    def add(self, index: int, rows: list[tuple[int, int, Any]]) -> None:
        """Append rows to a partition."""
        partition = self.partitions[index]
        was_empty = partition.size() == 0
        partition.rows += rows
        partition.look()
        if was_empty and partition.size():
            self._heads.push(partition)

    def size(self) -> int:
        """Return the number of buffered records of all partitions."""
        return sum(partition.size() for partition in self.partitions)

    def is_ready(self, now: int) -> bool:
        """Return whether the task may take a record. Each call may start or clear the timers of empty partitions."""
        if self._max_idle == NEVER_WAIT:
            return True
        given_up = False
        for partition in self.partitions:
            if partition.size():
                partition.deadline = None
                continue
            if partition.lag != 0:
                partition.deadline = None
                return False
            if partition.deadline is None:
                partition.deadline = now + self._max_idle
                if partition.deadline > LARGEST:
                    partition.deadline = partition.deadline - 2**64 if self._overflows else LARGEST
            if now < partition.deadline:
                return False
            given_up = True
        if given_up and self.size():
            self.enforced += 1
        return self.size() > 0

    def take(self) -> tuple[int, int, int, Any] | None:
        """Take the smallest head and return it as ``(index, offset, timestamp, record)``, or None if all are empty."""
        if not self.size():
            return None
        partition = self._heads.pop()
        assert partition.head is not None
        offset, timestamp, record = partition.head
        partition.head = None
        partition.time = max(partition.time, timestamp)
        self.stream_time = max(self.stream_time, timestamp)
        partition.look()
        if partition.size():
            self._heads.push(partition)
        return partition.index, offset, timestamp, record
