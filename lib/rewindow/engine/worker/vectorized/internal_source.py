"""Read a repartition topic column by column, as `repartition_reader` reads it record by record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from rewindow.contracts.tasks import InternalFile
from rewindow.engine.worker import batch_size
from rewindow.engine.worker.log_reader import SortedEpochs
from rewindow.engine.worker.vectorized.batch import Batch, name_at
from rewindow.engine.worker.vectorized.errors import UnfitError
from rewindow.streams.nodes import SinkNode
from rewindow.streams.serde.binding import LogShapes, bind, bind_sink
from rewindow.streams.serde.schema import Shape
from rewindow.streams.topology import Topology


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
    found = {}
    for node in topology.nodes.values():
        if isinstance(node, SinkNode) and node.is_internal and not node.is_global:
            key, value = bind(node.key, "key", logs), bind(node.value, "value", logs)
            stored = [shape.names for shape in bind_sink(node, logs)]
            (*key_names, no_key), (*value_names, no_value) = stored
            found[node.topic] = InternalSource(key, value, tuple(key_names), tuple(value_names), (no_key, no_value))
    return found


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
            name_at(source.value, at): table.column(source.value_names[at]).combine_chunks() for at in self._reads
        }
        for first in range(0, len(times), size):
            columns = {name: column.slice(first, size) for name, column in values.items()}
            yield Batch(times[first : first + size], [key.slice(first, size) for key in keys], columns)
