"""Stage a task's output records and its stores' changes as files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import SubTopologyWork, TaskWork
from rewindow.engine.worker.arrow_rows import arrow_schema, encode, encode_column, encode_values
from rewindow.engine.worker.batch_size import written_rows
from rewindow.engine.worker.parquet_writer import FileWriter
from rewindow.errors import DataError, EmissionError
from rewindow.streams.limits import Outputs
from rewindow.streams.record import Record
from rewindow.streams.record_context import RecordContext
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.serde.meta_columns import CHANGELOG_META, INTERNAL_META, OUTPUT_META, PARTITION
from rewindow.streams.serde.schema import Column, Shape
from rewindow.streams.sink import Sink

_TIMESTAMP = pa.field("_timestamp", pa.int64())


class RowBuffer:
    """Buffers rows for one file."""

    def __init__(self, file: FileWriter, target: str) -> None:
        self._file, self._target = file, target
        self._rows: list[tuple[Any, ...]] = []
        self._limit = written_rows()
        self.append = self._rows.append

    def flush_if_full(self) -> None:
        """Write the rows if the buffer is full."""
        if len(self._rows) >= self._limit:
            self._flush()

    def close(self) -> list[StagedFile]:
        """Finish the file. Returns nothing if there were no rows."""
        self._flush()
        staged = self._file.close()
        return [staged] if staged else []

    def _flush(self) -> None:
        if self._rows:
            self._file.write(encode(self._rows, self._file.schema, self._target))
            self._rows.clear()


class RecordBuffer(ABC):
    """Buffers output records for one file and converts them to columns in bulk.

    Callers append the result of `kept` to ``records`` and flush when there are `written_rows`.
    """

    def __init__(self, file: FileWriter, shapes: tuple[Shape, Shape], target: StagingTarget) -> None:
        self._file, self._target, self._sender = file, target.target, target.sender
        self._key, self._value = shapes
        self._value_schema = arrow_schema(self._value.columns)
        self.records: list[Record] = []
        # A value without a declared type may be a list that user code still changes, so it is encoded immediately.
        self.may_change = self._value.has_json

    def kept(self, record: Record) -> Record:
        """Return a record that user code can no longer change."""
        return record.with_value(self._encoded(record.value)) if self.may_change else record

    def close(self) -> list[StagedFile]:
        """Finish the file. Returns nothing if there were no records."""
        self.flush()
        staged = self._file.close()
        return [staged] if staged else []

    def flush(self) -> None:
        """Write the buffered records. Raises `EmissionError` (65) for a record that does not fit its columns."""
        if self.records:
            try:
                arrays = self._columns(self.records)
            except DataError:
                for index, record in enumerate(self.records):
                    self._check(record, index)
                raise
            arrays += self._meta()
            self._file.write(pa.RecordBatch.from_arrays(arrays, schema=self._file.schema))
            self.records.clear()

    @abstractmethod
    def _meta(self) -> list[pa.Array]:
        """Return the columns after the timestamps, and reset their state."""

    @abstractmethod
    def _epoch_and_number(self, index: int) -> tuple[int, int]:
        """Return the epoch of a buffered record, and its number in the topic."""

    def _columns(self, records: Sequence[Record]) -> list[pa.Array]:
        """Return the columns of keys, values and timestamps."""
        arrays = encode_values(self._key, [record.key for record in records], self._target)
        values = [record.value for record in records]
        if self.may_change:
            arrays += encode(values, self._value_schema, self._target).columns
        else:
            arrays += encode_values(self._value, values, self._target)
        return [*arrays, encode_column(_TIMESTAMP, [record.timestamp for record in records], self._target)]

    def _check(self, record: Record, index: int) -> None:
        try:
            self._columns([record])
        except DataError as error:
            epoch, number = self._epoch_and_number(index)
            message = (
                f"{error} [the record with the key {record.key!r} and the timestamp {record.timestamp}, number {number} "
                f"of its topic, sent by {self._sender} in epoch {epoch}]"
            )
            raise EmissionError(message) from error

    def _encoded(self, value: Any) -> tuple[Any, ...]:
        try:
            return self._value.encode(value)
        except DataError as error:
            message = f"{self._target}: {error}"
            raise DataError(message) from error


class StagingTarget:
    """Where a task stages files for one target."""

    def __init__(self, target: str, root: str, *, attempt: str, partition: int, sender: str = "") -> None:
        """``sender``: the nodes that send these records, for messages."""
        self.target, self.sender = target, sender
        self._root, self._attempt, self._partition = root, attempt, partition

    def buffer(self, columns: Iterable[Column], stats: Iterable[str], partition: int | None = None) -> RowBuffer:
        """Return a row buffer for one file."""
        return RowBuffer(self.file(columns, stats, partition), self.target)

    def file(self, columns: Iterable[Column], stats: Iterable[str], partition: int | None = None) -> FileWriter:
        """Return the writer of one file, in a partition's directory if the table is partitioned."""
        directory = "" if partition is None else f"{PARTITION}={partition}"
        values = {} if partition is None else {PARTITION: str(partition)}
        return FileWriter(
            self._root,
            directory,
            arrow_schema(columns),
            target=self.target,
            partition=self._partition,
            attempt=self._attempt,
            partition_values=values,
            stats_columns=list(stats),
        )


