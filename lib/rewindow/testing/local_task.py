"""A real task whose checkpoint is kept in memory as text, instead of in files and tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rewindow.errors import DataError
from rewindow.streams.checkpoint import Checkpoint, TaskState
from rewindow.streams.nodes import SinkNode
from rewindow.streams.record import UNKNOWN, Record
from rewindow.streams.serde.canonical_json import dump_value, load_value
from rewindow.streams.serde.schema import OUTPUT_META, coerce, scalar_shape
from rewindow.streams.serde.types_to_columns import LogShapes, bind_sink, bind_store, bound
from rewindow.streams.settings import Semantics, Settings, TaskConfig
from rewindow.streams.sink import Write
from rewindow.streams.state.spill import Disk, OpenSpill, Span, SpilledRow
from rewindow.streams.task import Task
from rewindow.streams.task_context import Drop
from rewindow.streams.topology import SubTopology, Topology
from rewindow.streams.zoned_topology import with_clocks, zones_of

_Deliver = Callable[[SinkNode, int, Record, int, int], None]
"""Called with a sink, the task's partition, the record, its order key in the epoch (D21) and its number in the topic."""


@dataclass(frozen=True, slots=True)
class Blueprint:
    """Values that all tasks of a topology share and that are computed once."""

    topology: Topology
    parts: tuple[SubTopology, ...]
    logs: LogShapes
    sinks: LogShapes
    """For each topic, the shapes of the key and value that its sink writes."""
    config: TaskConfig

    @classmethod
    def of(cls, topology: Topology, semantics: Semantics, settings: Settings | None = None) -> Blueprint:
        """Analyse a topology. The logs have no typed columns here, so checkpoints have their keys and values as JSON text."""
        if zones := zones_of(topology):
            from rewindow.storage.zone_data import read_zones  # noqa: PLC0415 - few jobs have windows in local time

            topology = with_clocks(topology, read_zones(zones))
        parts = topology.sub_topologies()
        topics = [source.topic for part in parts for source in part.sources if not source.is_internal]
        logs = {topic: (scalar_shape("key", "json"), scalar_shape("value", "json")) for topic in topics}
        sinks = {sink.topic: bind_sink(sink, logs) for part in parts for sink in part.sinks}
        config = TaskConfig("", semantics, settings or Settings(), topology.watermark_lags())
        return cls(topology, parts, logs, sinks, config)

    def round_trip(self, sink: SinkNode, record: Record) -> tuple[Any, Any]:
        """Return a record's key and value as a reader of the sink's table gets them.

        As in a real run, raises `DataError`, which names the topic, for values that do not fit the columns.
        """
        shapes = self.sinks[sink.topic]
        try:
            coerce(record.timestamp, OUTPUT_META[0])
            rows = [shape.encode_checked(item) for shape, item in zip(shapes, (record.key, record.value), strict=True)]
        except DataError as error:
            error.surrounded(f"topic {sink.topic}: ")
            raise
        key, value = (shape.decode(load_value(dump_value(row))) for shape, row in zip(shapes, rows, strict=True))
        return key, value


class MemorySpill:
    """A `streams.state.spill.Spill` in memory.

    ``writes`` counts all rows ever written, so that tests see that a store spilled.
    """

    writes = 0

    def __init__(self, store: str) -> None:
        self.store = store
        self._rows: list[dict[bytes, SpilledRow]] = [{}]

    def get(self, key: bytes) -> tuple[str, int] | None:
        """See `Spill`."""
        found = self._rows[0].get(key)
        return None if found is None else found[1:3]

    def write(self, rows: Iterable[SpilledRow]) -> None:
        """See `Spill`."""
        for row in rows:
            MemorySpill.writes += 1
            self._rows[0][row[0]] = row

    def delete(self, keys: Iterable[bytes]) -> None:
        """See `Spill`."""
        for key in keys:
            self._rows[0].pop(key, None)

    def page(self, span: Span, count: int, *, since: int = 0, snapshot: int = 0) -> list[SpilledRow]:
        """See `Spill`."""
        return [row for row in self._within(span, snapshot) if row[2] >= since][:count]

    def count(self, span: Span, since: int = 0) -> int:
        """See `Spill`."""
        return sum(row[2] >= since if since else not row[2] & 2 for row in self._within(span))

    def take_snapshot(self, span: Span) -> int:
        """See `Spill`."""
        self._rows.append({row[0]: (*row[:3], None) for row in self._within(span)})
        return len(self._rows) - 1

    def delete_span(self, span: Span) -> None:
        """See `Spill`."""
        self.delete([row[0] for row in self._within(span)])

    def due(self, until_ms: int, count: int, after: tuple[int, bytes] = (-1, b"")) -> list[SpilledRow]:
        """See `Spill`."""
        return [row for position, row in self._due(until_ms) if position > after][:count]

    def count_due(self, until_ms: int) -> int:
        """See `Spill`."""
        return len(self._due(until_ms))

    def delete_due(self, until_ms: int) -> None:
        """See `Spill`."""
        self.delete([key for (_, key), _ in self._due(until_ms)])

    def _due(self, until_ms: int) -> list[tuple[tuple[int, bytes], SpilledRow]]:
        rows = self._rows[0].values()
        return sorted(((row[3], row[0]), row) for row in rows if row[3] is not None and row[3] <= until_ms)

    def _within(self, span: Span, snapshot: int = 0) -> list[SpilledRow]:
        after, until = span
        return [
            row
            for key, row in sorted(self._rows[snapshot].items())
            if (after is None or key > after) and (until is None or key < until)
        ]


