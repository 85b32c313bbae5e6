"""From emissions to staged files: what a task sends to its sinks, and what its stores changed."""

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
    """Rows of cells on their way into one file."""

    def __init__(self, file: FileWriter, target: str) -> None:
        self._file, self._target = file, target
        self._rows: list[tuple[Any, ...]] = []
        self._limit = written_rows()
        self.append = self._rows.append

    def flush_if_full(self) -> None:
        """Hand the rows to the file once there are many."""
        if len(self._rows) >= self._limit:
            self._flush()

    def close(self) -> list[StagedFile]:
        """Finish the file; the list is empty if there were no rows."""
        self._flush()
        staged = self._file.close()
        return [staged] if staged else []

    def _flush(self) -> None:
        if self._rows:
            self._file.write(encode(self._rows, self._file.schema, self._target))
            self._rows.clear()


class RecordBuffer(ABC):
    """Emitted records on their way into one file: kept as they are, and made columns of when there are many.

    Whoever fills it appends to ``records`` what `kept` returns, and flushes when there are `written_rows`.
    """

    def __init__(self, file: FileWriter, shapes: tuple[Shape, Shape], place: StagingTarget) -> None:
        self._file, self._target, self._sender = file, place.target, place.sender
        self._key, self._value = shapes
        self._value_schema = arrow_schema(self._value.columns)
        self.records: list[Record] = []
        # What has no declared type may be a list that its sender goes on changing: its text is made at once.
        self.may_change = self._value.has_json

    def kept(self, record: Record) -> Record:
        """Return a record that nobody can change any more."""
        return record.with_value(self._cells(record.value)) if self.may_change else record

    def close(self) -> list[StagedFile]:
        """Finish the file; the list is empty if there were no records."""
        self.flush()
        staged = self._file.close()
        return [staged] if staged else []

    def flush(self) -> None:
        """Make columns of the records at hand; those are small. Raises `EmissionError` (65) for what does not fit."""
        if self.records:
            try:
                arrays = self._columns(self.records)
            except DataError:
                for place, record in enumerate(self.records):
                    self._check(record, place)
                raise
            arrays += self._meta()
            self._file.write(pa.RecordBatch.from_arrays(arrays, schema=self._file.schema))
            self.records.clear()

    @abstractmethod
    def _meta(self) -> list[pa.Array]:
        """Return the columns after the timestamps, and forget what they are made of."""

    @abstractmethod
    def _epoch_and_number(self, place: int) -> tuple[int, int]:
        """Return the epoch in which a record at hand was sent, and its number in the topic."""

    def _columns(self, records: Sequence[Record]) -> list[pa.Array]:
        """Return the columns that user code gives: keys, values, and the timestamps last."""
        arrays = encode_values(self._key, [record.key for record in records], self._target)
        values = [record.value for record in records]
        if self.may_change:
            arrays += encode(values, self._value_schema, self._target).columns
        else:
            arrays += encode_values(self._value, values, self._target)
        return [*arrays, encode_column(_TIMESTAMP, [record.timestamp for record in records], self._target)]

    def _check(self, record: Record, place: int) -> None:
        try:
            self._columns([record])
        except DataError as error:
            epoch, number = self._epoch_and_number(place)
            message = (
                f"{error} [the record with the key {record.key!r} and the timestamp {record.timestamp}, number {number} "
                f"of its topic, sent by {self._sender} in epoch {epoch}]"
            )
            raise EmissionError(message) from error

    def _cells(self, value: Any) -> tuple[Any, ...]:
        try:
            return self._value.encode(value)
        except DataError as error:
            message = f"{self._target}: {error}"
            raise DataError(message) from error