def staging_target(work: SubTopologyWork, task_work: TaskWork, target: str, sender: str = "") -> StagingTarget:
    """Return where a task of a sub-topology stages the files of a target."""
    return StagingTarget(
        target,
        work.staging.roots[target],
        attempt=work.identity.attempt,
        partition=task_work.partition,
        sender=sender,
    )


class OutputWriter(RecordBuffer, Sink):
    """Writes the records of one output topic. The caller sets ``epoch``."""

    def __init__(self, target: StagingTarget, shapes: tuple[Shape, Shape], *, partition: int, run: int) -> None:
        columns = (*shapes[0].columns, *shapes[1].columns, *OUTPUT_META)
        super().__init__(target.file(columns, [column.name for column in columns]), shapes, target)
        self._partition, self._run = partition, run
        self._first = 0
        self._epochs: list[tuple[int, int]] = []
        """Index of the first buffered record of each epoch, with the epoch."""

    def begin(self, record_context: RecordContext, number: int, outputs: Outputs) -> None:
        """See `Sink`."""
        del record_context
        self._first = number
        records, append, kept, limit = self.records, self.records.append, self.kept, written_rows()

        def process(record: Record) -> None:
            append(record)
            if len(records) >= limit:
                outputs.see(self.number)
                self.flush()

        self.process = (lambda record: process(kept(record))) if self.may_change else process

    @property
    def number(self) -> int:
        """See `Sink`."""
        return self._first + len(self.records)

    @property
    def epoch(self) -> int:
        """The epoch that is being replayed."""
        return self._epochs[-1][1]

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._epochs.append((len(self.records), epoch))

    def _meta(self) -> list[pa.Array]:
        count, (starts, epochs) = len(self.records), zip(*self._epochs, strict=True)
        of_epoch = np.diff([*starts, count])
        numbers = np.arange(self._first, self._first + count)
        self._first += count
        self._epochs = [(0, epochs[-1])]
        constants = [pa.repeat(pa.scalar(value, pa.int64()), count) for value in (self._partition, self._run)]
        return [pa.array(np.repeat(epochs, of_epoch)), constants[0], pa.array(numbers), constants[1]]

    def _epoch_and_number(self, index: int) -> tuple[int, int]:
        return [epoch for start, epoch in self._epochs if start <= index][-1], self._first + index


class InternalBuffer(RecordBuffer):
    """Buffers the records of one partition of a repartition topic."""

    def __init__(self, file: FileWriter, shapes: tuple[Shape, Shape], target: StagingTarget) -> None:
        super().__init__(file, shapes, target)
        self._positions: list[tuple[int, int, int]] = []

    def take(self, record: Record, epoch: int, order_ms: int, number: int) -> None:
        """Add one record."""
        self.records.append(self.kept(record))
        self._positions.append((epoch, order_ms, number))

    def _meta(self) -> list[pa.Array]:
        arrays = [pa.array(column, pa.int64()) for column in zip(*self._positions, strict=True)]
        self._positions.clear()
        return arrays

    def _epoch_and_number(self, index: int) -> tuple[int, int]:
        epoch, _, number = self._positions[index]
        return epoch, number


class InternalWriter:
    """Writes the records of one repartition topic, each to the partition of its key (0 for a null key)."""

    def __init__(self, target: StagingTarget, shapes: tuple[Shape, Shape], *, partitions: int) -> None:
        self.epoch = 0
        self._target, self._shapes = target, shapes
        self._partitions = partitions
        self._buffers: dict[int, InternalBuffer] = {}
        self._held = 0
        self._limit = written_rows()

    def take(self, record: Record, order_ms: int, number: int) -> None:
        """Add one record."""
        partition = 0 if record.key is None else partition_of(record.key, self._partitions)
        buffer = self._buffers.get(partition)
        if buffer is None:
            columns = (*self._shapes[0].columns, *self._shapes[1].columns, *INTERNAL_META)
            file = self._target.file(columns, ["_epoch"], partition)
            buffer = self._buffers[partition] = InternalBuffer(file, self._shapes, self._target)
        buffer.take(record, self.epoch, order_ms, number)
        self._held += 1
        if self._held >= self._limit:
            # Bounds the records held as Python objects, however many partitions there are.
            self._held = 0
            for full in self._buffers.values():
                full.flush()

    def close(self) -> list[StagedFile]:
        """Finish all files and return them."""
        return [file for _, buffer in sorted(self._buffers.items()) for file in buffer.close()]


def stage_rows(target: StagingTarget, columns: Sequence[Column], rows: Iterable[tuple[Any, ...]]) -> list[StagedFile]:
    """Stage rows in one file of an unpartitioned table."""
    buffer = target.buffer(columns, [column.name for column in columns])
    for row in rows:
        buffer.append(row)
    return buffer.close()


def stage_changes(
    target: StagingTarget, shapes: tuple[Shape, Shape], rows: Iterable[tuple[Any, Any]], *, partition: int, run: int
) -> list[StagedFile]:
    """Stage the changes of a store: one row per key, with a tombstone for a None value."""
    key, value = shapes
    buffer = target.buffer((*key.columns, *value.columns, *CHANGELOG_META), ["_run"], partition)
    gone = (None,) * len(value.columns)
    for row_key, row_value in rows:
        values = gone if row_value is None else value.encode(row_value)
        buffer.append((*key.encode(row_key), *values, run, row_value is None))
        buffer.flush_if_full()
    return buffer.close()
