"""Decide whether Arrow can land a source exactly as Spark would, and what has to be read. Opens the files' footers.

Versions of Spark before 3.0 wrote Parquet files in another calendar. It is Julian before 1582-10-15, so the number of an earlier
day means another date. Timestamps before 1900 also have other offsets of the zone, because Java's old classes knew no local mean
time. The footer says which calendar a file has. Arrow would read early values of the old calendar as wrong days, so Spark reads
files with such values. Later values mean the same in both calendars, so Arrow reads files without early values.

This module also returns the schema of a source with which a job's code is checked before anything is landed. It does so only if
it knows the schema without Spark and without reading large files. A type that is not certain is `_UNSURE`, which fits everything.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.contracts.ingest import (
    ARRIVAL,
    Arrivals,
    Intervals,
    LogColumns,
    LogSpec,
    Piece,
    ReadWindow,
    SourceLook,
)
from rewindow.contracts.instants import RANGES
from rewindow.contracts.source_fields import SMALL_JSON_BYTES, is_read, named_columns, read_schema
from rewindow.contracts.text_options import CSV, JSON, TEXT_FORMATS
from rewindow.engine.worker.bad_rows import BadTimes, BadTimesFound, wrong_text
from rewindow.engine.worker.file_fields import (
    check_has,
    check_not_empty,
    csv_columns,
    declared_columns,
    directory_columns,
    local_files,
    parquet_fields,
    shown,
)
from rewindow.engine.worker.landing.directories import (
    DIRECTORY_TYPES,
    check_values,
    directory_types,
    directory_values,
)
from rewindow.engine.worker.landing.log_columns import missing_columns, nested_renames, not_a_time
from rewindow.engine.worker.landing.parquet_footers import (
    check_nanoseconds,
    check_types,
    check_whole,
    column_repeated,
    footer_of,
)
from rewindow.engine.worker.landing.source_rows import Portion, RowReader
from rewindow.engine.worker.landing.source_types import (
    INTEGERS,
    TIMES,
    MixedTypesError,
    UnsuitableError,
    check_stored,
    fields_of,
    schema_of,
    shown_type,
    spark_schema,
    unreadable_types,
    with_fields,
)
from rewindow.engine.worker.landing.text_source import (
    TextFile,
    TextFiles,
    text_directories_of,
    text_schema,
    text_types,
)
from rewindow.engine.worker.timestamps import arrivals_of
from rewindow.errors import RewindowError, SourceError

_VERSION, _LEGACY = b"org.apache.spark.version", b"org.apache.spark.legacyDateTime"
_GREGORIAN_DAY = -141_427
"""1582-10-15 in days since 1970."""
_STANDARD_TIME_S = -2_208_988_800
"""1900-01-01 in seconds since 1970. Spark converts earlier timestamps of the old calendar."""
_PER_SECOND = {"milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class ArrowSource:
    """The due rows of a log's source: the reader, the portions of files with these rows, and an upper bound on their number."""

    reader: RowReader
    portions: tuple[Portion, ...]
    rows: int

    def arrivals(self, intervals: Intervals, until_ms: int) -> Arrivals:
        """Return the intervals in which the due rows arrived. Rows that arrived at ``until_ms`` or later wait."""
        columns = chain.from_iterable(map(self.reader.arrivals, self.portions))
        return arrivals_of(intervals, until_ms, columns)

    def first_arrivals(self) -> dict[str, int]:
        """Return a mapping from each file with due rows to the first arrival of these rows (epoch ms)."""
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


def inferred_schema(spec: LogSpec, look: SourceLook) -> str:
    """Return the schema (JSON) that Spark would infer for a source. Raises `UnsuitableError` if only Spark can infer it."""
    _check_kind(spec, look)
    if look.schema is not None:
        return look.schema
    pieces = (*look.rest, *look.fresh)
    needed, ignored = named_columns(spec), set(spec.ignore)

    def is_needed(name: str) -> bool:
        return name not in ignored if spec.value is None else is_read(name, needed)

    try:
        schema = spark_schema(_readable(spec, pieces, is_needed), is_needed)
    except UnsuitableError as error:
        raise next(_not_inferred(spec, pieces, str(error)), error) from error
    except MixedTypesError as error:
        types = " and ".join(f"{shown_type(kind)} in {file}" for file, kind in error.types)
        raise SourceError(
            "column-types-mixed",
            "log {topic}: {column} is {types}. Nothing was landed. Write the files with one type{fix}",
            topic=spec.topic,
            column=error.column,
            types=types,
            fix="" if error.column in needed else f", or set `ignore: [{error.column}]` to leave the column out",
        ) from error
    return with_fields(schema, directory_types(pieces, look.base))


