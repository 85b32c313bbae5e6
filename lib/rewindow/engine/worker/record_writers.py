"""Write the records that a task sends to its sinks: to an output topic, or to the partitions of a repartition topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import SubTopologyWork, TaskWork
from rewindow.engine.worker.arrow_rows import arrow_schema, encode, encode_timestamps, encode_values
from rewindow.engine.worker.batch_size import written_rows
from rewindow.engine.worker.parquet_writer import FileWriter
from rewindow.engine.worker.staging import StagingTarget, staging_target
from rewindow.errors import DataError, EmissionError
from rewindow.streams.limits import Outputs
from rewindow.streams.nodes import SinkNode, partition_for
from rewindow.streams.record import Record
from rewindow.streams.record_context import RecordContext
from rewindow.streams.serde.schema import INTERNAL_META, OUTPUT_META, Shape
from rewindow.streams.sink import Sink


class RecordBuffer(ABC):
    """A buffer of output records for one file: lists of keys, values and timestamps, later converted to columns.

    Callers append to ``keys``, ``values`` (the results of `kept`) and ``timestamps``. They call `flush` when there are
    `written_rows` records.
    """

    def __init__(self, file: FileWriter, shapes: tuple[Shape, Shape], target: StagingTarget) -> None:
        self._file, self._target, self._sender = file, target.target, target.sender
        self._key, self._value = shapes
        self._value_schema = arrow_schema(self._value.columns)
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.timestamps: list[int] = []
        # A value without a declared type may be a list that user code changes later. So such a value is encoded immediately.
        self.may_change = self._value.has_json

    def kept(self, value: Any) -> Any:
        """Return a value in a form that user code can no longer change."""
        if not self.may_change:
            return value
        try:
            return self._value.encode(value)
        except DataError as error:
            error.surrounded(f"{self._target}: ")
            raise

    def close(self) -> list[StagedFile]:
        """Finish the file and return it. Returns an empty list if there were no records."""
        self.flush()
        staged = self._file.close()
        return [staged] if staged else []

    def abort(self) -> None:
        """Delete the file."""
        self._file.abort()

    def flush(self) -> None:
        """Write the buffered records. Raises `EmissionError` (65) for a record that does not fit its columns."""
        if self.keys:
            columns = self.keys, self.values, self.timestamps
            try:
                arrays = self._columns(*columns)
            except DataError:
                for index, (key, value, timestamp) in enumerate(zip(*columns, strict=True)):
                    self._check(key, value, timestamp, index)
                raise
            arrays += self._meta()
            self._file.write(pa.RecordBatch.from_arrays(arrays, schema=self._file.schema))
            for column in columns:
                column.clear()

    @abstractmethod
    def _meta(self) -> list[pa.Array]:
        """Return the columns that follow the column of timestamps, and reset their state for the next records."""

    @abstractmethod
    def _epoch_and_number(self, index: int) -> tuple[int, int]:
        """Return the epoch of a buffered record, and the record's number in the topic."""

    def _columns(self, keys: Sequence[Any], values: Sequence[Any], timestamps: Sequence[int]) -> list[pa.Array]:
        """Return the columns of keys, values and timestamps."""
        arrays = encode_values(self._key, keys, self._target)
        if self.may_change:
            arrays += encode(values, self._value_schema, self._target).columns
        else:
            arrays += encode_values(self._value, values, self._target)
        return [*arrays, encode_timestamps(timestamps, self._target)]

    def _check(self, key: Any, value: Any, timestamp: int, index: int) -> None:
        try:
            self._columns([key], [value], [timestamp])
        except DataError as error:
            epoch, number = self._epoch_and_number(index)
            record = (
                f" [the record with the key {key!r} and the timestamp {timestamp}, number {number} of its topic, sent by "
                f"{self._sender} in epoch {epoch}]"
            )
            facts = {**error.facts, "key": key, "timestamp": timestamp, "number": number, "epoch": epoch}
            raise EmissionError.restored(error.code, error.message + record, facts) from error


