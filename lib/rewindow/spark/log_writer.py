"""Writes the records of some partitions of one log: gives them offsets and timestamps, cuts files at landings.

Record batches in, one `Block` per landing and partition out; no Spark. Rows come sorted by partition, arrival and the
declared order; so a landing is a stretch of rows, and an offset is a count.
"""

from __future__ import annotations

import importlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from rewindow.core.binding import log_shape
from rewindow.core.land import FAR, Block, LogColumns, LogWrite, Slot
from rewindow.core.record import UNKNOWN, Record
from rewindow.core.schema import Column
from rewindow.core.staging import StagedFile
from rewindow.errors import ConfigError, DataError, SourceError
from rewindow.spark.nested import canonical_json, json_readers
from rewindow.spark.quarantine import QuarantineWriter, record_text
from rewindow.spark.rows import arrow_schema, decode
from rewindow.spark.stage import FileWriter
from rewindow.spark.timestamps import Extractor, InvalidTimestampError, Judged, Longs, extract, judge

PARTITION, ARRIVED, TIMESTAMP, FAULT = "_partition", "_arrival", "_timestamp", "_fault"
"""The columns beside keys and values in the batches that come in. A fault is text: why a row cannot be landed."""

LOG_META = tuple(Column(name, "long") for name in ("offset", "timestamp", "landing", "arrived_at"))

ROWS_PER_FILE = 4_000_000


def log_file_columns(columns: LogColumns) -> tuple[Column, ...]:
    """Return the columns in a log's files: all of the table's but ``generation`` and ``partition``."""
    return (*LOG_META, *columns.all)


def write_log(write: LogWrite, batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    """Write the rows of sorted batches and give a block for each landing and partition that got any.

    Raises `DataError` (65) for a record that the policy refuses, naming it; `SourceError` (66) for rows of an arrival
    that was not there when the landings were numbered.
    """
    name = write.spec.extractor
    extractor = load_extractor(name) if name else None
    block: _OpenBlock | None = None
    places = dict(write.starts)
    slot_starts = [slot.start_ms for slot in write.slots]
    try:
        for partition, rows in _stretches(_canonical(write, batches)):
            at = 0
            while at < rows.num_rows:
                slot, count, behind = _next_slot(write, slot_starts, rows.slice(at))
                if block is None or (block.slot, block.partition) != (slot, partition):
                    if block is not None:
                        done = block.close()
                        places[done.partition] = (done.end, done.max_timestamp)
                        yield done
                    block = _OpenBlock(write, slot, partition, places.get(partition, (0, UNKNOWN)), extractor)
                part = rows.slice(at, count)
                block.add(_without_arrival(part) if write.spec.is_output else part, behind)
                at += count
        if block is not None:
            yield block.close()
            block = None
    finally:
        if block is not None:
            block.abort()


def load_extractor(name: str) -> Extractor:
    """Return the function of ``module:function``. Raises `ConfigError` (78) if it cannot be imported."""
    module_name, _, function_name = name.partition(":")
    try:
        extractor: Extractor = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        message = (
            f"timestamp: {name} cannot be imported ({error}). Give module:function, importable from the project's root"
        )
        raise ConfigError(message) from error
    return extractor


def _canonical(write: LogWrite, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    readers = json_readers(write.spec, write.columns)
    if not readers:
        return batches
    return (
        pa.RecordBatch.from_arrays(
            [
                canonical_json(column, readers[name]) if name in readers else column
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ],
            schema=batch.schema,
        )
        for batch in batches
    )


def _stretches(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in batches:
        partitions = np.asarray(batch.column(PARTITION))
        cuts = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), batch.num_rows]
        for start, end in pairwise(cuts):
            if end > start:
                yield int(partitions[start]), batch.slice(start, end - start)


def _without_arrival(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of another job's output without their epochs, which stood for their arrival."""
    at = rows.schema.get_field_index(ARRIVED)
    return rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, pa.int64()))


def _next_slot(write: LogWrite, slot_starts: list[int], rows: pa.RecordBatch) -> tuple[Slot, int, int]:
    """Return the landing of the first row, how many rows from there are its, and how many of these are behind."""
    if len(write.slots) == 1 and write.slots[0].interval is None:
        return write.slots[0], rows.num_rows, 0
    times = _longs(rows.column(ARRIVED), -FAR)
    slot = write.slots[max(bisect_right(slot_starts, int(times[0])) - 1, 0)]
    count = int(np.searchsorted(times, slot.end_ms, side="left"))
    if count == 0:
        message = f"{write.spec.source.name} got rows while it was being landed (arrival {int(times[0])}): land again"
        raise SourceError(message)
    return slot, count, int(np.searchsorted(times[:count], slot.start_ms, side="left"))


