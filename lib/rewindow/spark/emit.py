"""From emissions to staged files: what a task sends to its sinks, and what its stores changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from rewindow.core.encoding import partition_of
from rewindow.core.record import Record
from rewindow.core.schema import Column, Shape
from rewindow.core.staging import CHANGELOG_META, INTERNAL_META, OUTPUT_META, StagedFile
from rewindow.spark.rows import arrow_schema, encode
from rewindow.spark.stage import FileWriter

BUFFER_ROWS = 65_536


class RowBuffer:
    """Rows of cells on their way into one file."""

    def __init__(self, file: FileWriter, schema: pa.Schema, target: str) -> None:
        self._file, self._schema, self._target = file, schema, target
        self._rows: list[tuple[Any, ...]] = []
        self.append = self._rows.append

    def flush_if_full(self) -> None:
        """Hand the rows to the file once there are many."""
        if len(self._rows) >= BUFFER_ROWS:
            self._flush()

    def close(self) -> list[StagedFile]:
        """Finish the file; the list is empty if there were no rows."""
        self._flush()
        staged = self._file.close()
        return [staged] if staged else []

    def _flush(self) -> None:
        if self._rows:
            self._file.write(encode(self._rows, self._schema, self._target))
            self._rows.clear()


class Place:
    """Where a task stages files for one target."""

    def __init__(self, target: str, root: str, *, attempt: str, partition: int) -> None:
        self.target, self._root, self._attempt, self._partition = target, root, attempt, partition

    def buffer(self, columns: Iterable[Column], stats: Iterable[str], partition: int | None = None) -> RowBuffer:
        """Return a buffer that fills one file, in the directory of a partition if the table has any."""
        schema = arrow_schema(columns)
        directory = "" if partition is None else f"partition={partition}"
        values = {} if partition is None else {"partition": str(partition)}
        file = FileWriter(
            self._root,
            directory,
            schema,
            target=self.target,
            partition=self._partition,
            attempt=self._attempt,
            partition_values=values,
            stats_columns=list(stats),
        )
        return RowBuffer(file, schema, self.target)


class OutputWriter:
    """Takes the emissions of one output topic. ``epoch`` is set by whoever drives the task."""

    def __init__(self, place: Place, shapes: tuple[Shape, Shape], *, partition: int, run: int) -> None:
        self.epoch = 0
        self._key, self._value = shapes
        self._partition, self._run = partition, run
        columns = (*self._key.columns, *self._value.columns, *OUTPUT_META)
        self._buffer = place.buffer(columns, [column.name for column in columns])

    def __call__(self, record: Record, order_ms: int, number: int) -> None:
        """Take one emission."""
        del order_ms
        meta = (record.timestamp, self.epoch, self._partition, number, self._run)
        self._buffer.append((*self._key.to_cells(record.key), *self._value.to_cells(record.value), *meta))
        self._buffer.flush_if_full()

    def close(self) -> list[StagedFile]:
        """Finish; return what was staged."""
        return self._buffer.close()


class InternalWriter:
    """Takes the emissions of one repartition topic; each goes to the partition of its key (a null key to 0)."""

    def __init__(self, place: Place, shapes: tuple[Shape, Shape], *, partitions: int) -> None:
        self.epoch = 0
        self._place = place
        self._key, self._value = shapes
        self._partitions = partitions
        self._buffers: dict[int, RowBuffer] = {}

    def __call__(self, record: Record, order_ms: int, number: int) -> None:
        """Take one emission."""
        partition = 0 if record.key is None else partition_of(record.key, self._partitions)
        buffer = self._buffers.get(partition)
        if buffer is None:
            columns = (*self._key.columns, *self._value.columns, *INTERNAL_META)
            buffer = self._buffers[partition] = self._place.buffer(columns, ["_epoch"], partition)
        meta = (record.timestamp, self.epoch, order_ms, number)
        buffer.append((*self._key.to_cells(record.key), *self._value.to_cells(record.value), *meta))
        buffer.flush_if_full()

    def close(self) -> list[StagedFile]:
        """Finish; return what was staged."""
        return [file for _, buffer in sorted(self._buffers.items()) for file in buffer.close()]


def stage_rows(place: Place, columns: Sequence[Column], rows: Iterable[tuple[Any, ...]]) -> list[StagedFile]:
    """Stage rows of cells in one file of a table that is not partitioned."""
    buffer = place.buffer(columns, [column.name for column in columns])
    for row in rows:
        buffer.append(row)
    return buffer.close()


def stage_changes(
    place: Place, shapes: tuple[Shape, Shape], rows: Iterable[tuple[Any, Any]], *, partition: int, run: int
) -> list[StagedFile]:
    """Stage what a store changed: one row a key, a None value as a tombstone."""
    key, value = shapes
    buffer = place.buffer((*key.columns, *value.columns, *CHANGELOG_META), ["_run"], partition)
    gone = (None,) * len(value.columns)
    for row_key, row_value in rows:
        cells = gone if row_value is None else value.to_cells(row_value)
        buffer.append((*key.to_cells(row_key), *cells, run, row_value is None))
        buffer.flush_if_full()
    return buffer.close()