class LocalTask:
    """A task whose checkpoint is kept in memory."""

    def __init__(
        self,
        blueprint: Blueprint,
        part: SubTopology,
        partition: int,
        *,
        deliver: _Deliver,
        wall_clock_ms: int = UNKNOWN,
        dropped: Drop | None = None,
        spill: OpenSpill = MemorySpill,
        is_bound: bool = False,
    ) -> None:
        """Start a task. ``wall_clock_ms`` is the initial wall clock.

        ``is_bound``: whether stores spill when they exceed ``store_memory``, as they do in a run.
        """
        self._adopt(blueprint, part)
        self.partition = partition
        self._deliver = deliver
        self._dropped = dropped
        self._disk = Disk(spill, blueprint.config.settings.limits.store_memory if is_bound else None)
        self._changelogs: dict[str, dict[str, str]] = {name: {} for name in self._shapes}
        self._state = json.dumps(TaskState(wall_clock_ms=wall_clock_ms).as_json())
        self.task = self._restored()

    def checkpoint(self) -> str:
        """Add the changes since the last checkpoint to the checkpoint, and return it as text. Equal states give equal texts."""
        for name, store in self.task.stores.items():
            key_shape, value_shape = self._shapes[name]
            rows = self._changelogs[name]
            for key, value in store.take_changes():
                text = dump_value(key_shape.encode_checked(key))
                if value is None:
                    rows.pop(text, None)
                else:
                    rows[text] = dump_value(value_shape.encode_checked(value))
        self._state = json.dumps(self.task.state().as_json(), sort_keys=True)
        return json.dumps({"state": json.loads(self._state), "stores": self._live_rows()}, sort_keys=True)

    def restart(self, blueprint: Blueprint | None = None) -> None:
        """Discard the task and restore a new one from the last checkpoint.

        ``blueprint``: a blueprint of the same topology, which the new task uses instead of the present one.
        """
        if blueprint is not None and blueprint is not self._blueprint:
            self._adopt(blueprint, blueprint.parts[self.part.index])
        self.task = self._restored()

    def _adopt(self, blueprint: Blueprint, part: SubTopology) -> None:
        self._blueprint, self.part = blueprint, part
        self._bound = bound(part, blueprint.logs)
        self._shapes = {builder.name: bind_store(builder, blueprint.logs) for builder in part.stores}

    def _restored(self) -> Task:
        return Task(
            self._bound,
            self.partition,
            writers=self._writer,
            config=self._blueprint.config,
            checkpoint=Checkpoint(
                TaskState.from_json(json.loads(self._state)), {name: self._rows(name) for name in self._shapes}
            ),
            dropped=self._dropped,
            disk=self._disk,
        )

    def _writer(self, sink: SinkNode) -> Write:
        return lambda record, order_ms, number: self._deliver(sink, self.partition, record, order_ms, number)

    def _rows(self, name: str) -> list[tuple[Any, Any]]:
        """Return a store's rows, sorted by their text."""
        key_shape, value_shape = self._shapes[name]
        return [
            (key_shape.decode(load_value(key)), value_shape.decode(load_value(value)))
            # The rows are not in the order in which a run wrote them, because a restore must not depend on their order (L3).
            for key, value in sorted(self._changelogs[name].items())
        ]

    def _live_rows(self) -> dict[str, dict[str, str]]:
        """Return the live rows of each store. Expired rows stay in the changelog, but are invisible."""
        live = {}
        for name, store in self.task.stores.items():
            key_shape, value_shape = self._shapes[name]
            live[name] = {
                dump_value(key_shape.encode_checked(key)): dump_value(value_shape.encode_checked(value))
                for key, value in store.rows()
            }
        return live
