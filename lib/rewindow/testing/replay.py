"""A replay in memory. It makes outputs and checkpoints from epochs, in the order of a real run but without files.

As in a run, each sub-topology processes all epochs, task by task, before the next sub-topology starts. Records that a
sub-topology sends through a repartition become an internal log (D21).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from rewindow.streams.metrics import Measure, add_up
from rewindow.streams.nodes import SinkNode, SourceNode, partition_for
from rewindow.streams.ordering import Emission, Rows, events, internal_log, merge, rows_from, rows_of
from rewindow.streams.record import UNKNOWN, Record
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.settings import Semantics, Settings
from rewindow.streams.task import Task
from rewindow.streams.task_context import Dropped
from rewindow.streams.topology import Topology
from rewindow.testing.local_task import Blueprint, LocalTask


@dataclass(frozen=True, slots=True)
class Epoch:
    """The records that a landing releases, as ``(topic, key, value, timestamp)`` in offset order, and a watermark."""

    records: tuple[tuple[str, Any, Any, int], ...] = ()
    watermark_ms: int = UNKNOWN
    is_final: bool = False


class Sent(NamedTuple):
    """A row of an output: its topic, partition and offset, the epoch that produced it, and the record."""

    topic: str
    partition: int
    offset: int
    epoch: int
    record: Record


class LocalReplay:
    """A branch in memory. Each call of `run` continues after the last one."""

    def __init__(
        self,
        topology: Topology,
        *,
        partitions: int = 1,
        semantics: Semantics | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Start with empty stores. Raises `TopologyError` for an invalid topology."""
        self._blueprint = Blueprint.of(topology, semantics or Semantics(), settings)
        self._partitions = partitions
        self._dropped: list[Dropped] = []
        self._tasks = {
            (part.index, partition): LocalTask(
                self._blueprint, part, partition, deliver=self._deliver, dropped=self._dropped.append
            )
            for part in self._blueprint.parts
            for partition in range(partitions)
        }
        self._epochs_taken = 0
        self._epoch = 0
        self._next_offsets: dict[tuple[str, int], int] = {}
        self._internal: dict[tuple[str, int, int], list[Emission]] = {}
        self._sent: list[Sent] = []
        self._past_metrics: list[dict[str, Any]] = []

    def run(
        self,
        epochs: Sequence[Epoch],
        *,
        wall_clock_ms: int = UNKNOWN,
        restarts: bool = True,
        batch: int | None = None,
        backwards: bool = False,
    ) -> None:
        """Replay epochs, then checkpoint, discard and restore every task.

        ``wall_clock_ms`` is the time to which the clock jumps after the records (D8, ``run``).

        The other parameters must not change the result. With ``restarts=False``, the tasks are kept instead of restored.
        ``batch``: the maximum number of records that a task, and so a `BatchProcessor`, gets at once. ``backwards``: run the
        tasks of each sub-topology in reverse order.
        """
        logs = [self._by_partition(epoch) for epoch in epochs]
        order = sorted(self._tasks, key=lambda index: (index[0], -index[1] if backwards else index[1]))
        for sub_topology, partition in order:
            self._run_task(sub_topology, partition, epochs, logs, wall_clock_ms, batch)
        self._epochs_taken += len(epochs)
        self._internal.clear()
        if restarts:
            for local in self._tasks.values():
                self._past_metrics += local.task.metrics_rows
                local.checkpoint()
                local.restart()

    @property
    def sent(self) -> list[Sent]:
        """All rows of all outputs, by topic, partition and offset."""
        return sorted(self._sent, key=lambda sent: sent[:3])

    @property
    def dropped(self) -> list[Dropped]:
        """The dropped records, sorted by source, node and reason."""
        return sorted(self._dropped, key=lambda one: (one.at.topic or "", *one[0][1:], one.node, one.reason))

    @property
    def metrics(self) -> dict[tuple[str, str, str, str], tuple[int, int, int | None, int | None]]:
        """Count, total, minimum and maximum of each metric over the branch, by (level, node, name, reason)."""
        rows = [*self._past_metrics]
        for local in self._tasks.values():
            rows += local.task.metrics_rows
        return {key: _numbers(measure) for key, measure in sorted(add_up(rows).items())}

    def checkpoints(self) -> dict[tuple[int, int], str]:
        """Return every task's checkpoint as text, by sub-topology and partition. Equal texts mean equal states."""
        return {index: local.checkpoint() for index, local in self._tasks.items()}

    def task(self, sub_topology: int, partition: int) -> Task:
        """Return a live task, for inspection by a test."""
        return self._tasks[sub_topology, partition].task

    def _run_task(
        self,
        sub_topology: int,
        partition: int,
        epochs: Sequence[Epoch],
        logs: Sequence[dict[tuple[str, int], list[tuple[int, int, Any, Any]]]],
        wall_clock_ms: int,
        batch: int | None,
    ) -> None:
        local = self._tasks[sub_topology, partition]
        for number, (epoch, rows) in enumerate(zip(epochs, logs, strict=True), start=self._epochs_taken):
            self._epoch = number
            topics = [[rows_of(self._rows(source, local, rows))] for source in local.part.sources]
            for topics_at_once in _batches(topics, batch):
                local.task.replay_rows(topics_at_once)
            if wall_clock_ms != UNKNOWN and epoch is epochs[-1]:
                local.task.advance_wall_clock(wall_clock_ms)
            local.task.end_epoch(epoch.watermark_ms, is_final=epoch.is_final, number=number + 1)

    def _rows(
        self, source: SourceNode, local: LocalTask, rows: dict[tuple[str, int], list[tuple[int, int, Any, Any]]]
    ) -> Iterable[tuple[int, int, Any, Any]]:
        if not source.is_internal:
            return rows.get((source.topic, local.partition), [])
        sent_to = 0 if source.is_global else local.partition
        emissions = self._internal.get((source.topic, sent_to, self._epoch), [])
        # Several tasks may read one global table, so the task itself knows the next offset that it reads.
        return internal_log(emissions, local.task.offsets[source.topic])

    def _by_partition(self, epoch: Epoch) -> dict[tuple[str, int], list[tuple[int, int, Any, Any]]]:
        rows: dict[tuple[str, int], list[tuple[int, int, Any, Any]]] = {}
        for topic, key, value, timestamp in epoch.records:
            topic_partition = (topic, partition_of(key, self._partitions))
            offset = self._next_offsets.get(topic_partition, 0)
            self._next_offsets[topic_partition] = offset + 1
            rows.setdefault(topic_partition, []).append((offset, timestamp, key, value))
        return rows

    def _deliver(self, sink: SinkNode, partition: int, record: Record, order_ms: int, number: int) -> None:
        key, value = self._blueprint.round_trip(sink, record)
        if not sink.is_internal:
            # The sender may modify its record later.
            self._sent.append(Sent(sink.topic, partition, number, self._epoch, deepcopy(record)))
            return
        emission = Emission(order_ms, partition, number, record.timestamp, key, value)
        to = partition_for(sink, record, self._partitions)
        self._internal.setdefault((sink.topic, to, self._epoch), []).append(emission)


def _batches(topics: Sequence[Sequence[Rows]], size: int | None) -> Iterator[Sequence[Sequence[Rows]]]:
    """Yield the rows of all topics in batches of ``size`` records, in the order of L1.

    If ``size`` is None, yield all rows at once.
    """
    if size is None:
        yield topics
        return
    ordered = merge([events(rank, rows) for rank, rows in enumerate(topics)])
    while batch := list(islice(ordered, size)):
        of_topics = [[event for event in batch if event[1] == rank] for rank in range(len(topics))]
        yield [[rows_from(run)] if run else [] for run in of_topics]


def _numbers(measure: Measure) -> tuple[int, int, int | None, int | None]:
    return measure.count, measure.total, measure.minimum, measure.maximum
