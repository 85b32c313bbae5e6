"""`TopologyTestDriver`: pipe records into a topology and read the records that it sends."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from copy import deepcopy
from datetime import timedelta
from typing import Any

from rewindow.errors import ConfigError
from rewindow.streams.duration import to_ms
from rewindow.streams.error_policy import check_policies
from rewindow.streams.metrics import add_up, rows_of
from rewindow.streams.nodes import SinkNode, partition_for
from rewindow.streams.ordering import Event
from rewindow.streams.punctuation import UNALIGNED, Schedule
from rewindow.streams.record import MAX_MS, UNKNOWN, Record, TopicPartition, as_log_row
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.settings import Limits, OnError, Semantics, Settings
from rewindow.streams.task_context import Dropped
from rewindow.streams.topology import SubTopology, Topology
from rewindow.testing.fresh_modules import Build, Rebuilding
from rewindow.testing.local_task import Blueprint, LocalTask
from rewindow.testing.partition_group import InvalidTimestamp, PartitionGroup, Picked

Input = tuple[str, Any, Any, int]
"""(topic, key, value, timestamp in epoch ms)."""


class TopologyTestDriver:
    """Runs a topology over piped records, like Kafka's `TopologyTestDriver`, with the real `streams.task`.

    It simulates everything that a replay does to a record, with the same code: processing; waiting for idle topics
    (``max_task_idle_ms``, KIP-353); stream time, wall clock, watermarks, epochs and checkpoints; several partitions, with
    repartitions.

    It does not simulate landings, Spark, Delta or typed columns. A record is processed when it is piped, as in a live
    application, so records of several topics are processed in the order of the calls. A replay first orders all records of an
    epoch (L1), and so also orders the records of a repartition (D21). `pipe_all` orders the records of one call.

    As in a job, the wall clock follows the records (D8). With ``Semantics(wall_clock="run")`` only `advance_wall_clock` moves it,
    as in Kafka's driver. A `UserWarning` names schedules that do not fire on Kafka's grid (D2).
    """

    def __init__(
        self,
        topology: Topology | Build,
        *,
        wall_clock_ms: int | None = None,
        semantics: Semantics | None = None,
        max_task_idle_ms: int = 0,
        partitions: int = 1,
        invalid_timestamp: InvalidTimestamp = InvalidTimestamp.FAIL,
        on_error: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Start with empty stores and initialise all processors.

        ``topology`` may be the function that builds the topology; then `cut` calls it again, as a new process does.
        ``semantics``, ``on_error`` and ``limits`` mean the same as in a job's file, as in
        ``Semantics(stream_time_from="watermark")``, and have the same defaults. `dropped` returns the quarantined records.
        ``wall_clock_ms`` is the initial wall clock: by default it is 0 with ``Semantics(wall_clock="run")``, otherwise unknown
        until the first record. ``max_task_idle_ms``: -1 and 0 do not wait, because there is no lag here; a larger value waits for
        topics without records until `advance_wall_clock` has advanced the clock by that much. Raises the errors of the
        processors' ``init``, and `TopologyError` for an invalid topology.
        """
        self._semantics = semantics or Semantics()
        self._rebuilding = None
        if not isinstance(topology, Topology):
            self._rebuilding = Rebuilding(topology)
            topology = self._rebuilding.topology
        self._policies = {node: OnError.parse(policy) for node, policy in (on_error or {}).items()}
        self._limits = limits or Limits()
        self._blueprint = self._planned(topology)
        self._partitions = partitions
        self._now_ms = wall_clock_ms or 0
        self._watermark_ms = UNKNOWN
        self._is_finished = False
        self._epochs = 0
        self._sent: list[tuple[str, Record]] = []
        sinks = [sink for part in self._blueprint.parts for sink in part.sinks]
        self._outputs = {sink.topic for sink in sinks if not sink.is_internal}
        self._tasks: list[_QueuedTask] = []
        self._readers: dict[TopicPartition, list[_QueuedTask]] = {}
        self._past_metrics: list[dict[str, Any]] = []
        self._dropped: list[Dropped] = []
        starts_ms = 0 if self._semantics.wall_clock == "run" else UNKNOWN
        for part in self._blueprint.parts:
            for partition in range(partitions):
                task = LocalTask(
                    self._blueprint,
                    part,
                    partition,
                    deliver=self._deliver,
                    wall_clock_ms=starts_ms if wall_clock_ms is None else wall_clock_ms,
                    dropped=self._dropped.append,
                )
                self._add(_QueuedTask(task, max_task_idle_ms, invalid_timestamp))
        self._next_first = sorted(self._tasks, key=lambda queued: queued.turn)
        for queued in self._tasks:
            queued.local.task.replay(())
        self._process_ready()
        self._warned: set[tuple[str, str]] = set()
        self._warn_of_unaligned()

    def pipe(self, topic: str, key: Any, value: Any, timestamp: int) -> None:
        """Pipe one record and process all records that are ready. Raises `DataError` if the topology fails on a record."""
        self.pipe_all([(topic, key, value, timestamp)])

    def pipe_all(self, records: Iterable[Input]) -> None:
        """Pipe several records ``(topic, key, value, timestamp)`` at once, and process them in the order of L1.

        A named tuple becomes a row with its fields, as in a log with several columns. Raises `ConfigError` for an unknown topic
        or a timestamp that is not an int, and the errors of `pipe`.
        """
        self._check_open()
        for topic, key, value, timestamp in records:
            if topic not in self._blueprint.logs:
                raise ConfigError(
                    "driver-topic-not-read",
                    "the topology does not read {topic!r}: pipe into one of {topics}",
                    topic=topic,
                    topics=", ".join(self._blueprint.logs),
                )
            if timestamp.__class__ is not int:
                raise ConfigError(
                    "driver-timestamp-not-int",
                    "the timestamp {timestamp} of a record for {topic!r} is not an int of epoch milliseconds",
                    timestamp=repr(timestamp),
                    topic=topic,
                )
            row = as_log_row(key), as_log_row(value)
            for queued in self._readers[TopicPartition(topic, partition_of(key, self._partitions))]:
                queued.enqueue(topic, *row, timestamp)
        self._process_ready()
        self._warn_of_unaligned()

    def advance_wall_clock(self, by: str | timedelta) -> None:
        """Advance the wall clock. Each due schedule fires once (D5, D8), then records that waited may be processed.

        Raises `ConfigError` for a negative duration.
        """
        self._check_open()
        by_ms = to_ms(by)
        if by_ms < 0:
            raise ConfigError(
                "wall-clock-goes-back",
                "advance_wall_clock({by}): the wall clock never goes back: give 0 or more",
                by=repr(by),
            )
        self._now_ms = self.wall_clock_ms + by_ms
        for queued in self._tasks:
            queued.local.task.advance_wall_clock(self._now_ms)
        self._process_ready()

    def advance_watermark(self, watermark_ms: int) -> None:
        """End the epoch with a watermark. Records up to the watermark no longer wait (D16, D22).

        Raises `ConfigError` if the watermark is below the present one.
        """
        self._check_open()
        if watermark_ms < self._watermark_ms:
            raise ConfigError(
                "watermark-goes-back",
                "the watermark is already {watermark} and cannot fall to {given}",
                watermark=self._watermark_ms,
                given=watermark_ms,
            )
        self._watermark_ms = watermark_ms
        self._end_epoch(watermark_ms, released_ms=watermark_ms)

    def finish(self) -> None:
        """End the input (`run --final`, D18). Schedules fire a last time, and windows close."""
        self._check_open()
        self._end_epoch(self._watermark_ms, released_ms=MAX_MS, is_final=True)
        self._is_finished = True

    def cut(self) -> None:
        """End the epoch and the run: checkpoint every task, discard it, and restore a new task.

        By L2 (cut invariance) this has no visible effect, unless code keeps state outside stores: in a processor's fields, or
        in modules, classes, defaults and closures. State outside processors is lost only if the driver was given a function
        that builds the topology. Then the modules of the function are imported anew, and a `RuntimeWarning` names the variables
        that held state. Raises `ConfigError` if the function cannot be found again, or builds another topology.
        """
        self._check_open()
        self._end_epoch(UNKNOWN, released_ms=UNKNOWN)
        for queued in self._tasks:
            self._past_metrics += queued.local.task.metrics_rows
            queued.local.checkpoint()
        if self._rebuilding is not None:
            self._blueprint = self._planned(self._rebuilding.again())
        for queued in self._tasks:
            queued.local.restart(self._blueprint)

    def read(self, topic: str) -> list[Record]:
        """Return the unread records of a topic and mark them as read. Raises `ConfigError` for an unknown topic."""
        if topic not in self._outputs:
            raise ConfigError(
                "driver-topic-not-written",
                "the topology does not write {topic!r}: read one of {topics}",
                topic=topic,
                topics=", ".join(self.outputs),
            )
        records = [record for sent_to, record in self._sent if sent_to == topic]
        self._sent = [sent for sent in self._sent if sent[0] != topic]
        return records

    def read_all(self) -> list[tuple[str, Record]]:
        """Return all unread records as ``(topic, record)``, in the order of sending, and mark them as read."""
        sent, self._sent = self._sent, []
        return sent

    def store(self, name: str) -> dict[Any, Any]:
        """Return a copy of a store's keys and values from all partitions. Later records do not change the copy.

        Raises `ConfigError` for an unknown store.
        """
        tasks = [queued.local.task for queued in self._tasks if name in queued.local.task.stores]
        if not tasks:
            raise ConfigError(
                "driver-store-unknown",
                "there is no store {store!r} (stores: {stores})",
                store=name,
                stores=", ".join(self.store_names) or "none",
            )
        return {key: value for task in tasks for key, value in task.stores[name].rows()}

    def checkpoints(self) -> list[str]:
        """Return every task's checkpoint as text, upstream tasks first. Equal texts mean equal states."""
        return [queued.local.checkpoint() for queued in self._tasks]

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """All metrics since the start, as in the metrics table: one dictionary per task, node and metric."""
        rows = [*self._past_metrics]
        for queued in self._tasks:
            rows += [*queued.local.task.metrics_rows, *queued.group.metrics.as_rows()]
        return rows_of(add_up(rows))

    @property
    def dropped(self) -> list[Dropped]:
        """The records dropped since the start. A job can put them into the quarantine."""
        return list(self._dropped)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The topics that the topology reads."""
        return tuple(self._blueprint.logs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The topics that the topology writes."""
        return tuple(sorted(self._outputs))

    @property
    def is_finished(self) -> bool:
        """Whether `finish` was called."""
        return self._is_finished

    @property
    def store_names(self) -> tuple[str, ...]:
        """The names of all stores, in the order of the topology."""
        return tuple(builder.name for part in self._blueprint.parts for builder in part.stores)

    @property
    def schedules(self) -> list[Schedule]:
        """The active schedules, by task, and within a task in the order in which they were registered."""
        return [schedule for queued in self._tasks for schedule in queued.local.task.task_context.schedules]

    @property
    def wall_clock_ms(self) -> int:
        """The wall clock of the test (epoch ms): the highest of the driver's clock and the tasks' clocks."""
        return max(self._now_ms, *(queued.local.task.task_context.wall_clock_ms for queued in self._tasks))

    @property
    def ties(self) -> int:
        """How many times the order of topics alone decided which of two records with the same timestamp was processed first."""
        return sum(queued.group.ties for queued in self._tasks)

    def _warn_of_unaligned(self) -> None:
        """Warn once about each schedule whose due times depend on the first record (D2)."""
        new = {(schedule.node, schedule.method): None for schedule in self.schedules if schedule.is_unaligned}
        if unknown := [f"{node}: {method}" for node, method in new if (node, method) not in self._warned]:
            self._warned.update(new)
            warnings.warn(f"{UNALIGNED}: {', '.join(unknown)}", UserWarning, stacklevel=3)

    def _planned(self, topology: Topology) -> Blueprint:
        check_policies(topology, self._policies)
        return Blueprint.of(topology, self._semantics, Settings(self._policies, self._limits))

    def _add(self, queued: _QueuedTask) -> None:
        self._tasks.append(queued)
        for partition in queued.group.partition_times:
            self._readers.setdefault(partition, []).append(queued)

    def _deliver(self, sink: SinkNode, partition: int, record: Record, order_ms: int, number: int) -> None:
        del partition, order_ms, number
        timestamp = record.timestamp
        key, value = self._blueprint.round_trip(sink, record)
        if not sink.is_internal:
            self._sent.append((sink.topic, deepcopy(record)))  # the sender may modify its record later
            return
        to = range(self._partitions) if sink.is_global else (partition_for(sink, record, self._partitions),)
        for reader in to:
            for queued in self._readers[TopicPartition(sink.topic, reader)]:
                queued.enqueue(sink.topic, key, value, timestamp)

    def _process_ready(self) -> None:
        """Process all records that are ready, one at a time. Each time, the first ready task (`_QueuedTask.turn`) is next."""
        while any(self._step(queued) for queued in self._next_first):
            pass

    def _step(self, queued: _QueuedTask) -> bool:
        if not queued.group.buffered() or not queued.group.is_ready(self._now_ms):
            return False
        picked = queued.group.pick()
        if picked is not None:
            queued.process(picked)
        return True

    def _end_epoch(self, watermark_ms: int, *, released_ms: int, is_final: bool = False) -> None:
        if watermark_ms != UNKNOWN or is_final:
            self._epochs += 1  # epochs made by a cut do not count, because a cut must have no visible effect
        for queued in self._tasks:
            released = {p: released_ms for p in queued.group.partition_times if not queued.is_internal(p.topic)}
            while released_ms != UNKNOWN and (picked := queued.group.pick(released)) is not None:
                queued.process(picked)
            queued.local.task.end_epoch(watermark_ms, is_final=is_final, number=self._epochs)

    def _check_open(self) -> None:
        if self._is_finished:
            raise ConfigError(
                "driver-already-finished", "the driver is finished: create a new one, or call finish() later"
            )


class _QueuedTask:
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
        """A sort key: the ready task with the smallest value is next.

        Tasks that send to a global table come first, because the readers of the table order the records. Then downstream tasks
        come first, so that a record passes all repartitions before the next record starts.
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
