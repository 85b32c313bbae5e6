"""Replay a job's tasks in memory, and report each output row with its origin.

As in a run, all tasks of a sub-topology replay all epochs before the next sub-topology starts. Nothing is restored and
nothing is written. Only tasks whose records can reach the output's partition are replayed. They have only the nodes that lead
to the output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rewindow.contracts.tasks import Epoch
from rewindow.dsl.operators.table_verbs import TableSource
from rewindow.engine.worker.provenance.origins import Origin
from rewindow.engine.worker.provenance.watcher import OnWrite, Taken, Watcher, watch
from rewindow.errors import DataError
from rewindow.streams.nodes import Node, ProcessorNode, SinkNode, SourceNode, partition_for
from rewindow.streams.ordering import Emission, Event, Rows, events, merge, rows_of
from rewindow.streams.processor import Processor
from rewindow.streams.record import UNKNOWN, Record
from rewindow.streams.serde.schema import Shape
from rewindow.streams.serde.types_to_columns import LogShapes, bind_sink, bound
from rewindow.streams.settings import TaskConfig
from rewindow.streams.sink import Write
from rewindow.streams.task import Task
from rewindow.streams.task_context import Dropped
from rewindow.streams.topology import SubTopology, Topology

ReadLog = Callable[[str, int, int], Iterable[Rows]]
"""A function that yields the rows of an epoch in offset order, given topic, partition and epoch."""


class Sent(NamedTuple):
    """A row that the replay sent to the output, and its origin.

    ``is_released``: whether the row had been waiting in a store, and the cause of its origin only released it.
    """

    epoch: int
    record: Record
    origin: Origin
    is_released: bool
    latest: Origin | None
    """The origin of the record with the highest timestamp so far."""
    schedule: tuple[Origin, ...] = ()
    """The origins of two records: the first record, which started the schedules, and the one at which the schedule last
    fired."""


_Take = Callable[[Sent], None]


class Drop(NamedTuple):
    """A record that the task dropped, with its epoch and its lateness.

    The lateness is how many milliseconds the record's timestamp was below the node's clock, or below the highest earlier
    timestamp.
    """

    dropped: Dropped
    epoch: int
    behind_ms: int


@dataclass(frozen=True)
class Traced:
    """A job's topology, bound to the job's logs, to be replayed for one partition of one output."""

    topology: Topology
    logs: LogShapes
    config: TaskConfig
    partitions: int
    output: str
    partition: int

    @property
    def part(self) -> SubTopology:
        """The sub-topology that writes the output."""
        return next(part for part in self.topology.sub_topologies() if self.sink in part.sinks)

    @property
    def sink(self) -> SinkNode:
        """The output's sink."""
        sinks = (node for node in self.topology.nodes.values() if isinstance(node, SinkNode) and not node.is_internal)
        return next(sink for sink in sinks if sink.topic == self.output)

    @property
    def shapes(self) -> tuple[Shape, Shape]:
        """The columns of the output's key and value."""
        return bind_sink(self.sink, self.logs)

    @property
    def external(self) -> frozenset[str]:
        """The topics of the feed that the topology reads."""
        parts = self.topology.sub_topologies()
        return frozenset(source.topic for part in parts for source in part.sources if not source.is_internal)

    def tasks(self) -> list[tuple[SubTopology, Sequence[int]]]:
        """Return the tasks to replay for the output: pairs (sub-topology, partitions), upstream first.

        Each sub-topology has only the nodes that lead to the output.
        """
        parts, wanted = self.topology.sub_topologies(), {self.part.index: [self.partition]}
        for part in reversed(parts):
            if part.index in wanted:
                topics = {source.topic for source in part.sources if source.is_internal}
                for other in parts[: part.index]:
                    if any(sink.topic in topics for sink in other.sinks):
                        wanted[other.index] = list(range(self.partitions))
        own = [part for part in parts if part.index in wanted]
        topics = {self.output, *(source.topic for part in own for source in part.sources if source.is_internal)}
        return [
            (_leading_to(part, {sink.name for sink in part.sinks if sink.topic in topics}), wanted[part.index])
            for part in own
        ]

    def leads_to_output(self) -> frozenset[str]:
        """Return the names of the nodes that lead to the output and of their stores, in all sub-topologies.

        Any of these nodes and stores may drop records.
        """
        parts = [part for part, _ in self.tasks()]
        nodes = frozenset(node.name for part in parts for node in part.nodes)
        return nodes | {store.name for part in parts for store in part.stores}

    def replay(
        self,
        epochs: Sequence[Epoch],
        read: ReadLog,
        take: _Take,
        drop: Callable[[Drop], None] | None = None,
        on_write: OnWrite | None = None,
        on_task: Callable[[Task], None] | None = None,
    ) -> None:
        """Replay epochs from empty stores; call ``take`` for each row of the output.

        ``drop`` gets each record that is dropped by the task which writes the output. ``on_write`` gets the cause and the
        entry of each write to a store. ``on_task`` gets each task before it begins. Raises `DataError` as a run does.
        """
        internal: dict[tuple[str, int, int], list[tuple[Emission, Origin]]] = {}
        for part, partitions in self.tasks():
            for partition in partitions:
                replay = _TaskReplay(self, part, partition, internal, (take, drop, on_write))
                if on_task is not None:
                    on_task(replay.task)
                replay.run(epochs, read)