def check_for_spark(spec: LogSpec, look: SourceLook, error: UnsuitableError) -> None:
    """Check a source that Spark has to read because of ``error``.

    Raises `SourceError` (66), `StorageError` (74) or `ConfigError` (78) for a source that Spark cannot read or reads wrongly.
    """
    pieces = (*look.rest, *look.fresh)
    if spec.source.format == "parquet":
        for piece in pieces:
            try:
                schema = footer_of(piece.path).schema
            except UnsuitableError:
                check_not_empty((piece,))
                # Spark itself reports all other errors in the file.
                check_whole(spec, piece.path)
            else:
                check_nanoseconds(spec, piece.path, schema, str(error))


def open_source(
    spec: LogSpec, columns: LogColumns, look: SourceLook, window: ReadWindow, partitions: int
) -> ArrowSource:
    """Return an `ArrowSource` with the due rows of a source. Raises `UnsuitableError` if only Spark can read the source."""
    _check_kind(spec, look)
    types = fields_of(look.schema or read_schema(spec, columns))
    reader = _reader(spec, columns, types, window, partitions)
    _check_columns(reader, look)
    numbers = look.file_numbers()
    portions = [
        _portion(reader, replace(due, file=numbers[piece.name]), piece, look)
        for due, pieces in _due(look, window)
        for piece in pieces
    ]
    rows = sum(count for _, count in portions)
    return ArrowSource(reader, tuple(portion for portion, count in portions if count), rows)


def open_text(
    spec: LogSpec,
    columns: LogColumns,
    look: SourceLook,
    window: ReadWindow,
    partitions: int,
    read: Callable[[Sequence[Piece]], Sequence[TextFile]],
) -> ArrowSource:
    """Return an `ArrowSource` with the due rows of text files, which ``read`` tokenizes.

    Raises `SourceError` (66) for a file without a needed column, `ConfigError` (78) if the type of a column of times cannot be
    a time, and the errors of ``read``.
    """
    types = text_types(spec, columns)
    reader = _reader(spec, columns, types, window, partitions)
    _check_times(reader)
    portions: list[Portion] = []
    numbers = look.file_numbers()
    for due, pieces in _due(look, window):
        for file in read(pieces):
            values = text_directories_of(spec, file.piece.path, look.base)
            if spec.source.format == CSV:
                check_has(spec, file.piece.path, file.names, reader.needed() - set(dict(values)))
            whole = replace(
                due, piece=replace(file.piece, values=values), row_groups=(0,), file=numbers[file.piece.name]
            )
            for page, line in file.pages():
                portions.append(replace(whole, page=page, first_line=line))
                whole = replace(whole, first_row=whole.first_row + page.rows)
    rows = sum(portion.page.rows for portion in portions if portion.page is not None)
    return ArrowSource(reader, tuple(portions), rows)


