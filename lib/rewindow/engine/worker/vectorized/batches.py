"""Batches of records between the topic from which they are read, and the windows or the join.

This module reads the records of a repartition topic as columns, in the order in which `log_reader` reads them as records. It
merges the batches of several topics into the order in which the task processes records (`streams.ordering`, L1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.tasks import InternalFile
from rewindow.engine.worker import batch_size
from rewindow.engine.worker.log_reader import SortedEpochs
from rewindow.engine.worker.vectorized.arrays import Array, UnfitError
from rewindow.streams.nodes import SinkNode
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.schema import Shape
from rewindow.streams.serde.types_to_columns import LogShapes, bind, bind_sink
from rewindow.streams.topology import Topology

Columns = Mapping[str, pa.Array]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some records as columns: their timestamps, their keys, and the value columns (by name) that the task needs."""

    timestamps: Array
    keys: Sequence[pa.Array]
    columns: Columns
    orders: Array | None = None
    """The order key of each record; None if the task does not need order keys (`vectorized_task.ClosingOrder`)."""
    positions: Array | None = None
    """The position of each record in the task's order; None if the task does not merge topics (`merged`)."""

    def filtered(self, mask: pa.Array | None) -> Batch:
        """Return the records where the mask is true. None: return all records."""
        if mask is None:
            return self
        columns = {name: column.filter(mask) for name, column in self.columns.items()}
        rows = np.asarray(mask)
        keys = [column.filter(mask) for column in self.keys]
        return Batch(self.timestamps[rows], keys, columns, _of(self.orders, rows), _of(self.positions, rows))

    def taken(self, rows: Array) -> Batch:
        """Return the records with these indexes. An index may occur several times."""
        index = pa.array(rows)
        columns = {name: column.take(index) for name, column in self.columns.items()}
        keys = [column.take(index) for column in self.keys]
        return Batch(self.timestamps[rows], keys, columns, _of(self.orders, rows), _of(self.positions, rows))

    def slice(self, start: int, count: int) -> Batch:
        """Return ``count`` consecutive records from ``start`` on. The batch must have neither order keys nor positions."""
        columns = {name: column.slice(start, count) for name, column in self.columns.items()}
        return Batch(self.timestamps[start : start + count], [key.slice(start, count) for key in self.keys], columns)

    def at(self, positions: Array) -> Batch:
        """Return the same records with the given positions."""
        return replace(self, positions=positions)

    def with_columns(self, columns: Columns) -> Batch:
        """Return the same records with other values."""
        return replace(self, columns=columns)


def name_at(value: Shape, index: int) -> str:
    """Return the name of a value column."""
    return "value" if value.is_bare else value.names[index]


@dataclass(frozen=True, slots=True)
class InternalSource:
    """The shapes of a repartition topic's keys and values, and the names of the columns in its files."""

    key: Shape
    value: Shape
    key_names: tuple[str, ...]
    value_names: tuple[str, ...]
    markers: tuple[str, str]
    """Two columns: whether the key is null, and whether the value is null. They distinguish null from a row of nulls."""


def internal_sources(topology: Topology, logs: LogShapes) -> Mapping[str, InternalSource]:
    """Return the source of each repartition topic, by topic."""
    sources = {}
    for node in topology.nodes.values():
        if isinstance(node, SinkNode) and node.is_internal and not node.is_global:
            key, value = bind(node.key, "key", logs), bind(node.value, "value", logs)
            stored = [shape.names for shape in bind_sink(node, logs)]
            (*key_names, no_key), (*value_names, no_value) = stored
            sources[node.topic] = InternalSource(key, value, tuple(key_names), tuple(value_names), (no_key, no_value))
    return sources