def encoded(shapes: tuple[Shape, Shape], record: Record) -> Mapping[str, Any]:
    """Return the values of a record by the column names of the output's row, including ``_timestamp``."""
    columns: dict[str, Any] = {}
    for shape, part in zip(shapes, record[:2], strict=True):
        columns |= zip(shape.names, shape.encode_checked(part), strict=True)
    return columns | {"_timestamp": record.timestamp}


class _TaskReplay:
    """The replay of one task."""

    def __init__(
        self,
        traced: Traced,
        part: SubTopology,
        partition: int,
        internal: dict[tuple[str, int, int], list[tuple[Emission, Origin]]],
        receivers: tuple[_Take, Callable[[Drop], None] | None, OnWrite | None],
    ) -> None:
        take, drop, on_write = receivers
        self._traced, self._part, self._partition = traced, part, partition
        self._internal, self._take, self._drop = internal, take, drop
        self._sources: dict[tuple[str, int], Origin] = {}
        self._watcher = Watcher(part.index, partition, on_write)
        own = part.index == traced.part.index
        settings = replace(traced.config.settings, keeps_dropped=True)
        self.task = Task(
            _with_children(bound(part, traced.logs), traced.topology.sub_topologies()[part.index]),
            partition,
            writers=self._writer,
            config=replace(traced.config, settings=settings),
            dropped=self._dropped if own and drop is not None else None,
        )
        suppliers = [node.supplier for node in part.nodes if isinstance(node, ProcessorNode)]
        tables = {
            supplier.store for supplier in suppliers if isinstance(supplier, TableSource) and not supplier.is_versioned
        }
        watch(self._watcher, self.task, tables)

    def run(self, epochs: Sequence[Epoch], read: ReadLog) -> None:
        """Replay all epochs."""
        task, watcher = self.task, self._watcher
        for epoch in epochs:
            watcher.epoch = epoch.number
            if epoch.semantics is not None:
                task.adopt(epoch.semantics)
            topics = [
                events(rank, self._rows(source, epoch.number, read)) for rank, source in enumerate(self._part.sources)
            ]
            task.replay(self._followed(merge(topics)))
            watcher.event = watcher.source = None
            if epoch.clock_to_ms != UNKNOWN:
                task.advance_wall_clock(epoch.clock_to_ms)
            task.end_epoch(epoch.watermark_ms, is_final=epoch.is_final, number=epoch.number)

    def _followed(self, merged: Iterator[Event]) -> Iterator[Event]:
        topics, watcher, sources = [source.topic for source in self._part.sources], self._watcher, self._sources
        for event in merged:
            order_ms, rank, offset, timestamp, _, _ = event
            taken = Taken(topics[rank], offset, timestamp, order_ms, rank)
            watcher.take(taken, sources.get((topics[rank], offset)))
            yield event

    def _rows(self, source: SourceNode, epoch: int, read: ReadLog) -> Iterable[Rows]:
        if not source.is_internal:
            return read(source.topic, self._partition, epoch)
        sent_to = 0 if source.is_global else self._partition
        sent = sorted(self._internal.get((source.topic, sent_to, epoch), ()), key=lambda row: row[0][:3])
        rows = []
        for offset, (emission, origin) in enumerate(sent, start=self.task.offsets[source.topic]):
            self._sources[source.topic, offset] = origin
            rows.append((offset, emission.timestamp, emission.key, emission.value))
        return [rows_of(rows)]

    def _writer(self, sink: SinkNode) -> Write:
        if sink.is_internal:
            shapes = bind_sink(sink, self._traced.logs)
            return lambda record, order_ms, number: self._pass_on(sink, shapes, record, order_ms, number)
        if sink.topic == self._traced.output:
            return lambda record, _order_ms, _number: self._send(record)
        return lambda _record, _order_ms, _number: None

    def _send(self, record: Record) -> None:
        watcher = self._watcher
        origin, is_released = watcher.sent(record)
        schedule = tuple(
            origin_of_schedule
            for origin_of_schedule in (watcher.first, watcher.fired_before)
            if origin_of_schedule is not None
        )
        self._take(Sent(watcher.epoch, record, origin, is_released, watcher.latest, schedule))

    def _dropped(self, dropped: Dropped) -> None:
        context, event = self.task.task_context, self._watcher.event
        clock_ms = context.node_times.get(dropped.node, context.stream_time_ms)
        clock_ms = max(clock_ms, event.order_ms) if event else clock_ms
        if self._drop is not None:
            self._drop(Drop(dropped, self._watcher.epoch, max(clock_ms - dropped.timestamp, 0)))

    def _pass_on(self, sink: SinkNode, shapes: tuple[Shape, Shape], record: Record, order_ms: int, number: int) -> None:
        """Send a record to another sub-topology. Its key and value are as if they were read from an internal log."""
        try:
            key, value = (
                shape.decode(shape.encode_checked(part)) for shape, part in zip(shapes, record[:2], strict=True)
            )
        except DataError as error:
            error.surrounded(f"topic {sink.topic}: ")
            raise
        emission = Emission(order_ms, self._partition, number, record.timestamp, key, value)
        to = 0 if sink.is_global else partition_for(sink, record, self._traced.partitions)
        origin, _ = self._watcher.sent(record)
        self._internal.setdefault((sink.topic, to, self._watcher.epoch), []).append((emission, origin))


