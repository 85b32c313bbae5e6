"""Open Parquet files or a Delta table: decide whether Arrow lands them exactly as Spark would, and what to read.

Spark before 3.0 wrote Parquet files in another calendar, which is Julian before 1582-10-15. In this old calendar, the number
of an earlier day means another date. Timestamps before 1900 differ as well, because Java's old classes knew no local mean
time and so used other zone offsets. The footer says which calendar a file uses. Arrow would misread early values of the old
calendar, so Spark reads files that may have them. Later values mean the same in both calendars, so Arrow reads all other
files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.ingest import ARRIVAL, LogColumns, LogSpec, Piece, ReadWindow, SourceLook
from rewindow.contracts.source_fields import is_read, named_columns, read_schema
from rewindow.engine.worker.file_fields import check_not_empty, shown
from rewindow.engine.worker.landing.directories import DIRECTORY_TYPES, check_values, directory_types, directory_values
from rewindow.engine.worker.landing.parquet_files import (
    check_calendar,
    check_nanoseconds,
    check_types,
    check_whole,
    column_repeated,
    footer_of,
)
from rewindow.engine.worker.landing.source_rows import ArrowSource, Portion, RowReader, due_portions, reader_of
from rewindow.engine.worker.landing.source_types import (
    MixedTypesError,
    UnsuitableError,
    check_stored,
    fields_of,
    shown_type,
    spark_schema,
    unreadable_types,
    with_fields,
)
from rewindow.errors import SourceError


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
                # Spark itself reports all other errors in the file when it reads it.
                check_whole(spec, piece.path)
            else:
                check_nanoseconds(spec, piece.path, schema, str(error))


def open_source(
    spec: LogSpec, columns: LogColumns, look: SourceLook, window: ReadWindow, partitions: int
) -> ArrowSource:
    """Return an `ArrowSource` with the due rows of a source. Raises `UnsuitableError` if only Spark can read the source."""
    _check_kind(spec, look)
    types = fields_of(look.schema or read_schema(spec, columns))
    reader = reader_of(spec, columns, types, window, partitions)
    _check_columns(reader, look)
    numbers = look.file_numbers()
    portions = [
        _portion(reader, replace(due, file=numbers[piece.name]), piece, look)
        for due, pieces in due_portions(look, window)
        for piece in pieces
    ]
    rows = sum(count for _, count in portions)
    return ArrowSource(reader, tuple(portion for portion, count in portions if count), rows)


def _readable(
    spec: LogSpec, pieces: Sequence[Piece], is_needed: Callable[[str], bool]
) -> Iterator[tuple[str, pq.FileMetaData]]:
    """Yield the name and the footer of each file.

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
    check_calendar(piece.path, footer, inside)
    due = replace(due, piece=piece)
    groups = tuple(number for number in range(footer.num_row_groups) if not _is_over(reader, due, footer, number))
    rows = sum(footer.row_group(number).num_rows for number in groups)
    return replace(due, row_groups=groups), rows


def _is_over(reader: RowReader, due: Portion, footer: pq.FileMetaData, number: int) -> bool:
    """Return whether all rows of a row group arrived before the due rows. Such a row group is not read again."""
    if due.from_ms is None or due.with_unknown:
        return False
    last = reader.latest(due.piece, footer.row_group(number))
    return last is not None and last < due.from_ms
