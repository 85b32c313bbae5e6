"""Read the due rows of a source's files with Arrow, as the columns that the log writer expects.

A row is *due* if the landing in progress takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.contracts.ingest import ARRIVAL, LogColumns, LogSpec, Piece
from rewindow.contracts.instants import MILLISECONDS, RANGES
from rewindow.contracts.row_faults import ARRIVED_AT, NEVER_ARRIVED, UNREADABLE, other_unit
from rewindow.contracts.source_fields import read_columns
from rewindow.engine.worker.bad_rows import BadRowsError, fix_of
from rewindow.engine.worker.key_partitions import _NULL_PARTITION, partitions_of
from rewindow.engine.worker.landing.source_types import (
    INTEGERS,
    TIMES,
    UnsuitableError,
    arrow_type,
    as_landed,
    as_time,
    in_micros,
    shown_type,
)
from rewindow.engine.worker.log_blocks import ARRIVED, FAULT, FILE, NO_TIME, PARTITION, ROW, TIMESTAMP, order_name
from rewindow.engine.worker.text.pages import Page
from rewindow.engine.worker.text.text_rows import BadValueError, TextRows
from rewindow.errors import LimitError, StorageError
from rewindow.storage.locations import filesystem_of

_READ_ROWS = 1 << 18
_READ_BYTES = 32 << 20
"""The most rows and (uncompressed) bytes of a batch."""
_CODED = frozenset({"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"})


@dataclass(frozen=True, slots=True)
class Portion:
    """Some row groups of a file, or a page of a text file. Their rows that arrived in ``[from_ms, until_ms)`` are due.

    If a bound is None, there is no bound. ``with_unknown`` says whether rows without an arrival are due. ``first_line`` is the
    number of lines in the file before the part that has this page. ``first_row`` is the number of rows in the file before this
    page. ``file`` is the number of the file among all files of the source, in the order of their names.
    """

    piece: Piece
    row_groups: tuple[int, ...]
    from_ms: int | None = None
    until_ms: int | None = None
    with_unknown: bool = True
    page: Page | None = None
    first_line: int = 0
    first_row: int = 0
    file: int = 0

    def due(self, arrived: pa.Array) -> pa.Array:
        """Return a mask of the rows that are due, given their arrivals (epoch ms)."""
        is_due = pa.repeat(pa.scalar(value=True), len(arrived))
        if self.until_ms is not None:
            is_due = pc.less(arrived, self.until_ms)
        if self.from_ms is not None:
            is_due = pc.and_(is_due, pc.greater_equal(arrived, self.from_ms))
        return is_due.fill_null(self.with_unknown) if is_due.null_count else is_due


@dataclass(frozen=True, slots=True)
class RowReader:
    """A reader of a log's source, which also converts the rows.

    ``types`` maps the source's columns to their types, by Spark's names. For text files, it also has the paths of fields in
    objects, and the type of a nested value is an object. ``needs_arrival``: whether a row without an arrival is faulty.
    """

    spec: LogSpec
    columns: LogColumns
    types: Mapping[str, Any]
    partitions: int
    needs_arrival: bool

    @property
    def sources(self) -> dict[str, str]:
        """Maps each column's name in the log to its name in the source."""
        return {name: source for source in self.types for name in self.spec.names_of(source)}

    def needed(self) -> set[str]:
        """Return the names of the source's columns that have to be read."""
        return read_columns(self.spec, self.columns)

    def read(self, portion: Portion) -> Iterator[pa.RecordBatch]:
        """Yield the due rows of a portion.

        Raises `StorageError` (74) for a file that cannot be read, `BadRowsError` (65) for a value that does not fit into its
        type, and `LimitError` (71) if the rows do not fit into memory.
        """
        with _fitting(portion.piece.path), self._naming():
            for rows, first_row in self._found(portion, self.needed()):
                arrived, faults = self._arrived(rows)
                due = portion.due(arrived)
                file_order = self._file_order(portion, first_row, rows.rows)
                if pc.all(due).as_py():
                    yield from self._converted(rows, arrived, faults, file_order)
                else:
                    file_order = {name: column.filter(due) for name, column in file_order.items()}
                    yield from self._converted(rows.filter(due), arrived.filter(due), faults.filter(due), file_order)

    def arrivals(self, portion: Portion) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Yield the arrivals of the due rows of a portion (epoch ms), and the faults of these rows.

        Reads only the column of arrivals of Parquet files.
        """
        name = self.spec.arrived_at
        with self._naming():
            for batch, _ in self._found(portion, {self.sources[name]} if name else set()):
                arrived, faults = self._arrived(batch)
                due = portion.due(arrived)
                faults = pc.coalesce(batch.faults(), faults) if isinstance(batch, TextRows) else faults
                yield arrived.filter(due), faults.filter(due)

    def text_rows(self, portion: Portion) -> TextRows:
        """Return the rows of a page of a text file."""
        page = Page(0, pa.record_batch({})) if portion.page is None else portion.page
        times = frozenset(
            self.sources[name] for name in (self.spec.timestamp, self.spec.arrived_at) if name in self.sources
        )
        return TextRows(self.spec, self.types, times, page.read(), portion.piece, portion.first_line)

    def times(self, batch: TextRows, name: str) -> pa.Array:
        """Return a column of times of text rows as epoch milliseconds; invalid times are null."""
        return self._time(batch, name)

    def latest(self, piece: Piece, group: pq.RowGroupMetaData) -> int | None:
        """Return a time (epoch ms) that no arrival in a row group of a file exceeds.

        Returns None if the row group's statistics give no such time. That is so if the column of arrivals is in the names of
        directories or in the table's metadata, if its type is neither a whole number nor a time, or if its maximum is in another
        unit or beyond the year 9999, which Python cannot represent.
        """
        source = self.sources[self.spec.arrived_at] if self.spec.arrived_at else None
        if source is None or source in dict(piece.values) or self.types[source] not in (*INTEGERS, *TIMES):
            return None
        for number in range(group.num_columns):
            column = group.column(number)
            if column.path_in_schema == source and column.is_stats_set and column.statistics.has_min_max:
                return self._bound(source, column.statistics)
        return None

    def _bound(self, source: str, statistics: pq.Statistics) -> int | None:
        try:
            stored = pa.array([statistics.max], arrow_type(self.types[source]))
        except (pa.ArrowException, OverflowError, TypeError):
            return None
        arrived, _ = self._arrived(_StoredRows(pa.record_batch([stored], names=[source]), Piece(""), self.types))
        last = arrived[0].as_py()
        # The statistics of nanoseconds are rounded down, so the last arrival may be a little later than `last`.
        return None if last is None else last + 1

    def _file_order(self, portion: Portion, first_row: int, rows: int) -> dict[str, pa.Array]:
        """Return the columns of `FILE_ORDER`; none if another order is declared."""
        if not self.spec.in_file_order:
            return {}
        numbers = pa.array(np.arange(first_row, first_row + rows))
        return {FILE: pa.repeat(pa.scalar(portion.file, pa.int64()), rows), ROW: numbers}

    def _found(self, portion: Portion, names: set[str]) -> Iterator[tuple[_StoredRows | TextRows, int]]:
        """Yield rows of a portion, with the number of the file's rows before them."""
        if portion.page is not None:
            yield self.text_rows(portion), portion.first_row
            return
        keys = [source for column in self.columns.key if self.types[source := self.sources[column.name]] == "string"]
        for batch, first_row in _batches(portion, names, [key for key in keys if key in names]):
            yield _StoredRows(batch, portion.piece, self.types), first_row

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Replace a `BadValueError` of the block by an error that names the log and states the fix."""
        try:
            yield
        except BadValueError as error:
            raise BadRowsError(
                "source-value-invalid",
                "log {topic}: {reason}. {fix}",
                topic=self.spec.topic,
                reason=str(error),
                fix=fix_of(UNREADABLE, self.spec),
            ) from error

    def _converted(
        self, batch: _StoredRows | TextRows, arrived: pa.Array, faults: pa.Array, file_order: Mapping[str, pa.Array]
    ) -> Iterator[pa.RecordBatch]:
        if not batch.rows:
            return
        spec, sources, zone = self.spec, self.sources, self.spec.zone
        landed = {}
        for column in self.columns.all:
            source = sources[column.name]
            landed[column.name] = as_landed(batch.column(source), self.types[source], zone)
        timestamp = pa.nulls(batch.rows, pa.int64())
        if not spec.extractor:
            timestamp = arrived if spec.timestamp == ARRIVAL else self._time(batch, spec.timestamp)
        if self.needs_arrival and arrived.null_count:
            faults = pc.coalesce(faults, pc.if_else(arrived.is_null(), NEVER_ARRIVED, None))
        keys = [batch.coded(sources[column.name]) or landed[column.name] for column in self.columns.key]
        ordered = {order_name(name): _ordered(batch.column(sources[name])) for name in spec.order if name not in landed}
        no_time = {}
        if isinstance(batch, TextRows):
            faults = pc.coalesce(batch.faults(), faults)
            no_time = self._no_time(batch, timestamp)
        if spec.topic_positions is None:
            partition = partitions_of(keys, is_scalar=self.columns.scalar_key, partitions=self.partitions)
        else:
            partition, offset = (batch.column(sources[name]).cast(pa.int64()) for name in spec.topic_positions)
            is_in_range = pc.and_(pc.greater_equal(partition, 0), pc.less(partition, self.partitions))
            is_valid = pc.and_(is_in_range, pc.greater_equal(offset, 0)).fill_null(fill_value=False)
            faults = pc.coalesce(faults, pc.if_else(is_valid, None, no_position(spec, self.partitions)))
            partition = pc.if_else(faults.is_valid(), _NULL_PARTITION, partition).cast(pa.int32())
        columns = {
            PARTITION: partition,
            ARRIVED: arrived,
            TIMESTAMP: timestamp,
            FAULT: faults,
            **landed,
            **ordered,
            **file_order,
            **no_time,
        }
        yield pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _no_time(self, batch: TextRows, timestamp: pa.Array) -> dict[str, pa.Array]:
        """Return a column of the texts that are not valid times, for the quarantine and messages, by its name.

        Returns no column if the timestamps are not in a column of their own.
        """
        if self.spec.extractor or self.spec.timestamp == ARRIVAL:
            return {}
        texts = batch.texts(self.sources[self.spec.timestamp])
        return {NO_TIME: pc.if_else(timestamp.is_null(), texts, pa.scalar(None, pa.string()))}

    def _arrived(self, batch: _StoredRows | TextRows) -> tuple[pa.Array, pa.Array]:
        """Return the arrivals (epoch ms), and a fault for each row whose arrival is a number in another unit."""
        faults = pa.nulls(batch.rows, pa.string())
        name = self.spec.arrived_at
        if name is None:
            return pa.repeat(pa.scalar(batch.piece.arrival_ms, pa.int64()), batch.rows), faults
        arrived = self._time(batch, name)
        if self.spec.is_output or name in self.spec.units or self.types[self.sources[name]] not in INTEGERS:
            return arrived, faults
        for unit, (low, end) in RANGES.items():
            is_wrong = pc.and_(pc.greater_equal(arrived, low), pc.less(arrived, end)).fill_null(fill_value=False)
            if pc.any(is_wrong).as_py():
                before, after = other_unit(ARRIVED_AT, "|", unit).split("|")
                reasons = pc.binary_join_element_wise(before, arrived.cast(pa.string()), after, "")
                faults, arrived = pc.if_else(is_wrong, reasons, faults), pc.if_else(is_wrong, None, arrived)
        return arrived, faults

    def _time(self, batch: _StoredRows | TextRows, name: str) -> pa.Array:
        source, zone = self.sources[name], self.spec.zone
        kind = self.types[source]
        if isinstance(batch, TextRows) and kind not in INTEGERS:
            return as_time(batch.instants(source), "timestamp", zone)
        return as_time(batch.column(source), kind, zone, self.spec.units.get(name, MILLISECONDS))


def no_position(spec: LogSpec, partitions: int) -> str:
    """Return the reason for refusing a record of a recorded topic that has no valid partition or offset."""
    return f"{UNREADABLE}: {' and '.join(spec.position_columns)} are not a partition from 0 to {partitions - 1} and an offset"


@contextmanager
def open_parquet(path: str, coded: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file. The columns ``coded`` are read dictionary-encoded, if Arrow can do so.

    If the file cannot be opened, or cannot be read within the block, raises `UnsuitableError` if it needs something that Arrow
    lacks, and otherwise `StorageError` (74).
    """
    try:
        system, location = filesystem_of(path)
        with system.open_input_file(location) as stream:
            footer = pq.read_metadata(stream)
            stored = [name for name in coded if _is_coded(footer, name)]
            file = pq.ParquetFile(stream, metadata=footer, read_dictionary=stored, page_checksum_verification=True)
            yield file
    except MemoryError:
        # Arrow's error for lack of memory is also a `pa.ArrowException`, and must not be translated below.
        raise
    except pa.ArrowNotImplementedError as error:
        raise UnsuitableError(f"{path}: {error}") from error
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise StorageError(
            "parquet-file-unreadable",
            "cannot read {file}: {reason}. Restore the file, then land again",
            file=path,
            reason=reason,
        ) from error