def _leading_to(part: SubTopology, ends: Collection[str]) -> SubTopology:
    """Return a sub-topology with only the nodes ``ends``, the nodes that lead to them, and their stores.

    A node leads to the nodes below it, and to nodes that share a store with it, as a table and its joins do. All sources are
    kept, because their records advance the clocks.
    """
    nodes: set[str] = {*ends, *(source.name for source in part.sources)}
    stores: set[str] = set()
    before = -1
    while before != len(nodes):
        before = len(nodes)
        for node in reversed(part.nodes):
            if node.name in nodes or not stores.isdisjoint(_stores_of(node)):
                nodes |= {node.name, *node.parents}
                stores |= {*_stores_of(node)}
    return replace(
        part,
        nodes=tuple(node for node in part.nodes if node.name in nodes),
        stores=tuple(store for store in part.stores if store.name in stores),
    )


def _with_children(pruned: SubTopology, part: SubTopology) -> SubTopology:
    """Return the result ``pruned`` of `_leading_to` for ``part``, with all children of its processors added.

    The added nodes ignore records. They are needed because a processor may forward to a child by its name.
    """
    names = {node.name for node in pruned.nodes}
    nodes = [
        node if node.name in names else ProcessorNode(node.name, parents, _Ignores)
        for node in part.nodes
        if node.name in names or (parents := tuple(name for name in node.parents if name in names))
    ]
    return replace(pruned, nodes=tuple(nodes))


class _Ignores(Processor):
    """A processor that ignores records."""

    def process(self, record: Record) -> None:
        """Ignore a record."""


def _stores_of(node: Node) -> tuple[str, ...]:
    return node.stores if isinstance(node, ProcessorNode) else ()
