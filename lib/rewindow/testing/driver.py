"""`TopologyTestDriver`: pipe records into a topology and read what it sends, one record at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from datetime import timedelta
from typing import Any

from rewindow.errors import ConfigError
from rewindow.streams.dropped_records import Dropped
from rewindow.streams.duration import to_ms
from rewindow.streams.error_policy import check_policies
from rewindow.streams.metrics import add_up, rows_of
from rewindow.streams.nodes import SinkNode
from rewindow.streams.punctuation import Schedule
from rewindow.streams.record import MAX_MS, UNKNOWN, Record, TopicPartition, as_log_row
from rewindow.streams.semantics import Semantics
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.settings import Limits, OnError, Settings
from rewindow.streams.topology import Topology
from rewindow.testing.local_task import Blueprint, LocalTask
from rewindow.testing.partition_group import InvalidTimestamp
from rewindow.testing.queued_task import QueuedTask

Input = tuple[str, Any, Any, int]
"""Topic, key, value, timestamp (epoch ms)."""


class TopologyTestDriver:
    """Runs a topology over records that are given by hand (Kafka's `TopologyTestDriver`, over the real `streams.task`).

    What it simulates: everything that a replay does to a record, by the same code; Kafka's waiting for quiet topics
    (``max_task_idle_ms``, KIP-353); stream time, wall clock, watermarks, epochs, checkpoints; several partitions, with
    the records of a repartition crossing to the partition of their key.

    What it does not: landings, Spark, Delta, typed columns. A record is processed when it is piped, as in a live
    application, so records of several topics come in the order of the calls; a replay orders the whole epoch first
    (L1) and the records of a repartition too (D21). Pipe several at once with `pipe_all` to see them ordered.
    The wall clock stands still until `advance_wall_clock` makes it jump (D8), unless the semantics say that it follows
    the records.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        wall_clock_ms: int = 0,
        semantics: Semantics | None = None,
        max_task_idle_ms: int = 0,
        partitions: int = 1,
        invalid_timestamp: InvalidTimestamp = InvalidTimestamp.FAIL,
        on_error: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Begin with empty stores and initialise all processors.

        ``wall_clock_ms`` is what the clock shows at first; with ``Semantics(wall_clock="stream_time")`` it is unknown
        until the first record. ``max_task_idle_ms``: -1 takes whatever is there, 0 too as nothing ever lags here, a
        larger one waits for topics without records until the clock was advanced by that much. ``semantics`` is what a
        job's file says, as in ``Semantics(stream_time_from="watermark", wall_clock="run")``: all from `rewindow.testing`.
        ``on_error`` and ``limits`` too are what the job's file says; `dropped` tells what was quarantined.
        Raises what a processor's ``init`` raises, and `TopologyError` for a topology that cannot work.
        """
        self._semantics = semantics or Semantics(wall_clock="run")
        self._blueprint = Blueprint.of(topology, self._semantics, _settings(topology, on_error, limits))
        self._partitions = partitions
        self._now_ms = wall_clock_ms
        self._watermark_ms = UNKNOWN
        self._is_finished = False
        self._epochs = 0
        self._sent: list[tuple[str, Record]] = []
        sinks = [sink for part in self._blueprint.parts for sink in part.sinks]
        self._outputs = {sink.topic for sink in sinks if not sink.is_internal}
        self._seats: list[QueuedTask] = []
        self._reader: dict[TopicPartition, QueuedTask] = {}
        self._past_metrics: list[dict[str, Any]] = []
        self._dropped: list[Dropped] = []
        is_run_clock = self._semantics.wall_clock == "run"
        for part in self._blueprint.parts:
            for partition in range(partitions):
                task = LocalTask(
                    self._blueprint,
                    part,
                    partition,
                    deliver=self._deliver,
                    wall_clock_ms=wall_clock_ms if is_run_clock else UNKNOWN,
                    dropped=self._dropped.append,
                )
                self._take_queued(QueuedTask(task, max_task_idle_ms, invalid_timestamp))
        self._downstream_first = sorted(
            self._seats, key=lambda queued: (-queued.local.part.index, queued.local.partition)
        )
        for queued in self._seats:
            queued.local.task.replay(())
        self._work_off()

    def pipe(self, topic: str, key: Any, value: Any, timestamp: int) -> None:
        """Give one record and process what can be processed. Raises `DataError` if the topology fails at it."""
        self.pipe_all([(topic, key, value, timestamp)])

    def pipe_all(self, records: Iterable[Input]) -> None:
        """Give several records ``(topic, key, value, timestamp)`` at once, then process them in the order of L1.

        A named tuple is a row, as of a log of several columns: it has the fields of its class and nothing else of it.
        Raises `ConfigError` for a topic that is not read and for a timestamp that is no int, and what `pipe` raises.
        """
        self._check_open()
        for topic, key, value, timestamp in records:
            if topic not in self._blueprint.logs:
                message = f"the topology does not read {topic!r} (it reads {', '.join(self._blueprint.logs)})"
                raise ConfigError(message)
            if timestamp.__class__ is not int:
                message = f"the timestamp {timestamp!r} of a record for {topic!r} is no int of epoch milliseconds"
                raise ConfigError(message)
            row = as_log_row(key), as_log_row(value)
            self._reader[TopicPartition(topic, self._partition_of(key))].enqueue(topic, *row, timestamp)
        self._work_off()

    def advance_wall_clock(self, by: str | int | timedelta) -> None:
        """Let the wall clock jump: each schedule that is due fires once (D5, D8); then what waited may be processed."""
        self._check_open()
        clocks = [queued.local.task.task_context.wall_clock_ms for queued in self._seats]
        self._now_ms = max(self._now_ms, *clocks) + to_ms(by)
        for queued in self._seats:
            queued.local.task.advance_wall_clock(self._now_ms)
        self._work_off()

    def advance_watermark(self, watermark_ms: int) -> None:
        """End the epoch, complete through a timestamp: nothing up to it is waited for any more (D16, D22).

        Raises `ConfigError` if the watermark would fall.
        """
        self._check_open()
        if watermark_ms < self._watermark_ms:
            message = f"the watermark is {self._watermark_ms} already and cannot fall to {watermark_ms}"
            raise ConfigError(message)
        self._watermark_ms = watermark_ms
        self._end_epoch(watermark_ms, released_ms=watermark_ms)

    def finish(self) -> None:
        """Say that nothing ever comes any more (`run --final`, D18): schedules fire a last time, windows close."""
        self._check_open()
        self._end_epoch(self._watermark_ms, released_ms=MAX_MS, is_final=True)
        self._is_finished = True

    def cut(self) -> None:
        """End the epoch and the run: write every task's checkpoint, throw the tasks away, restore new ones from it.

        By L2 this changes nothing that can be seen, unless a processor keeps in its fields what belongs in a store.
        """
        self._check_open()
        self._end_epoch(UNKNOWN, released_ms=UNKNOWN)
        for queued in self._seats:
            self._past_metrics += queued.local.task.metrics_rows
            queued.local.checkpoint()
            queued.local.restart()

    def read(self, topic: str) -> list[Record]:
        """Take what was sent to a topic and not read yet. Raises `ConfigError` for a topic that is never written."""
        if topic not in self._outputs:
            message = f"the topology does not write {topic!r} (it writes {', '.join(self.outputs)})"
            raise ConfigError(message)
        records = [record for sent_to, record in self._sent if sent_to == topic]
        self._sent = [sent for sent in self._sent if sent[0] != topic]
        return records

    def read_all(self) -> list[tuple[str, Record]]:
        """Take what was sent and not read yet, of all topics in the order of sending, as ``(topic, record)``."""
        sent, self._sent = self._sent, []
        return sent

    def store(self, name: str) -> dict[Any, Any]:
        """Return a store's keys and values, of all partitions. Raises `ConfigError` for an unknown store."""
        tasks = [queued.local.task for queued in self._seats if name in queued.local.task.stores]
        if not tasks:
            message = f"there is no store {name!r} (stores: {', '.join(self.store_names) or 'none'})"
            raise ConfigError(message)
        return {key: value for task in tasks for key, value in task.stores[name].contents()}

    def checkpoints(self) -> list[str]:
        """Return every task's checkpoint as text, upstream first: equal texts are equal states."""
        return [queued.local.checkpoint() for queued in self._seats]

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """What was counted since the beginning, as in the metrics table: one dictionary a measure."""
        rows = [*self._past_metrics]
        for queued in self._seats:
            rows += [*queued.local.task.metrics_rows, *queued.group.metrics.as_rows()]
        return rows_of(add_up(rows))

    @property
    def dropped(self) -> list[Dropped]:
        """The records that went no further since the beginning: what the quarantine gets where a job asks for it."""
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
        """The schedules that will fire, task by task in the order of their registration."""
        return [schedule for queued in self._seats for schedule in queued.local.task.task_context.schedules]

    @property
    def wall_clock_ms(self) -> int:
        """What the wall clock of the test shows."""
        return self._now_ms

    @property
    def ties(self) -> int:
        """How many records were taken before another of the same timestamp only because their topic stands first."""
        return sum(queued.group.ties for queued in self._seats)

    def _take_queued(self, queued: QueuedTask) -> None:
        self._seats.append(queued)
        for partition in queued.group.partition_times:
            self._reader[partition] = queued

    def _deliver(self, sink: SinkNode, partition: int, record: Record, order_ms: int, number: int) -> None:
        del partition, order_ms, number
        timestamp = record.timestamp
        key, value = self._blueprint.crossed(sink, record)
        if not sink.is_internal:
            self._sent.append((sink.topic, deepcopy(record)))  # whoever sent it may go on changing it
            return
        to = TopicPartition(sink.topic, self._partition_of(key))
        self._reader[to].enqueue(sink.topic, key, value, timestamp)

    def _work_off(self) -> None:
        """Process whatever is ready, downstream first: a record crosses all repartitions before the next is taken."""
        while any(self._step(queued) for queued in self._downstream_first):
            pass

    def _step(self, queued: QueuedTask) -> bool:
        if not queued.group.buffered() or not queued.group.is_ready(self._now_ms):
            return False
        picked = queued.group.pick()
        if picked is not None:
            queued.process(picked)
        return True

    def _end_epoch(self, watermark_ms: int, *, released_ms: int, is_final: bool = False) -> None:
        if watermark_ms != UNKNOWN or is_final:
            self._epochs += 1  # a cut is none: it shall not be seen
        for queued in self._seats:
            released = {p: released_ms for p in queued.group.partition_times if not queued.is_internal(p.topic)}
            while released_ms != UNKNOWN and (picked := queued.group.pick(released)) is not None:
                queued.process(picked)
            queued.local.task.end_epoch(watermark_ms, is_final=is_final, number=self._epochs)

    def _partition_of(self, key: Any) -> int:
        return 0 if key is None else partition_of(key, self._partitions)

    def _check_open(self) -> None:
        if self._is_finished:
            message = "finish() said that nothing comes any more: make a new driver"
            raise ConfigError(message)


def _settings(topology: Topology, on_error: Mapping[str, str] | None, limits: Limits | None) -> Settings:
    policies = {node: OnError.parse(policy) for node, policy in (on_error or {}).items()}
    check_policies(topology, policies)
    return Settings(policies, limits or Limits())
