"""The due rows of a source's files, read with Arrow, as the columns that the log writer expects.

A row is *due* if the landing in progress is to land it. The partition of a row is the CRC-32 of its key's bytes, modulo the
number of partitions (ADR-4). Each distinct key of a batch is encoded and hashed once (`streams.serde.key_bytes`). The batches
of a source mostly have the same keys, so the partitions of a batch's keys are cached for the next batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.contracts.ingest import ARRIVAL, Arrivals, Intervals, LogColumns, LogSpec, Piece, ReadWindow, SourceLook
from rewindow.contracts.instants import MILLISECONDS, RANGES
from rewindow.contracts.row_faults import ARRIVED_AT, NEVER_ARRIVED, UNREADABLE, other_unit
from rewindow.contracts.source_fields import read_columns
from rewindow.engine.worker.bad_rows import BadRowsError, BadTimes, BadTimesFound, fix_of, wrong_text
from rewindow.engine.worker.landing.parquet_files import StoredRows, naming_large, stored_batches
from rewindow.engine.worker.landing.sorted_runs import (
    ARRIVED,
    FAULT,
    FILE,
    NO_TIME,
    PARTITION,
    ROW,
    TIMESTAMP,
    order_name,
)
from rewindow.engine.worker.landing.source_types import INTEGERS, TIMES, arrow_type, as_landed, as_time
from rewindow.engine.worker.text.pages import Page
from rewindow.engine.worker.text.text_rows import BadValueError, TextRows
from rewindow.engine.worker.timestamps import arrivals_of
from rewindow.streams.serde.key_bytes import encode_key


@dataclass(frozen=True, slots=True)
class Portion:
    """A unit of reading: some row groups of a file, or a page of a text file.

    Rows of the portion that arrived in ``[from_ms, until_ms)`` are due. A bound of None leaves that side open.
    ``with_unknown``: whether rows without an arrival are due, too. ``file`` is the index of the file among the source's
    files, sorted by name. ``first_row`` is the number of rows in the file before this page. A large text file is read in
    parts of several pages. ``first_line`` is the number of lines in the file before the part that contains this page.
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

    ``types`` maps the source's columns to the names that Spark has for their types. For text files, it also has the paths of
    fields in objects, and the type of a nested value is an object. ``needs_arrival``: whether a row without an arrival is
    faulty.
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
        with naming_large(portion.piece.path), self._naming():
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
        """Yield pairs (arrivals, faults) of the due rows of a portion. Arrivals are epoch milliseconds.

        Of a Parquet file, only the column of arrivals is read.
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
        """Return an upper bound (epoch ms) of the arrivals in a row group of a file; None if its statistics give no bound.

        The statistics give no bound in these cases:

        * The arrivals come from the names of directories or from the table's metadata.
        * The column of arrivals has neither an integer type nor a time type.
        * The largest arrival is an integer in another unit than milliseconds.
        * The largest arrival is beyond the year 9999, which Python cannot represent.
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
        arrived, _ = self._arrived(StoredRows(pa.record_batch([stored], names=[source]), Piece(""), self.types))
        last = arrived[0].as_py()
        # The statistics of nanoseconds are rounded down, so the last arrival may be a little later than `last`.
        return None if last is None else last + 1

    def _file_order(self, portion: Portion, first_row: int, rows: int) -> dict[str, pa.Array]:
        """Return the columns of `FILE_ORDER`; none if another order is declared."""
        if not self.spec.in_file_order:
            return {}
        numbers = pa.array(np.arange(first_row, first_row + rows))
        return {FILE: pa.repeat(pa.scalar(portion.file, pa.int64()), rows), ROW: numbers}

    def _found(self, portion: Portion, names: set[str]) -> Iterator[tuple[StoredRows | TextRows, int]]:
        """Yield batches of a portion, each with the number of rows that precede it in the file."""
        if portion.page is not None:
            yield self.text_rows(portion), portion.first_row
            return
        keys = [source for column in self.columns.key if self.types[source := self.sources[column.name]] == "string"]
        for batch, first_row in stored_batches(
            portion.piece, portion.row_groups, names, [key for key in keys if key in names]
        ):
            yield StoredRows(batch, portion.piece, self.types), first_row

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
        self, batch: StoredRows | TextRows, arrived: pa.Array, faults: pa.Array, file_order: Mapping[str, pa.Array]
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
        """Return one column, by its name, with the texts that are not valid times, for the quarantine and messages.

        Returns an empty dict if the timestamps have no column of their own.
        """
        if self.spec.extractor or self.spec.timestamp == ARRIVAL:
            return {}
        texts = batch.texts(self.sources[self.spec.timestamp])
        return {NO_TIME: pc.if_else(timestamp.is_null(), texts, pa.scalar(None, pa.string()))}

    def _arrived(self, batch: StoredRows | TextRows) -> tuple[pa.Array, pa.Array]:
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

    def _time(self, batch: StoredRows | TextRows, name: str) -> pa.Array:
        source, zone = self.sources[name], self.spec.zone
        kind = self.types[source]
        if isinstance(batch, TextRows) and kind not in INTEGERS:
            return as_time(batch.instants(source), "timestamp", zone)
        return as_time(batch.column(source), kind, zone, self.spec.units.get(name, MILLISECONDS))