class OutputWriter(RecordBuffer, Sink):
    """Writes the records of one output topic. The caller sets the attribute ``epoch``."""

    takes_columns = True

    def __init__(self, target: StagingTarget, shapes: tuple[Shape, Shape], *, partition: int, run: int) -> None:
        columns = (*shapes[0].columns, *shapes[1].columns, *OUTPUT_META)
        super().__init__(target.file(columns, [column.name for column in columns]), shapes, target)
        self._partition, self._run = partition, run
        self._first = 0
        self._limit = 1
        self._epochs: list[tuple[int, int]] = []
        """Pairs (index of the epoch's first buffered record, epoch)."""

    def begin(self, record_context: RecordContext, number: int, outputs: Outputs) -> None:
        """See `Sink`."""
        del record_context
        self._first, self._outputs, self._limit = number, outputs, written_rows()
        keys, values, timestamps = self.keys, self.values, self.timestamps
        limit, kept, flush = self._limit, self.kept, self._flush_full

        def process(record: Record) -> None:
            key, value, timestamp, _ = record
            values.append(value)
            keys.append(key)
            timestamps.append(timestamp)
            if len(keys) >= limit:
                flush()

        def process_changing(record: Record) -> None:
            key, value, timestamp, _ = record
            # The value is appended first: if `kept` raises an error, the lists still have equal lengths.
            values.append(kept(value))
            keys.append(key)
            timestamps.append(timestamp)
            if len(keys) >= limit:
                flush()

        self.process = process_changing if self.may_change else process

    def process_many(self, keys: Sequence[Any], values: Sequence[Any], timestamps: Sequence[int]) -> None:
        """See `Sink`."""
        start, count = 0, len(keys)
        # Usually all records fit into the buffer. Then the lists are appended whole.
        if len(self.keys) + count < self._limit and not self.may_change:
            self.values += values
            self.keys += keys
            self.timestamps += timestamps
            return
        while start < count:
            some = slice(start, start + self._limit - len(self.keys))
            self.values += map(self.kept, values[some]) if self.may_change else values[some]
            self.keys += keys[some]
            self.timestamps += timestamps[some]
            start = some.stop
            if len(self.keys) >= self._limit:
                self._flush_full()

    def _flush_full(self) -> None:
        self._outputs.see(self.number)
        self.flush()

    @property
    def number(self) -> int:
        """See `Sink`."""
        return self._first + len(self.keys)

    @property
    def epoch(self) -> int:
        """The epoch that is being replayed."""
        return self._epochs[-1][1]

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._epochs.append((len(self.keys), epoch))

    def _meta(self) -> list[pa.Array]:
        count, (starts, epochs) = len(self.keys), zip(*self._epochs, strict=True)
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
        self.values.append(self.kept(record.value))
        self.keys.append(record.key)
        self.timestamps.append(record.timestamp)
        self._positions.append((epoch, order_ms, number))

    def _meta(self) -> list[pa.Array]:
        arrays = [pa.array(column, pa.int64()) for column in zip(*self._positions, strict=True)]
        self._positions.clear()
        return arrays

    def _epoch_and_number(self, index: int) -> tuple[int, int]:
        epoch, _, number = self._positions[index]
        return epoch, number


class InternalWriter:
    """Writes the records of one internal topic, each to its partition (`streams.nodes`)."""

    def __init__(self, target: StagingTarget, shapes: tuple[Shape, Shape], sink: SinkNode, *, partitions: int) -> None:
        self.epoch = 0
        self._target, self._shapes = target, shapes
        self._sink, self._partitions = sink, partitions
        self._buffers: dict[int, InternalBuffer] = {}
        self._held = 0
        self._limit = written_rows()

    def take(self, record: Record, order_ms: int, number: int) -> None:
        """Add one record."""
        partition = partition_for(self._sink, record, self._partitions)
        buffer = self._buffers.get(partition)
        if buffer is None:
            columns = (*self._shapes[0].columns, *self._shapes[1].columns, *INTERNAL_META)
            file = self._target.file(columns, ["_epoch"], partition)
            buffer = self._buffers[partition] = InternalBuffer(file, self._shapes, self._target)
        buffer.take(record, self.epoch, order_ms, number)
        self._held += 1
        if self._held >= self._limit:
            # The limit holds for the sum of all buffers, so that more partitions do not mean more buffered records.
            self._held = 0
            for full in self._buffers.values():
                full.flush()

    def close(self) -> list[StagedFile]:
        """Finish all files and return them."""
        return [file for _, buffer in sorted(self._buffers.items()) for file in buffer.close()]

    def abort(self) -> None:
        """Delete all files."""
        for buffer in self._buffers.values():
            buffer.abort()


def writer_of(
    work: SubTopologyWork, task_work: TaskWork, sink: SinkNode, shapes: tuple[Shape, Shape]
) -> OutputWriter | InternalWriter:
    """Return the writer of the records that a task sends to a sink."""
    sender = ", ".join(sink.parents)
    if sink.is_internal:
        target = staging_target(work, task_work, f"internal/{sink.topic}", sender)
        return InternalWriter(target, shapes, sink, partitions=work.staging.partitions)
    target = staging_target(work, task_work, f"output/{sink.topic}", sender)
    return OutputWriter(target, shapes, partition=task_work.partition, run=work.identity.run)
