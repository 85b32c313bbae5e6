"""From emissions to staged files: what a task sends to its sinks, and what its stores changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rewindow.core.encoding import partition_of
from rewindow.core.record import Record
from rewindow.core.schema import Column, Shape
from rewindow.core.staging import CHANGELOG_META, INTERNAL_META, OUTPUT_META, PARTITION, StagedFile
from rewindow.errors import DataError, EmissionError
from rewindow.spark.rows import arrow_schema, encode, encode_column, encode_values
from rewindow.spark.stage import FileWriter

BUFFER_ROWS = 16_384
_TIMESTAMP = pa.field("_timestamp", pa.int64())


class RowBuffer:
    """Rows of cells on their way into one file."""

    def __init__(self, file: FileWriter, target: str) -> None:
        self._file, self._target = file, target
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
            self._file.write(encode(self._rows, self._file.schema, self._target))
            self._rows.clear()


class RecordBuffer:
    """Emitted records on their way into one file: kept as they are, and made columns of when there are many.

    ``constants`` are the columns that have one value in all of the file.
    """

    def __init__(
        self, file: FileWriter, shapes: tuple[Shape, Shape], constants: Mapping[str, int], place: Place
    ) -> None:
        self._file, self._constants, self._target, self._sender = file, constants, place.target, place.sender
        self._key, self._value = shapes
        self.epoch = 0
        self._value_schema = arrow_schema(self._value.columns)
        # What has no declared type may be a list that its sender goes on changing: its text is made at once.
        self._may_change = self._value.has_json
        self._records: list[Record] = []
        self._epochs: list[int] = []
        self._orders: list[int] = []
        self._numbers: list[int] = []

    def take(self, record: Record, order_ms: int, number: int) -> None:
        """Take one emission."""
        self._records.append(record.with_value(self._cells(record.value)) if self._may_change else record)
        self._epochs.append(self.epoch)
        self._orders.append(order_ms)
        self._numbers.append(number)
        if len(self._numbers) >= BUFFER_ROWS:
            self.flush()

    def close(self) -> list[StagedFile]:
        """Finish the file; the list is empty if there were no records."""
        self.flush()
        staged = self._file.close()
        return [staged] if staged else []

    def flush(self) -> None:
        """Make columns of the records at hand; those are small. Raises `EmissionError` (65) for what does not fit."""
        records = self._records
        if not records:
            return
        try:
            arrays = self._columns(records)
        except DataError:
            for record, epoch, number in zip(records, self._epochs, self._numbers, strict=True):
                self._check(record, epoch, number)
            raise
        meta = {
            "_timestamp": arrays.pop(),
            "_epoch": self._epochs,
            "_order": self._orders,
            "_number": self._numbers,
            "_offset": self._numbers,
        }
        for name in self._file.schema.names[len(arrays) :]:
            constant = self._constants.get(name)
            arrays.append(_longs(meta[name]) if constant is None else pa.repeat(constant, len(records)))
        self._file.write(pa.RecordBatch.from_arrays(arrays, schema=self._file.schema))
        for filled in (records, self._epochs, self._orders, self._numbers):
            filled.clear()

    def _columns(self, records: Sequence[Record]) -> list[pa.Array]:
        """Return the columns that user code gives: keys, values, and the timestamps last."""
        arrays = encode_values(self._key, [record.key for record in records], self._target)
        values = [record.value for record in records]
        if self._may_change:
            arrays += encode(values, self._value_schema, self._target).columns
        else:
            arrays += encode_values(self._value, values, self._target)
        return [*arrays, encode_column(_TIMESTAMP, [record.timestamp for record in records], self._target)]

    def _check(self, record: Record, epoch: int, number: int) -> None:
        try:
            self._columns([record])
        except DataError as error:
            message = (
                f"{error} [the record with the key {record.key!r} and the timestamp {record.timestamp}, number {number} "
                f"of its topic, sent by {self._sender} in epoch {epoch}]"
            )
            raise EmissionError(message) from error

    def _cells(self, value: Any) -> tuple[Any, ...]:
        try:
            return self._value.to_cells(value)
        except DataError as error:
            message = f"{self._target}: {error}"
            raise DataError(message) from error


def _longs(numbers: Sequence[int] | pa.Array) -> pa.Array:
    return numbers if isinstance(numbers, pa.Array) else pa.array(numbers, pa.int64())


class Place:
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


class OutputWriter(RecordBuffer):
    """Takes the emissions of one output topic. ``epoch`` is set by whoever drives the task."""

    def __init__(self, place: Place, shapes: tuple[Shape, Shape], *, partition: int, run: int) -> None:
        columns = (*shapes[0].columns, *shapes[1].columns, *OUTPUT_META)
        file = place.file(columns, [column.name for column in columns])
        super().__init__(file, shapes, {"_partition": partition, "_run": run}, place)


class InternalWriter:
    """Takes the emissions of one repartition topic; each goes to the partition of its key (a null key to 0)."""

    def __init__(self, place: Place, shapes: tuple[Shape, Shape], *, partitions: int) -> None:
        self.epoch = 0
        self._place, self._shapes = place, shapes
        self._partitions = partitions
        self._buffers: dict[int, RecordBuffer] = {}
        self._held = 0

    def take(self, record: Record, order_ms: int, number: int) -> None:
        """Take one emission."""
        partition = 0 if record.key is None else partition_of(record.key, self._partitions)
        buffer = self._buffers.get(partition)
        if buffer is None:
            columns = (*self._shapes[0].columns, *self._shapes[1].columns, *INTERNAL_META)
            file = self._place.file(columns, ["_epoch"], partition)
            buffer = self._buffers[partition] = RecordBuffer(file, self._shapes, {}, self._place)
        buffer.epoch = self.epoch
        buffer.take(record, order_ms, number)
        self._held += 1
        if self._held >= BUFFER_ROWS:
            # However many partitions there are, no more records than this are held as Python objects.
            self._held = 0
            for full in self._buffers.values():
                full.flush()

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
