"""Restore a task's stores: only the rows that it can request, filtered as columns before they become Python objects.

An hourly run may bring a few keys while its stores hold millions. So a restore omits expired windows and, for stores that
are read only by the keys of the task's own records (`streams.topology`), all other keys. To find those keys, it reads
the key columns of the run's records first. Omitted rows stay in the changelog, because a run writes only its changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.tasks import TaskWork
from rewindow.engine.worker.arrow_rows import arrow_schema
from rewindow.engine.worker.changelog_reader import RowGroupFilter, changelog_batches, row_columns, rows_of
from rewindow.engine.worker.log_reader import columns_of, ordered_batches
from rewindow.streams.nodes import SinkNode
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.binding import LogShapes, bind_sink
from rewindow.streams.serde.schema import Column, Shape
from rewindow.streams.state.stores import KEY_VALUE, WINDOW, StoreBuilder
from rewindow.streams.topology import SubTopology, Topology, key_topics

KEYS_MAX = 200_000
"""With more records than this, a task restores its stores completely: pruning would keep most keys."""

_ONE_TYPE = frozenset(("string", "long", "boolean", "binary"))
"""The types of key columns in which equal keys have equal column values."""


class Restore:
    """Restores the stores of one task."""

    def __init__(self, task_work: TaskWork, topology: Topology, part: SubTopology, logs: LogShapes) -> None:
        """Analyse the topology. Reads nothing."""
        self._work, self._logs, self._everywhere = task_work, logs, part.global_stores
        self._key_topics = key_topics(part)
        self._senders = {node.topic: node for node in topology.nodes.values() if isinstance(node, SinkNode)}
        self._key_values: dict[str, list[pa.Array] | None] = {}

    def rows(self, store: StoreBuilder, key: Shape, value: Shape) -> Iterator[tuple[Any, Any]]:
        """Yield the ``(key, value)`` rows of a store, in the order of the runs that wrote them."""
        return rows_of(self.batches(store, key, value), key, value)

    def batches(self, store: StoreBuilder, key: Shape, value: Shape) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a store as columns (`row_columns`), in the order of the runs that wrote them."""
        paths = self._work.stores.get(store.name, ())
        own = key.columns[:-2] if store.kind == WINDOW else key.columns
        only = self._only(store, own) if paths else None
        if only is not None and any(len(values) == 0 for values in only):
            # Without records, no key is requested.
            return
        clock_ms = self._work.state.store_clocks.get(store.name, UNKNOWN) if self._work.state else UNKNOWN
        live_above = clock_ms - store.retention_ms if store.kind == WINDOW and clock_ms != UNKNOWN else None
        start = key.names[len(own)] if live_above is not None else ""
        wanted = RowGroupFilter(start, live_above) if live_above is not None else None
        partition = 0 if store.name in self._everywhere else self._work.partition
        for batch in changelog_batches(paths, partition, row_columns(key, value), wanted=wanted):
            kept = batch if live_above is None else batch.filter(pc.greater(batch.column(start), live_above))
            for position, values in enumerate(only or ()):
                kept = kept.filter(pc.is_in(kept.column(position), values))
            yield kept

    def _only(self, store: StoreBuilder, columns: Sequence[Column]) -> list[pa.Array] | None:
        """Return the values of each key column that the task can request; None for all."""
        topics = self._key_topics.get(store.name, frozenset())
        types = [column.type for column in columns]
        if not topics or store.kind not in (KEY_VALUE, WINDOW) or not _ONE_TYPE.issuperset(types):
            return None
        of_topics: list[list[pa.Array]] = []
        for topic in sorted(topics):
            if topic not in self._key_values:
                self._key_values[topic] = self._read(topic, types)
            values = self._key_values[topic]
            if values is None:
                return None
            of_topics.append(values)
        return [pc.unique(pa.concat_arrays(several)) for several in zip(*of_topics, strict=True)]

    def _read(self, topic: str, types: Sequence[str]) -> list[pa.Array] | None:
        """Return the values of each key column of a topic's records; None if there are too many or the types differ."""
        is_internal = topic in self._work.internal
        shape = bind_sink(self._senders[topic], self._logs)[0] if is_internal else self._logs[topic][0]
        # An internal topic has one more column: whether the key is null.
        columns = shape.columns[: len(types)]
        if [column.type for column in columns] != list(types):
            return None
        names = [column.name for column in columns]
        batches: Iterable[pa.RecordBatch]
        if is_internal:
            batches = columns_of(self._work.internal[topic], names)
        else:
            log = self._work.logs[topic]
            start = min((first for first, end in log.bounds if end > first), default=0)
            end = max((end for first, end in log.bounds if end > first), default=0)
            if end - start > KEYS_MAX:
                return None
            batches = ordered_batches(topic, log.files, start, end, ["offset", *names])
        parts: list[list[pa.Array]] = []
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            if rows > KEYS_MAX:
                return None
            parts.append([pc.unique(batch.column(name)) for name in names])
        nothing = [pa.array([], field.type) for field in arrow_schema(columns)]
        return [pa.concat_arrays(several) for several in zip(nothing, *parts, strict=True)]