def _is_coded(footer: pq.FileMetaData, name: str) -> bool:
    """Return whether Arrow can read a column dictionary-encoded.

    It cannot if a page has a DELTA or another unfit encoding.
    """
    index = next((index for index in range(footer.num_columns) if footer.schema.column(index).path == name), None)
    groups = map(footer.row_group, range(footer.num_row_groups))
    return index is not None and all(_CODED.issuperset(group.column(index).encodings) for group in groups)


class _StoredRows:
    """A batch of a Parquet file.

    It also has columns whose values are in the table's metadata or in the names of directories.
    """

    def __init__(self, batch: pa.RecordBatch, piece: Piece, types: Mapping[str, str]) -> None:
        self.rows, self.piece = batch.num_rows, piece
        self._batch, self._types = batch, types
        self._values = dict(piece.values)

    def filter(self, mask: pa.Array) -> _StoredRows:
        """Return some of the rows."""
        return _StoredRows(self._batch.filter(mask), self.piece, self._types)

    def column(self, name: str) -> pa.Array:
        """Return a column with its type in the source; nulls if the file is older than the column.

        Raises `BadRowsError` (65) for a value that does not fit into the type.
        """
        kind = arrow_type(self._types[name])
        if name in self._values:
            return pa.repeat(pa.scalar(self._values[name], pa.string()), self.rows).cast(kind)
        if name not in self._batch.schema.names:
            return pa.nulls(self.rows, kind)
        column = self._batch.column(name)
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            return in_micros(column, kind)
        try:
            return column if column.type == kind else column.cast(kind)
        except pa.ArrowInvalid as error:
            # The values are milliseconds whose microseconds exceed 64 bits. Spark cannot read them either.
            raise BadRowsError(
                "parquet-value-too-large",
                "{file} has a value in {column} that does not fit into {type} ({reason}). Nothing was "
                "landed. Fix the file, then land again",
                file=self.piece.path,
                column=name,
                type=shown_type(self._types[name]),
                reason=str(error),
            ) from error

    def coded(self, name: str) -> pa.DictionaryArray | None:
        """Return a column that is read dictionary-encoded; None for other columns."""
        column = self._batch.column(name) if name in self._batch.schema.names else None
        return column if column is not None and pa.types.is_dictionary(column.type) else None