@dataclass(frozen=True, slots=True)
class ArrowSource:
    """The due rows of a log's source: the reader, the portions that contain the rows, and an upper bound of their number."""

    reader: RowReader
    portions: tuple[Portion, ...]
    rows: int

    def arrivals(self, intervals: Intervals, until_ms: int) -> Arrivals:
        """Return the intervals in which the due rows arrived. Rows that arrived at ``until_ms`` or later wait."""
        columns = chain.from_iterable(map(self.reader.arrivals, self.portions))
        return arrivals_of(intervals, until_ms, columns)

    def first_arrivals(self) -> dict[str, int]:
        """Return the first arrival (epoch ms) of the due rows in each file, by file."""
        arrivals: dict[str, int] = {}
        for portion in self.portions:
            name = portion.piece.name
            for arrived, _ in self.reader.arrivals(portion):
                if (arrival_ms := pc.min(arrived).as_py()) is not None:
                    arrivals[name] = min(arrival_ms, arrivals.get(name, arrival_ms))
        return arrivals

    def bad_times(self, column: str) -> BadTimes | None:
        """Return the rows of text files without a valid time in ``column`` (its name in the log); None if all are valid."""
        reader = self.reader
        spec, source = reader.spec, reader.sources[column]
        kind, faults_found = reader.types[source], BadTimesFound(column)
        is_checked = kind in INTEGERS and column not in spec.units
        for portion in self.portions:
            rows = reader.text_rows(portion)
            times = reader.times(rows, column)
            is_bad = times.is_null()
            if column != spec.arrived_at:
                is_bad = pc.or_(is_bad, pc.less(times, 0).fill_null(True))
            for low, end in RANGES.values() if is_checked else ():
                is_within = pc.and_(pc.greater_equal(times, low), pc.less(times, end))
                is_bad = pc.or_(is_bad, is_within.fill_null(False))
            if not pc.any(is_bad, min_count=0).as_py():
                continue
            texts, faults = rows.texts(source), rows.faults()
            for row in pc.indices_nonzero(is_bad).to_pylist():
                if not faults[row].is_valid:
                    wrong = wrong_text(spec, column, texts[row].as_py(), times[row].as_py(), is_number=kind in INTEGERS)
                    faults_found.add(wrong, rows.location(row))
        return faults_found.summary()


def reader_of(
    spec: LogSpec, columns: LogColumns, types: Mapping[str, Any], window: ReadWindow, partitions: int
) -> RowReader:
    """Return the reader of a source's rows, which also reads arrivals if the window or the log needs them."""
    needs_arrival = window.until_ms is not None or spec.arrived_at is not None
    return RowReader(spec, columns, types, partitions, needs_arrival=needs_arrival)


def due_portions(look: SourceLook, window: ReadWindow) -> list[tuple[Portion, Sequence[Piece]]]:
    """Return pairs (portion, files): one for fresh files and, if rows of files from earlier landings may be due, one for those.

    The portion names no file. It only says when rows that are due arrived.
    """
    until, through = window.until_ms, window.through_ms
    fresh = Portion(Piece(""), (), None, until)
    if look.overlapping and through is not None and until is not None:
        fresh = replace(fresh, until_ms=through)
    if until is None or through is None:
        return [(fresh, look.fresh)]
    return [(fresh, look.fresh), (Portion(Piece(""), (), through, until, with_unknown=False), look.rest)]


