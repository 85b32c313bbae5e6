"""Batches of records on their way from the log to the windows or to a join.

A repartition topic is read column by column, as `log_reader` reads it record by record. The batches of several topics are
merged into the order in which the task takes records (`streams.ordering`, L1).
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
from rewindow.streams.serde.binding import LogShapes, bind, bind_sink
from rewindow.streams.serde.schema import Shape
from rewindow.streams.topology import Topology

Columns = Mapping[str, pa.Array]


@dataclass(frozen=True, slots=True)
class Batch:
    """Timestamps, key columns, and the value columns that are read, by name."""

    timestamps: Array
    keys: Sequence[pa.Array]
    columns: Columns
    orders: Array | None = None
    """The order key of each record, if the task needs it (`closing_order`)."""
    positions: Array | None = None
    """The position of each record in the task's order, if it merges topics (`merged_batches`)."""

    def filtered(self, mask: pa.Array | None) -> Batch:
        """Return the records where a mask is true; None: all."""
        if mask is None:
            return self
        columns = {name: column.filter(mask) for name, column in self.columns.items()}
        rows = np.asarray(mask)
        keys = [column.filter(mask) for column in self.keys]
        return Batch(self.timestamps[rows], keys, columns, _of(self.orders, rows), _of(self.positions, rows))

    def taken(self, rows: Array) -> Batch:
        """Return the records with these indexes, which may repeat."""
        index = pa.array(rows)
        columns = {name: column.take(index) for name, column in self.columns.items()}
        keys = [column.take(index) for column in self.keys]
        return Batch(self.timestamps[rows], keys, columns, _of(self.orders, rows), _of(self.positions, rows))

    def slice(self, start: int, count: int) -> Batch:
        """Return consecutive records of a batch without orders and positions."""
        columns = {name: column.slice(start, count) for name, column in self.columns.items()}
        return Batch(self.timestamps[start : start + count], [key.slice(start, count) for key in self.keys], columns)

    def at(self, positions: Array) -> Batch:
        """Return the same records with their positions."""
        return replace(self, positions=positions)

    def with_columns(self, columns: Columns) -> Batch:
        """Return the same records with other values."""
        return replace(self, columns=columns)


def name_at(value: Shape, index: int) -> str:
    """Return the name of a value column."""
    return "value" if value.is_bare else value.names[index]


@dataclass(frozen=True, slots=True)
class InternalSource:
    """The shapes of a repartition topic's records, and the names of its files' columns."""

    key: Shape
    value: Shape
    key_names: tuple[str, ...]
    value_names: tuple[str, ...]
    markers: tuple[str, str]
    """The columns that tell null keys and null values from rows of nulls."""


def internal_sources(topology: Topology, logs: LogShapes) -> Mapping[str, InternalSource]:
    """Return the repartition topics by name."""
    sources = {}
    for node in topology.nodes.values():
        if isinstance(node, SinkNode) and node.is_internal and not node.is_global:
            key, value = bind(node.key, "key", logs), bind(node.value, "value", logs)
            stored = [shape.names for shape in bind_sink(node, logs)]
            (*key_names, no_key), (*value_names, no_value) = stored
            sources[node.topic] = InternalSource(key, value, tuple(key_names), tuple(value_names), (no_key, no_value))
    return sources


class InternalBatches:
    """Reads one repartition topic of one task, epoch by epoch. ``reads``: the indexes of the value columns to read."""

    def __init__(self, source: InternalSource, files: tuple[InternalFile, ...], reads: list[int]) -> None:
        self._source, self._reads = source, reads
        names = [*source.key_names, *(source.value_names[index] for index in reads), *source.markers]
        self._epochs = SortedEpochs(files, names)

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch. Raises `UnfitError` for a null that is not a row of nulls."""
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
    """The records of each topic. ``positions`` are their indexes in the arrays."""


def merged(topics: Sequence[Iterator[Batch]]) -> Iterator[Merged]:
    """Merge the batches of an epoch. At most one batch of each topic is in memory."""
    pending = [_Pending(batches) for batches in topics]
    while waiting := [(topic.last_ms, rank) for rank, topic in enumerate(pending) if topic.fill()]:
        # No record that precedes this one is still to come.
        last_ms, last = min(waiting)
        parts = [topic.take(last_ms, with_ties=rank <= last) for rank, topic in enumerate(pending)]
        orders = np.concatenate([part.orders for part in parts])
        # Ties go to the first topic.
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
        """The order key of its last record."""
        return int(self._part.orders[-1])

    def fill(self) -> bool:
        """Read a batch if none is left; return whether there are records."""
        while len(self._part.orders) == 0:
            batch = next(self._batches, None)
            if batch is None:
                return False
            if len(batch.timestamps):
                orders = np.maximum(np.maximum.accumulate(batch.timestamps), self._latest_ms)
                self._part, self._latest_ms = _Part(batch, orders), int(orders[-1])
        return True

    def take(self, last_ms: int, *, with_ties: bool) -> _Part:
        """Take the records up to an order key, those that have this key only ``with_ties``."""
        batch, orders = self._part
        count = int(np.searchsorted(orders, last_ms, "right" if with_ties else "left"))
        self._part = _Part(batch.slice(count, len(orders) - count), orders[count:])
        return _Part(batch.slice(0, count), orders[:count])