@contextmanager
def _fitting(path: str) -> Iterator[None]:
    """Name the file in the error if its rows do not fit into memory. Even a small file may have a few values of gigabytes."""
    try:
        yield
    except MemoryError as error:
        raise LimitError(
            "file-exceeds-memory",
            "the rows of {file} do not fit into memory ({reason}): give the process more memory, or write "
            "the file with smaller row groups and values",
            file=path,
            reason=str(error),
        ) from error


def _batches(portion: Portion, names: set[str], coded: Sequence[str] = ()) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield batches of a portion of a Parquet file, each with the number of rows that precede it in the file."""
    # If a column's values are outside of the file, the column is not read, because the file may have another column of this name.
    outside = dict(portion.piece.values)
    with open_parquet(portion.piece.path, [name for name in coded if name not in outside]) as file:
        stored = [name for name in file.schema_arrow.names if name in names and name not in outside]
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        first_rows = [*accumulate((group.num_rows for group in groups), initial=0)]
        for number in portion.row_groups:
            group, first_row = groups[number], first_rows[number]
            rows = max(1, min(_READ_ROWS, group.num_rows * _READ_BYTES // max(group.total_byte_size, 1)))
            for batch in file.iter_batches(rows, row_groups=[number], columns=stored):
                yield batch, first_row
                first_row += batch.num_rows


def _ordered(column: pa.Array) -> Any:
    """Return a column of dates or times as integers that sort in the same order; other columns unchanged."""
    if pa.types.is_date(column.type):
        return column.cast(pa.int32()).cast(pa.int64())
    return column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column
