"""Write rows of some partitions of one log as blocks: one block per landing and partition.

A block has offsets, timestamps, files and quarantined records. The input is sorted by partition, arrival and declared order.
So the rows of a landing are consecutive, and their offsets ascend.
"""

from __future__ import annotations

import importlib
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.ingest import FAR, LogColumns, LogWrite, PendingLanding
from rewindow.contracts.instants import instant
from rewindow.contracts.landing_protocol import Block
from rewindow.contracts.reserved_names import LOG_COLUMNS
from rewindow.contracts.row_faults import NEVER_ARRIVED, NO_TIMESTAMP, not_a_time
from rewindow.contracts.staged_files import StagedFile
from rewindow.engine.worker.arrow_rows import arrow_schema, decode
from rewindow.engine.worker.bad_rows import checks_units, fix_of, unit_faults
from rewindow.engine.worker.landing.sorted_runs import ARRIVED, FAULT, NO_TIME, TIMESTAMP, by_partition, longs
from rewindow.engine.worker.landing.source_order import TopicOffsets, interleaved
from rewindow.engine.worker.parquet_writer import FileWriter
from rewindow.engine.worker.spark_json import canonical_json, json_readers
from rewindow.engine.worker.staging import QuarantineWriter, record_text
from rewindow.engine.worker.timestamps import Extractor, InvalidTimestampError, Judged, Longs, Refusal, extract, judge
from rewindow.errors import ConfigError, DataError, SourceError
from rewindow.streams.record import UNKNOWN, Record
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import log_shape

_SHOWN_KEYLESS = 3
"""A block names at most this many offsets of records without a key."""
_LOOK = 1024
"""This many rows are compared first. They usually show that a column varies, and then no other row is compared."""
_LONGEST = 60


