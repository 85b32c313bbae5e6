"""A replay in memory: epochs in, outputs and checkpoints out, in the order of a real run and without files.

Stage by stage (one a sub-topology), task by task, epoch by epoch, as the runner does it: a stage takes all epochs of a
run before the next one starts, and what it sends through a repartition becomes an internal log by the rule of D21.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from rewindow.streams.dropped_records import Dropped
from rewindow.streams.metrics import Measure, add_up
from rewindow.streams.nodes import SinkNode, SourceNode
from rewindow.streams.ordering import Emission, Event, events, internal_log, merge, rows_of
from rewindow.streams.record import UNKNOWN, Record
from rewindow.streams.semantics import Semantics
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.settings import Settings
from rewindow.streams.task import Task
from rewindow.streams.topology import Topology
from rewindow.testing.local_task import Blueprint, LocalTask


@dataclass(frozen=True, slots=True)
class Epoch:
    """What a landing releases: ``(topic, key, value, timestamp)`` in the order of their offsets, and a watermark."""

    records: tuple[tuple[str, Any, Any, int], ...] = ()
    watermark_ms: int = UNKNOWN
    is_final: bool = False


class Sent(NamedTuple):
    """A row of an output table: where it was sent, its offset there, the epoch that made it."""

    topic: str
    partition: int
    offset: int
    epoch: int
    record: Record


class LocalReplay:
    """A branch in memory: each `run` goes on where the last one ended."""

    def __init__(
        self,
        topology: Topology,
        *,
        partitions: int = 1,
        semantics: Semantics | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Begin with empty stores. Raises `TopologyError` for a topology that cannot work."""
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
        """Replay some epochs; at the end every task is checkpointed, thrown away and restored.

        ``wall_clock_ms``: where the clock jumps when the records are done (D8, ``run``). What must make no difference
        can be varied: without ``restarts`` the tasks live on, ``batch`` records are given to a task at once, and
        ``backwards`` takes the tasks of each stage in the opposite order.
        """
        logs = [self._by_partition(epoch) for epoch in epochs]
        order = sorted(self._tasks, key=lambda place: (place[0], -place[1] if backwards else place[1]))
        for place in order:
            self._run_task(place, epochs, logs, wall_clock_ms, batch)
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
        """The records that went no further, by source, node and reason."""
        return sorted(self._dropped, key=lambda one: (one.at.topic or "", *one[0][1:], one.node, one.reason))

    @property
    def metrics(self) -> dict[tuple[str, str, str, str], tuple[int, int, int | None, int | None]]:
        """Count, total, minimum and maximum of each measure over the branch, by level, node, name and reason."""
        rows = [*self._past_metrics]
        for local in self._tasks.values():
            rows += local.task.metrics_rows
        return {key: _numbers(measure) for key, measure in sorted(add_up(rows).items())}

    def checkpoints(self) -> dict[tuple[int, int], str]:
        """Return every task's checkpoint as text by stage and partition; equal texts are equal states."""
        return {place: local.checkpoint() for place, local in self._tasks.items()}

    def task(self, stage: int, partition: int) -> Task:
        """Return a live task, to look at."""
        return self._tasks[stage, partition].task

    def _run_task(
        self,
        place: tuple[int, int],
        epochs: Sequence[Epoch],
        logs: Sequence[dict[tuple[str, int], list[tuple[int, int, Any, Any]]]],
        wall_clock_ms: int,
        batch: int | None,
    ) -> None:
        local = self._tasks[place]
        for number, (epoch, rows) in enumerate(zip(epochs, logs, strict=True), start=self._epochs_taken):
            self._epoch = number
            topics = [
                events(rank, [rows_of(self._rows(source, place[1], rows))])
                for rank, source in enumerate(local.part.sources)
            ]
            for events_at_once in _batches(merge(topics), batch):
                local.task.replay(events_at_once)
            if wall_clock_ms != UNKNOWN and epoch is epochs[-1]:
                local.task.advance_wall_clock(wall_clock_ms)
            local.task.end_epoch(epoch.watermark_ms, is_final=epoch.is_final, number=number + 1)

    def _rows(
        self, source: SourceNode, partition: int, rows: dict[tuple[str, int], list[tuple[int, int, Any, Any]]]
    ) -> Iterable[tuple[int, int, Any, Any]]:
        if not source.is_internal:
            return rows.get((source.topic, partition), [])
        emissions = self._internal.get((source.topic, partition, self._epoch), [])
        first = self._next_offsets.get((source.topic, partition), 0)
        self._next_offsets[source.topic, partition] = first + len(emissions)
        return internal_log(emissions, first)

    def _by_partition(self, epoch: Epoch) -> dict[tuple[str, int], list[tuple[int, int, Any, Any]]]:
        rows: dict[tuple[str, int], list[tuple[int, int, Any, Any]]] = {}
        for topic, key, value, timestamp in epoch.records:
            place = (topic, self._partition_of(key))
            offset = self._next_offsets.get(place, 0)
            self._next_offsets[place] = offset + 1
            rows.setdefault(place, []).append((offset, timestamp, key, value))
        return rows

    def _deliver(self, sink: SinkNode, partition: int, record: Record, order_ms: int, number: int) -> None:
        key, value = self._blueprint.crossed(sink, record)
        if not sink.is_internal:
            # Whoever sent it may go on changing it.
            self._sent.append(Sent(sink.topic, partition, number, self._epoch, deepcopy(record)))
            return
        emission = Emission(order_ms, partition, number, record.timestamp, key, value)
        self._internal.setdefault((sink.topic, self._partition_of(key), self._epoch), []).append(emission)

    def _partition_of(self, key: Any) -> int:
        return 0 if key is None else partition_of(key, self._partitions)


def _batches(ordered: Iterator[Event], size: int | None) -> Iterator[Iterable[Event]]:
    if size is None:
        yield ordered
        return
    while batch := list(islice(ordered, size)):
        yield batch


def _numbers(measure: Measure) -> tuple[int, int, int | None, int | None]:
    return measure.count, measure.total, measure.minimum, measure.maximum