class StagingTarget:
    """Where a task stages files for one target."""

    def __init__(self, target: str, root: str, *, attempt: str, partition: int, sender: str = "") -> None:
        """Name the place. ``sender``: the nodes that emit what goes there, for messages."""
        self.target, self.sender = target, sender
        self._root, self._attempt, self._partition = root, attempt, partition

    def buffer(self, columns: Iterable[Column], stats: Iterable[str], partition: int | None = None) -> RowBuffer:
        """Return a buffer of rows that fills one file."""
        return RowBuffer(self.file(columns, stats, partition), self.target)

    def file(self, columns: Iterable[Column], stats: Iterable[str], partition: int | None = None) -> FileWriter:
        """Return the writer of one file, in the directory of a partition if the table has any."""
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
    """Takes the emissions of one output topic. ``epoch`` is set by whoever drives the task."""

    def __init__(self, place: StagingTarget, shapes: tuple[Shape, Shape], *, partition: int, run: int) -> None:
        columns = (*shapes[0].columns, *shapes[1].columns, *OUTPUT_META)
        super().__init__(place.file(columns, [column.name for column in columns]), shapes, place)
        self._partition, self._run = partition, run
        self._first = 0
        self._epochs: list[tuple[int, int]] = []
        """From which place of the records at hand on it is which epoch."""

    def begin(self, moment: RecordContext, number: int, outputs: Outputs) -> None:
        """See `Sink`."""
        del moment
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

    def _epoch_and_number(self, place: int) -> tuple[int, int]:
        return [epoch for start, epoch in self._epochs if start <= place][-1], self._first + place


class InternalBuffer(RecordBuffer):
    """What is emitted to one partition of a repartition topic."""

    def __init__(self, file: FileWriter, shapes: tuple[Shape, Shape], place: StagingTarget) -> None:
        super().__init__(file, shapes, place)
        self._places: list[tuple[int, int, int]] = []

    def take(self, record: Record, epoch: int, order_ms: int, number: int) -> None:
        """Take one emission."""
        self.records.append(self.kept(record))
        self._places.append((epoch, order_ms, number))

    def _meta(self) -> list[pa.Array]:
        arrays = [pa.array(column, pa.int64()) for column in zip(*self._places, strict=True)]
        self._places.clear()
        return arrays

    def _epoch_and_number(self, place: int) -> tuple[int, int]:
        epoch, _, number = self._places[place]
        return epoch, number


class InternalWriter:
    """Takes the emissions of one repartition topic; each goes to the partition of its key (a null key to 0)."""

    def __init__(self, place: StagingTarget, shapes: tuple[Shape, Shape], *, partitions: int) -> None:
        self.epoch = 0
        self._place, self._shapes = place, shapes
        self._partitions = partitions
        self._buffers: dict[int, InternalBuffer] = {}
        self._held = 0
        self._limit = written_rows()

    def take(self, record: Record, order_ms: int, number: int) -> None:
        """Take one emission."""
        partition = 0 if record.key is None else partition_of(record.key, self._partitions)
        buffer = self._buffers.get(partition)
        if buffer is None:
            columns = (*self._shapes[0].columns, *self._shapes[1].columns, *INTERNAL_META)
            file = self._place.file(columns, ["_epoch"], partition)
            buffer = self._buffers[partition] = InternalBuffer(file, self._shapes, self._place)
        buffer.take(record, self.epoch, order_ms, number)
        self._held += 1
        if self._held >= self._limit:
            # However many partitions there are, no more records than this are held as Python objects.
            self._held = 0
            for full in self._buffers.values():
                full.flush()

    def close(self) -> list[StagedFile]:
        """Finish; return what was staged."""
        return [file for _, buffer in sorted(self._buffers.items()) for file in buffer.close()]


def stage_rows(place: StagingTarget, columns: Sequence[Column], rows: Iterable[tuple[Any, ...]]) -> list[StagedFile]:
    """Stage rows of cells in one file of a table that is not partitioned."""
    buffer = place.buffer(columns, [column.name for column in columns])
    for row in rows:
        buffer.append(row)
    return buffer.close()


def stage_changes(
    place: StagingTarget, shapes: tuple[Shape, Shape], rows: Iterable[tuple[Any, Any]], *, partition: int, run: int
) -> list[StagedFile]:
    """Stage what a store changed: one row a key, a None value as a tombstone."""
    key, value = shapes
    buffer = place.buffer((*key.columns, *value.columns, *CHANGELOG_META), ["_run"], partition)
    gone = (None,) * len(value.columns)
    for row_key, row_value in rows:
        cells = gone if row_value is None else value.encode(row_value)
        buffer.append((*key.encode(row_key), *cells, run, row_value is None))
        buffer.flush_if_full()
    return buffer.close()