def split_evenly(source: ArrowSource, tasks: int) -> list[Sequence[Portion]]:
    """Divide the row groups of a source among tasks. Return the portions of each task."""
    groups = [replace(portion, row_groups=(group,)) for portion in source.portions for group in portion.row_groups]
    share = -(-len(groups) // max(tasks, 1)) or 1
    return [groups[start : start + share] for start in range(0, len(groups), share)]


def no_position(spec: LogSpec, partitions: int) -> str:
    """Return the reason for refusing a record of a recorded topic that has no valid partition or offset."""
    return f"{UNREADABLE}: {' and '.join(spec.position_columns)} are not a partition from 0 to {partitions - 1} and an offset"


def _ordered(column: pa.Array) -> Any:
    """Return a column of dates or times as integers that sort in the same order. Other columns are returned unchanged."""
    if pa.types.is_date(column.type):
        return column.cast(pa.int32()).cast(pa.int64())
    return column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column


_NULL_PARTITION = 0
"""The partition of records without a key."""
_MOST_KEPT = 1 << 16
"""The cache holds the partitions of at most this many key values. If a batch has more, values rarely repeat, so only its own
are kept."""
_known: dict[int, tuple[pa.Array, npt.NDArray[np.int32]]] = {}
"""The cache: for a number of partitions, the key values of the last dictionaries and the partitions of these values."""


def partitions_of(keys: Sequence[pa.Array], *, is_scalar: bool, partitions: int) -> pa.Array:
    """Return the partition of each row, given its landed key columns. A key of several columns is never null."""
    rows = len(keys[0])
    if is_scalar and pa.types.is_string(keys[0].type):
        keys = [keys[0].dictionary_encode()]
    if is_scalar and pa.types.is_dictionary(keys[0].type):
        return pa.array(_partitions_of_dictionary(keys[0].dictionary, partitions)[_indices(keys[0])])
    codes, values = zip(*map(_coded, keys), strict=True)
    if is_scalar:
        return pa.array(_hashed(values[0], partitions)[codes[0]])
    combined: npt.NDArray[np.int64] = np.zeros(rows, dtype=np.int64)
    for code, distinct in zip(codes, values, strict=True):
        # The combinations of values are renumbered after each column. So a number never exceeds the number of rows times the
        # number of distinct values in a column.
        combined = np.unique(combined * len(distinct) + code, return_inverse=True)[1].astype(np.int64)
    _, first_rows = np.unique(combined, return_index=True)
    distinct_keys = [
        tuple(distinct[code[row]] for code, distinct in zip(codes, values, strict=True)) for row in first_rows.tolist()
    ]
    return pa.array(_hashed(distinct_keys, partitions)[combined])


def _coded(column: pa.Array) -> tuple[npt.NDArray[np.int64], list[object]]:
    """Return a code for each row, and the value of each code. The last code stands for null."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return _indices(coded).astype(np.int64), [*coded.dictionary.to_pylist(), None]


def _indices(coded: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    """Return the dictionary's index of each row. The index of null is the length of the dictionary."""
    indices = coded.indices.fill_null(len(coded.dictionary)) if coded.null_count else coded.indices
    return np.asarray(indices)


def _partitions_of_dictionary(dictionary: pa.Array, partitions: int) -> npt.NDArray[np.int32]:
    """Return the partitions of a dictionary's values, followed by the partition of null.

    Cached values are not hashed again.
    """
    kept, of_kept = _known.get(partitions, (dictionary.slice(0, 0), np.zeros(0, np.int32)))
    if kept.type != dictionary.type:
        kept, of_kept = dictionary.slice(0, 0), of_kept[:0]
    positions = pc.index_in(dictionary, value_set=kept)
    is_new = np.asarray(positions.is_null())
    partition_of = np.full(len(dictionary) + 1, _NULL_PARTITION, np.int32)
    partition_of[:-1][~is_new] = of_kept[np.asarray(positions.drop_null())]
    if is_new.any():
        new = dictionary.filter(pa.array(is_new))
        of_new = _hashed([*new.to_pylist(), None], partitions)[:-1]
        partition_of[:-1][is_new] = of_new
        fits = len(kept) + len(new) <= _MOST_KEPT
        kept, of_kept = (
            (pa.concat_arrays([kept, new]), np.concatenate([of_kept, of_new])) if fits else (new[:_MOST_KEPT], of_new)
        )
        _known[partitions] = kept, of_kept[:_MOST_KEPT]
    return partition_of


def _hashed(keys: Sequence[object], partitions: int) -> npt.NDArray[np.int32]:
    if keys and all(isinstance(key, str) for key in keys[:-1]) and keys[-1] is None:
        hashes = [crc32(key.encode()) for key in keys[:-1]]  # type: ignore[attr-defined] # all are str
        return np.array([*(number % partitions for number in hashes), _NULL_PARTITION], dtype=np.int32)
    numbers = [_NULL_PARTITION if key is None else crc32(encode_key(key)) % partitions for key in keys]
    return np.array(numbers, dtype=np.int32)