def split_evenly(source: ArrowSource, tasks: int) -> list[Sequence[Portion]]:
    """Divide the row groups of a source among tasks. Return the portions of each task."""
    groups = [replace(portion, row_groups=(group,)) for portion in source.portions for group in portion.row_groups]
    share = -(-len(groups) // max(tasks, 1)) or 1
    return [groups[start : start + share] for start in range(0, len(groups), share)]


def _readable(
    spec: LogSpec, pieces: Sequence[Piece], is_needed: Callable[[str], bool]
) -> Iterator[tuple[str, pq.FileMetaData]]:
    """Yield the names and footers of files.

    Raises `SourceError` (66) for a needed column of a type that no reader supports, or two columns with one name.
    """
    named = named_columns(spec)
    for piece in pieces:
        file, footer = shown(spec.source, piece.path), footer_of(piece.path)
        names = Counter(name.lower() for name in _roots(footer))
        if repeated := next((name for name, count in names.items() if count > 1), None):
            raise column_repeated(spec, file, repeated, names[repeated])
        for name, kind in unreadable_types(footer.schema).items():
            if is_needed(name):
                leave = "" if is_read(name, named) else f", or leave the column out: `ignore: [{name}]`"
                raise SourceError(
                    "parquet-type-unreadable",
                    "log {topic}: {file} has {column} as {type}, which Spark does not read. Nothing was landed. Write it as a "
                    "text or a number{hint}",
                    topic=spec.topic,
                    file=file,
                    column=name,
                    type=kind,
                    hint=leave,
                )
        yield file, footer


def _roots(footer: pq.FileMetaData) -> list[str]:
    try:
        names: list[str] = footer.schema.to_arrow_schema().names
    except pa.ArrowException as error:
        raise UnsuitableError(str(error)) from error
    return names


def _not_inferred(spec: LogSpec, pieces: Sequence[Piece], reason: str) -> Iterator[SourceError]:
    """Yield an error for each column whose type prevents Spark from inferring the schema.

    ``reason`` says why Spark has to infer it.
    """
    for piece in pieces:
        try:
            unreadable = unreadable_types(footer_of(piece.path).schema)
        except UnsuitableError:
            # Spark reports what is wrong with a file that has no readable footer.
            continue
        for name, kind in unreadable.items():
            yield SourceError(
                "parquet-columns-not-inferred",
                "log {topic}: {file} has {column} as {type}. Spark has to read these files, because {reason}, but cannot "
                "read this type. Nothing was landed. Write {column} as a text or a number, or leave it out of the files",
                topic=spec.topic,
                file=shown(spec.source, piece.path),
                column=name,
                type=kind,
                reason=reason,
            )


def _check_times(reader: RowReader) -> None:
    spec = reader.spec
    for role, name in (("timestamp", spec.timestamp), ("arrived_at", spec.arrived_at or ARRIVAL)):
        if name == ARRIVAL or (role == "timestamp" and spec.extractor):
            continue
        kind = reader.types[reader.sources[name]]
        if kind not in (*INTEGERS, *TIMES, "date", "string"):
            raise not_a_time(spec, name, shown_type(kind))


def _reader(
    spec: LogSpec, columns: LogColumns, types: Mapping[str, Any], window: ReadWindow, partitions: int
) -> RowReader:
    needs_arrival = window.until_ms is not None or spec.arrived_at is not None
    return RowReader(spec, columns, types, partitions, needs_arrival=needs_arrival)


def _due(look: SourceLook, window: ReadWindow) -> list[tuple[Portion, Sequence[Piece]]]:
    """Return pairs (portion, files): one for the fresh files and, if their rows may be due, one for files of earlier landings.

    The portion has no file. It only says between which arrivals rows are due.
    """
    until, through = window.until_ms, window.through_ms
    fresh = Portion(Piece(""), (), None, until)
    if look.overlapping and through is not None and until is not None:
        fresh = replace(fresh, until_ms=through)
    if until is None or through is None:
        return [(fresh, look.fresh)]
    return [(fresh, look.fresh), (Portion(Piece(""), (), through, until, with_unknown=False), look.rest)]


def _check_kind(spec: LogSpec, look: SourceLook) -> None:
    source = spec.source
    reason = None
    if spec.source_offsets or look.version is not None or look.governed is not None:
        reason = "it is a table that only Spark reads"
    elif source.options:
        reason = "it has options"
    if reason:
        raise UnsuitableError(reason)


def _check_columns(reader: RowReader, look: SourceLook) -> None:
    for column in reader.columns.all:
        source = reader.sources.get(column.name)
        if source is None or (column.type == "json" and not reader.spec.is_output):
            raise UnsuitableError(f"the column {column.name} is nested or has another type now")
    spec = reader.spec
    others = {*spec.order, *spec.position_columns, *([spec.arrived_at] if spec.arrived_at else [])}
    others |= set() if spec.timestamp == ARRIVAL or spec.extractor else {spec.timestamp}
    if not others <= set(reader.sources):
        raise UnsuitableError("it lacks a column, or the column is nested")
    for name in reader.needed().intersection(look.partition_columns):
        if reader.types[name] not in DIRECTORY_TYPES:
            raise UnsuitableError(f"the table is partitioned by {name}, which is {reader.types[name]}")


def _portion(reader: RowReader, due: Portion, piece: Piece, look: SourceLook) -> tuple[Portion, int]:
    footer = footer_of(piece.path)
    needed = {name: reader.types[name] for name in reader.needed()}
    if directories := directory_values(piece.path, look.base):
        check_values(reader.spec, directories, needed)
        piece = replace(piece, values=directories)
    outside = {*look.partition_columns, *dict(directories)}
    inside = {name: kind for name, kind in needed.items() if name not in outside}
    if reader.spec.source.format == "parquet":
        check_types(reader.spec, piece.path, footer.schema, inside)
    check_stored(footer.schema, inside)
    _check_calendar(piece.path, footer, inside)
    due = replace(due, piece=piece)
    groups = tuple(number for number in range(footer.num_row_groups) if not _is_over(reader, due, footer, number))
    rows = sum(footer.row_group(number).num_rows for number in groups)
    return replace(due, row_groups=groups), rows


def _is_over(reader: RowReader, due: Portion, footer: pq.FileMetaData, number: int) -> bool:
    """Return whether all rows of a row group arrived before the due rows, so that it need not be read again."""
    if due.from_ms is None or due.with_unknown:
        return False
    last = reader.latest(due.piece, footer.row_group(number))
    return last is not None and last < due.from_ms


def _check_calendar(path: str, footer: pq.FileMetaData, columns: Collection[str]) -> None:
    """Raise `UnsuitableError` for a file in the old calendar that may have early values in one of ``columns``."""
    if not _is_legacy(footer):
        return
    for index in range(footer.num_columns):
        column = footer.schema.column(index)
        least = _least(column) if column.path in columns else None
        if least is not None and any(
            _may_be_earlier(footer, group, index, least) for group in range(footer.num_row_groups)
        ):
            raise UnsuitableError(f"{path} has early dates in {column.path}, in the calendar of Spark before 3.0")


def _is_legacy(footer: pq.FileMetaData) -> bool:
    """Return whether a file is in the old calendar.

    As in Spark, the writer's version or the key of the legacy mode decides.
    """
    stated = footer.metadata or {}
    version = [int(part) for part in stated.get(_VERSION, b"").decode().split(".")[:1] if part.isdigit()]
    return _LEGACY in stated or any(major < 3 for major in version)


def _least(column: Any) -> int | None:
    """Return the smallest stored value that means the same time in both calendars; None if all values mean the same."""
    kind = json.loads(column.logical_type.to_json())
    if kind["Type"] == "Date":
        return _GREGORIAN_DAY
    # Spark never converts local times, so all their values mean the same.
    if kind["Type"] == "Timestamp" and kind["isAdjustedToUTC"]:
        return _STANDARD_TIME_S * _PER_SECOND[kind["timeUnit"]]
    return None


def _may_be_earlier(footer: pq.FileMetaData, group: int, index: int, least: int) -> bool:
    statistics = footer.row_group(group).column(index).statistics
    if statistics is None or not statistics.has_min_max:
        return statistics is None or statistics.null_count != footer.row_group(group).num_rows
    return int(statistics.min_raw) < least


_UNSURE = "unsure"
"""A type that is not certain."""
_MOST_BYTES = 16 << 20
"""Files are read to infer a schema only if they have at most this many bytes together."""


def wrong_columns(spec: LogSpec, look: SourceLook, texts: TextFiles | None = None) -> RewindowError | None:
    """Return the error for columns that the configuration names wrongly; None if there are none, or rows would have to be read.

    Without ``texts``, JSON files are read only if they are small.
    """
    try:
        names = _names(spec, look, texts)
    except RewindowError as error:
        return error
    return missing_columns(spec, names) if names else None


def expected_schema(spec: LogSpec, look: SourceLook) -> str | None:
    """Return the schema (Spark's JSON) of a source, with `_UNSURE` for uncertain types; None if the columns are unknown.

    Raises a `RewindowError` for files that could not be landed.
    """
    source = spec.source
    if source.format not in TEXT_FORMATS:
        try:
            return inferred_schema(spec, look)
        except UnsuitableError:
            return look.schema
    files = local_files(look.fresh)
    if source.schema is not None or sum(file.stat().st_size for file in files) <= _MOST_BYTES:
        return text_schema(spec, look, TextFiles())
    names = csv_columns(source, str(files[0])) if source.format == CSV else None
    if not names:
        return None
    kinds: dict[str, Any] = {**dict.fromkeys(names, _UNSURE), **dict.fromkeys(nested_renames(spec, names), _UNSURE)}
    keys = {old for old, new in (spec.renames or {}).items() if new in spec.key} | set(spec.key)
    return schema_of({name: "string" if name in keys else kind for name, kind in kinds.items()})


def _names(spec: LogSpec, look: SourceLook, texts: TextFiles | None) -> Sequence[str] | None:
    """Return the columns of all files; None if they are not certain. CSV columns are in the order of their first occurrence."""
    source, pieces = spec.source, (*look.rest, *look.fresh)
    if look.schema is not None or not pieces:
        return None
    directories = sorted({name for piece in pieces for name in directory_columns(piece.path, look.base)})
    if source.schema is not None:
        return [*declared_columns(spec, source.schema), *directories]
    if source.format == "parquet" and not source.options:
        files = parquet_fields(source, pieces, look.base)
        present = {name for file in files for name in file.present if "." not in name}
        return sorted(present) if len(files) == len(pieces) else None
    if source.format == JSON:
        if texts is None and sum(file.stat().st_size for file in local_files(pieces)) > SMALL_JSON_BYTES:
            return None
        read = (texts or TextFiles()).read(spec, pieces, infers=True)
        return [*sorted({name for file in read for name in file.names}), *directories]
    if source.format != CSV:
        return None
    headers = [header for piece in pieces if (header := csv_columns(source, piece.path)) is not None]
    spelling = {name.lower(): name for header in reversed(headers) for name in header}
    in_order = [name.lower() for header in headers for name in header]
    return [*(spelling[name] for name in dict.fromkeys(in_order)), *directories] if headers else None