def write_log(write: LogWrite, batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    """Write the rows of sorted batches; yield a block for each landing and partition with rows.

    Raises `DataError` (65), which names the record, if the timestamp policy rejects a record. Raises `SourceError` (66) for
    rows that arrived after the landings were numbered.
    """
    name = write.spec.extractor
    extractor = load_extractor(name) if name else None
    block: OpenBlock | None = None
    positions = dict(write.starts)
    starts = [pending.start_ms for pending in write.landings]
    try:
        # An output's rows are ordered by key. They are sorted by time before they get offsets.
        ordered = interleaved(write, batches) if write.spec.is_output else batches
        topic = TopicOffsets(write) if write.spec.topic_positions else None
        ordered = topic.checked(ordered) if topic else ordered
        for partition, rows in chain.from_iterable(map(by_partition, _canonical(write, ordered))):
            start = 0
            while start < rows.num_rows:
                landing, count, behind = _next_landing(write, starts, rows.slice(start))
                if block is None or (block.landing, block.partition) != (landing, partition):
                    if block is not None:
                        positions[block.partition] = block.position
                        yield _closed(block, topic)
                    block = OpenBlock(write, landing, partition, positions.get(partition, (0, UNKNOWN)), extractor)
                part = rows.slice(start, count)
                block.add(_without_arrival(part) if write.spec.is_output else part, behind)
                start += count
        if block is not None:
            yield _closed(block, topic)
            block = None
    finally:
        if block is not None:
            block.abort()


def _closed(block: OpenBlock, topic: TopicOffsets | None) -> Block:
    closed = block.close()
    return closed if topic is None else replace(closed, base=topic.last[closed.partition] + 1 - closed.end)


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


def _without_arrival(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of another job's output with arrivals of null.

    In ``rows``, the column of arrivals has the numbers of epochs.
    """
    position = rows.schema.get_field_index(ARRIVED)
    return rows.set_column(position, rows.schema.field(position), pa.nulls(rows.num_rows, pa.int64()))


def _next_landing(write: LogWrite, starts: list[int], rows: pa.RecordBatch) -> tuple[PendingLanding, int, int]:
    """Return the landing of the first row, the number of rows in it, and how many of them missed their own landing."""
    if len(write.landings) == 1 and write.landings[0].interval is None:
        return write.landings[0], rows.num_rows, 0
    # Rows without an arrival come first. Rows that arrived in an interval that is already landed go to the first of the new
    # landings.
    times = longs(rows.column(ARRIVED), -FAR)
    landing = write.landings[max(bisect_right(starts, int(times[0])) - 1, 0)]
    count = int(np.searchsorted(times, landing.end_ms, side="left"))
    # The landings were numbered from the arrivals of these rows. A row that arrived after the end of the landing was therefore
    # added since.
    if count == 0:
        raise SourceError(
            "source-changed-while-landing",
            "{source} received rows during the landing (arrival {arrival}). Land again",
            source=write.spec.source.name,
            arrival=int(times[0]),
        )
    # Rows without an arrival come first. They do not count as rows that missed their landing, because their arrival is unknown.
    unknown = rows.column(ARRIVED).slice(0, count).null_count
    return landing, count, int(np.searchsorted(times[:count], landing.start_ms, side="left")) - unknown


def load_extractor(name: str) -> Extractor:
    """Return the function with the name ``module:function``. Raises `ConfigError` (78) if it cannot be imported."""
    module_name, _, function_name = name.partition(":")
    try:
        # The module may print. Standard output is reserved for the command's own output, such as JSON.
        with redirect_stdout(sys.stderr):
            extractor: Extractor = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            "timestamp-function-missing",
            "timestamp: {function} cannot be imported ({reason}). Use a module:function that the project's root can import",
            function=name,
            reason=str(error),
        ) from error
    return extractor


class OpenBlock:
    """A block under construction: call `add` with rows, then `close`. Not thread-safe."""

    def __init__(
        self,
        write: LogWrite,
        landing: PendingLanding,
        partition: int,
        position: tuple[int, int],
        extractor: Extractor | None,
    ) -> None:
        self.landing, self.partition = landing, partition
        self._write = write
        self._extractor = extractor
        self._checks_units = checks_units(write)
        self._start, self._time = position
        self._end = self._start
        self._behind = self._unarrived = self._keyless = 0
        self._keyless_at: list[int] = []
        self._schema = arrow_schema(_log_file_columns(write.columns))
        self._file: FileWriter | None = None
        self._files: list[StagedFile] = []
        self._quarantine = QuarantineWriter(write, landing, partition)
        self._refused = ""
        self._flat = FlatColumns([column.name for column in write.columns.all])

    @property
    def position(self) -> tuple[int, int]:
        """The next offset, and the partition time, after the rows that were added so far."""
        return self._end, self._time

    def add(self, rows: pa.RecordBatch, behind: int) -> None:
        """Add rows in order. ``behind`` is how many of them became visible too late for their own landing.

        Raises `DataError` (65), which names the record, if the timestamp policy rejects a record.
        """
        self._behind += behind
        try:
            judged = self._judge(rows)
        except InvalidTimestampError as error:
            raise self._named(rows.slice(error.row, 1), error) from error
        self._time = judged.partition_time
        times = judged.timestamps
        if judged.refusals:
            refusals = [
                Refusal(refusal.row, _described(rows, refusal.row, refusal.reason)) for refusal in judged.refusals
            ]
            self._refused = self._refused or refusals[0].reason
            self._quarantine.add(rows, refusals)
            rows, times = rows.filter(pa.array(judged.keep)), times[judged.keep]
        if rows.num_rows:
            self._append(rows, times)

    def close(self) -> Block:
        """Make the files durable and return the block."""
        self._finish_file()
        return Block(
            landing=self.landing.number,
            partition=self.partition,
            start=self._start,
            end=self._end,
            max_timestamp=self._time,
            behind=self._behind,
            quarantined=self._quarantine.rows,
            files=tuple(self._files),
            quarantine=self._quarantine.close(),
            refused=self._refused,
            flat=self._flat.shown(),
            unarrived=self._unarrived,
            keyless=self._keyless,
            keyless_at=tuple(self._keyless_at),
        )

    def abort(self) -> None:
        """Delete the files that are not complete."""
        if self._file is not None:
            self._file.abort()
        self._quarantine.abort()

    def _append(self, rows: pa.RecordBatch, times: Longs) -> None:
        count = rows.num_rows
        columns = [
            pa.array(np.arange(self._end, self._end + count)),
            pa.array(times),
            pa.array(np.full(count, self.landing.number)),
            rows.column(ARRIVED),
            *(rows.column(column.name) for column in self._write.columns.all),
        ]
        self._note_keyless(rows)
        self._end += count
        self._flat.add(rows)
        if self._file is None:
            self._file = self._new_file()
        self._file.write(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        if self._file.rows >= self._write.file_rows:
            self._finish_file()

    def _note_keyless(self, rows: pa.RecordBatch) -> None:
        """Count the records whose key is null. A key of several columns is a row, and a row is never null."""
        columns = self._write.columns
        keys = rows.column(columns.key[0].name) if columns.scalar_key else None
        if keys is None or not keys.null_count:
            return
        if (lacking := _SHOWN_KEYLESS - len(self._keyless_at)) > 0:
            rows_without_key = np.flatnonzero(np.asarray(keys.is_null()))[:lacking]
            self._keyless_at += (rows_without_key + self._end).tolist()
        self._keyless += keys.null_count

    def _judge(self, rows: pa.RecordBatch) -> Judged:
        faults = rows.column(FAULT)
        reasons: list[str | None] = [] if faults.null_count == rows.num_rows else faults.to_pylist()
        self._unarrived += reasons.count(NEVER_ARRIVED)
        near, ahead = self._recorded(rows.column(ARRIVED)), self._write.policy.max_ahead_ms
        # Without `max_ahead`, the limit is larger than any timestamp.
        limits = FAR * 2 - 1 if ahead is None else near + ahead
        if self._extractor is None:
            times = rows.column(TIMESTAMP)
            if self._checks_units and (wrong := unit_faults(times, near)):
                reasons = reasons or [None] * rows.num_rows
                for row, reason in wrong.items():
                    reasons[row] = reasons[row] or reason
            return judge(times, limits, reasons, self._write.policy, self._time)
        records = _records(self._write.columns, rows)
        return extract(
            self._extractor,
            records,
            limits,
            reasons,
            self._write.policy,
            self._time,
            near if self._checks_units else None,
        )

    def _recorded(self, arrivals: pa.Array) -> Longs | int:
        """Return when the rows arrived (epoch ms).

        An unknown arrival counts as the end of the landing's interval, or now (D19).
        """
        recorded = self.landing.end_ms if self.landing.interval else self._write.now_ms
        return recorded if self._write.spec.arrived_at is None else longs(arrivals, recorded)

    def _named(self, row: pa.RecordBatch, error: InvalidTimestampError) -> DataError:
        write, reason = self._write, _described(row, 0, error.reason)
        return DataError(
            "record-invalid",
            "feed {feed}, topic {topic}, partition {partition}, the record {record} ({arrival}): {reason}. {fix}",
            feed=write.feed,
            topic=write.spec.topic,
            partition=self.partition,
            record=record_text(write.columns.all, row)[0],
            arrival=_arrived(row.column(ARRIVED)[0].as_py()),
            reason=reason,
            fix=fix_of(reason, write.spec),
        )

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
            stats_columns=[column.name for column in LOG_COLUMNS],
        )

    def _finish_file(self) -> None:
        if self._file is not None and (file := self._file.close()) is not None:
            self._files.append(file)
        self._file = None


class FlatColumns:
    """A search for the columns in which all rows of a block have the same value.

    A column that has varied is not compared again.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._values: dict[str, pa.Scalar | None] = dict.fromkeys(names)

    def add(self, rows: pa.RecordBatch) -> None:
        """Compare the next rows of a block with those before. There is at least one row."""
        for name, value in list(self._values.items()):
            column = rows.column(name)
            first = column[0] if value is None else value
            # Most columns vary within the first rows, so the other rows are rarely compared.
            if _is_only(first, column.slice(0, _LOOK)) and _is_only(first, column):
                self._values[name] = first
            else:
                del self._values[name]

    def shown(self) -> dict[str, str | None]:
        """Return the columns that did not vary, each with its value as text; None if the column has only nulls."""
        values = {name: value.as_py() for name, value in self._values.items() if value is not None}
        return {name: None if value is None else str(value)[:_LONGEST] for name, value in values.items()}


def _log_file_columns(columns: LogColumns) -> tuple[Column, ...]:
    """Return the columns of a log's files: the columns of the table without ``generation`` and ``partition``."""
    return (*LOG_COLUMNS, *columns.all)


def _described(rows: pa.RecordBatch, row: int, reason: str) -> str:
    """Return why a row is refused. The text quotes the row's timestamp if that is a text which is not a valid time."""
    text = rows.column(NO_TIME)[row].as_py() if NO_TIME in rows.schema.names else None
    return not_a_time("timestamp", text) if reason == NO_TIMESTAMP and text is not None else reason


def _records(columns: LogColumns, rows: pa.RecordBatch) -> list[Record]:
    """Return the rows as records for an extractor.

    The timestamp of such a record is its arrival; None if the arrival is unknown.
    """
    key, value = (
        log_shape(columns.key, is_scalar=columns.scalar_key),
        log_shape(columns.value, is_scalar=columns.scalar_value),
    )
    parts = (decode(shape, [rows.column(name) for name in shape.names], rows.num_rows) for shape in (key, value))
    return [Record(*record) for record in zip(*parts, rows.column(ARRIVED).to_pylist(), strict=True)]


def _arrived(arrival_ms: int | None) -> str:
    return "without an arrival" if arrival_ms is None else f"arrived at {instant(arrival_ms)}"


def _is_only(value: pa.Scalar, column: pa.Array) -> bool:
    """Return whether a column has no value other than ``value``. A null counts as a value that differs from all others."""
    distinct = pc.unique(column)
    return len(distinct) == 1 and bool(distinct[0].equals(value))