class InternalBatches:
    """Reads one repartition topic for one task, epoch by epoch. ``reads``: the indexes of the value columns to read."""

    def __init__(self, source: InternalSource, files: tuple[InternalFile, ...], reads: list[int]) -> None:
        self._source, self._reads = source, reads
        names = [*source.key_names, *(source.value_names[index] for index in reads), *source.markers]
        self._epochs = SortedEpochs(files, names)

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch. Raises `UnfitError` for a null key, or for a null where a row is expected."""
        table, source = self._epochs.take(number), self._source
        if table is None:
            return
        no_key, no_value = (pc.any(table.column(marker)).as_py() for marker in source.markers)
        if no_key or (no_value and not source.value.is_bare):
            raise UnfitError
        times, size = np.asarray(table.column("_timestamp")), batch_size.read_rows()
        keys = [table.column(name).combine_chunks() for name in source.key_names]
        values = {
            name_at(source.value, index): table.column(source.value_names[index]).combine_chunks()
            for index in self._reads
        }
        for start in range(0, len(times), size):
            columns = {name: column.slice(start, size) for name, column in values.items()}
            yield Batch(times[start : start + size], [key.slice(start, size) for key in keys], columns)


class Merged(NamedTuple):
    """Consecutive records of a task. The arrays have an item for each record, in order."""

    timestamps: Array
    ranks: Array
    """The index of each record's topic."""
    orders: Array
    """The order key of each record: the running maximum of its topic's timestamps in the epoch."""
    parts: tuple[Batch, ...]
    """A batch with the records of each topic. Its ``positions`` are the indexes of the records in the arrays."""


def merged(topics: Sequence[Iterator[Batch]]) -> Iterator[Merged]:
    """Merge the batches of an epoch into the task's order. At most one batch of each topic is in memory."""
    pending = [_Pending(batches) for batches in topics]
    while waiting := [(topic.last_ms, rank) for rank, topic in enumerate(pending) if topic.fill()]:
        # Compare the last records of the current batches and find the earliest of them. All records that precede it are in
        # these batches.
        last_ms, last = min(waiting)
        parts = [topic.take(last_ms, with_ties=rank <= last) for rank, topic in enumerate(pending)]
        orders = np.concatenate([part.orders for part in parts])
        # The sort is stable, so among records with equal order keys, the first topic's records come first.
        order = np.argsort(orders, kind="stable")
        positions = np.empty(len(order), np.int64)
        positions[order] = np.arange(len(order))
        bounds = np.cumsum([0, *(len(part.orders) for part in parts)])
        ranks = np.repeat(np.arange(len(parts)), np.diff(bounds))
        yield Merged(
            np.concatenate([part.batch.timestamps for part in parts])[order],
            ranks[order],
            orders[order],
            tuple(
                part.batch.at(positions[start:end])
                for part, start, end in zip(parts, bounds[:-1], bounds[1:], strict=True)
            ),
        )


def _of(array: Array | None, rows: Array) -> Array | None:
    return None if array is None else array[rows]


class _Part(NamedTuple):
    """Records of one topic with their order keys."""

    batch: Batch
    orders: Array


class _Pending:
    """The next batch of one topic, with the order key of each record."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches = batches
        self._latest_ms = UNKNOWN
        self._part = _Part(Batch(np.empty(0, np.int64), (), {}), np.empty(0, np.int64))

    @property
    def last_ms(self) -> int:
        """The order key of the batch's last record."""
        return int(self._part.orders[-1])

    def fill(self) -> bool:
        """Read the next batch if the current batch has no records left. Return whether there are records."""
        while len(self._part.orders) == 0:
            batch = next(self._batches, None)
            if batch is None:
                return False
            if len(batch.timestamps):
                orders = np.maximum(np.maximum.accumulate(batch.timestamps), self._latest_ms)
                self._part, self._latest_ms = _Part(batch, orders), int(orders[-1])
        return True

    def take(self, last_ms: int, *, with_ties: bool) -> _Part:
        """Remove and return the records with order keys below ``last_ms`` or, with ``with_ties``, up to and including it."""
        batch, orders = self._part
        count = int(np.searchsorted(orders, last_ms, "right" if with_ties else "left"))
        self._part = _Part(batch.slice(count, len(orders) - count), orders[count:])
        return _Part(batch.slice(0, count), orders[:count])