def _longs(column: pa.Array, null: int) -> Longs:
    return np.asarray(column.fill_null(null) if column.null_count else column)


class _OpenBlock:
    """The block that is being written."""

    def __init__(
        self, write: LogWrite, slot: Slot, partition: int, place: tuple[int, int], extractor: Extractor | None
    ) -> None:
        self.slot, self.partition = slot, partition
        self._write = write
        self._extractor = extractor
        self._start, self._time = place
        self._end = self._start
        self._behind = 0
        self._schema = arrow_schema(log_file_columns(write.columns))
        self._file: FileWriter | None = None
        self._files: list[StagedFile] = []
        self._quarantine = QuarantineWriter(write, slot, partition)

    def add(self, rows: pa.RecordBatch, behind: int) -> None:
        self._behind += behind
        try:
            judged = self._judge(rows)
        except InvalidTimestampError as error:
            raise self._named(rows.slice(error.row, 1), error) from error
        self._time = judged.partition_time
        times = judged.timestamps
        if judged.refusals:
            self._quarantine.add(rows, judged.refusals)
            rows, times = rows.filter(pa.array(judged.keep)), times[judged.keep]
        if rows.num_rows:
            self._append(rows, times)

    def close(self) -> Block:
        self._finish_file()
        return Block(
            landing=self.slot.number,
            partition=self.partition,
            start=self._start,
            end=self._end,
            max_timestamp=self._time,
            behind=self._behind,
            quarantined=self._quarantine.rows,
            files=tuple(self._files),
            quarantine=self._quarantine.close(),
        )

    def abort(self) -> None:
        if self._file is not None:
            self._file.abort()
        self._quarantine.abort()

    def _append(self, rows: pa.RecordBatch, times: Longs) -> None:
        count = rows.num_rows
        columns = [
            pa.array(np.arange(self._end, self._end + count)),
            pa.array(times),
            pa.array(np.full(count, self.slot.number)),
            rows.column(ARRIVED),
            *(rows.column(column.name) for column in self._write.columns.all),
        ]
        self._end += count
        if self._file is None:
            self._file = self._new_file()
        self._file.write(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        if self._file.rows >= ROWS_PER_FILE:
            self._finish_file()

    def _judge(self, rows: pa.RecordBatch) -> Judged:
        faults = rows.column(FAULT)
        found: list[str | None] = [] if faults.null_count == rows.num_rows else faults.to_pylist()
        limits = self._limits(rows.column(ARRIVED))
        if self._extractor is None:
            return judge(rows.column(TIMESTAMP), limits, found, self._write.policy, self._time)
        records = _records(self._write.columns, rows)
        return extract(self._extractor, records, limits, found, self._write.policy, self._time)

    def _limits(self, arrivals: pa.Array) -> Longs | int:
        """Return the largest timestamps allowed: ``max_ahead`` after the arrival, the interval's end, or now (D19)."""
        ahead = self._write.policy.max_ahead_ms
        if ahead is None:
            return FAR * 2 - 1
        recorded = self.slot.end_ms if self.slot.interval else self._write.now_ms
        if self._write.spec.arrived_at is None:
            return recorded + ahead
        return _longs(arrivals, recorded) + ahead

    def _named(self, row: pa.RecordBatch, error: InvalidTimestampError) -> DataError:
        write = self._write
        message = (
            f"feed {write.feed}, topic {write.spec.topic}, partition {self.partition}, the record "
            f"{record_text(write.columns.all, row)[0]} (arrived at {row.column(ARRIVED)[0]}): {error.reason}. Mend the "
            "source, or say `invalid_timestamp: skip` (to the quarantine) or `partition_time` for this log"
        )
        return DataError(message)

    def _new_file(self) -> FileWriter:
        write = self._write
        return FileWriter(
            write.log_root,
            f"generation={write.generation}/partition={self.partition}",
            self._schema,
            target=f"log/{write.spec.topic}",
            partition=self.partition,
            attempt=write.attempt,
            partition_values={"generation": str(write.generation), "partition": str(self.partition)},
            stats_columns=[column.name for column in LOG_META],
        )

    def _finish_file(self) -> None:
        if self._file is not None and (file := self._file.close()) is not None:
            self._files.append(file)
        self._file = None


def _records(columns: LogColumns, rows: pa.RecordBatch) -> list[Record]:
    """Return the rows as records as a topology will see them; the timestamp is the arrival, if that is known."""
    key, value = (
        log_shape(columns.key, is_scalar=columns.scalar_key),
        log_shape(columns.value, is_scalar=columns.scalar_value),
    )
    parts = (decode(shape, [rows.column(name) for name in shape.names]) for shape in (key, value))
    return [Record(*record) for record in zip(*parts, rows.column(ARRIVED).to_pylist(), strict=True)]
