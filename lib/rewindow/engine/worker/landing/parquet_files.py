"""What a Parquet file's footer says: is the file whole and readable, and do its columns have the wanted types?

Spark reports a bad type only when it reads the file. It reads times without a zone as times with a zone, without any error.
So files with unsuitable types are refused before Spark reads them. Arrow reads the rows of suitable files.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.ingest import LogSpec, Piece
from rewindow.contracts.reserved_names import other_name
from rewindow.engine.worker.bad_rows import BadRowsError
from rewindow.engine.worker.landing.source_types import (
    INTEGERS,
    TIMES,
    UnsuitableError,
    arrow_type,
    decimal_of,
    fits,
    in_micros,
    shown_type,
    type_name,
)
from rewindow.errors import LimitError, SourceError, StorageError
from rewindow.storage.locations import filesystem_of

_READ_ROWS = 1 << 18
_READ_BYTES = 32 << 20
"""The most rows and (uncompressed) bytes of a batch."""
_CODED = frozenset({"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"})
_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
_SIGNATURE_BYTES = 28
"""The size in bytes of the signature after the footer. A file has one if its columns are encrypted, but its footer is not."""
_PANDAS = ': pandas writes whole numbers with a null as DOUBLE, unless they have its nullable type, `astype("Int64")`'
_UNSIGNED_DIGITS = 20
"""The number of digits of an unsigned BIGINT, which Spark reads as DECIMAL(20,0)."""
_FROM_DATE, _TEXTS = ("date", "timestamp_ntz"), ("string", "binary")

_VERSION, _LEGACY = b"org.apache.spark.version", b"org.apache.spark.legacyDateTime"
_GREGORIAN_DAY = -141_427
"""1582-10-15 in days since 1970."""
_STANDARD_TIME_S = -2_208_988_800
"""1900-01-01 in seconds since 1970. Spark converts timestamps of the old calendar that are earlier."""
_PER_SECOND = {"milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}


def check_types(spec: LogSpec, path: str, schema: pq.ParquetSchema, wanted: Mapping[str, str]) -> None:
    """Raise `SourceError` (66) if a file has a column of ``wanted`` twice, or with a type that cannot be read as wanted."""
    roots = [str(name).lower() for name in schema.to_arrow_schema().names]
    columns = {schema.column(number).path.lower(): schema.column(number) for number in range(len(schema))}
    for name, kind in wanted.items():
        if (count := roots.count(name.lower())) > 1:
            raise column_repeated(spec, Path(path).name, name, count)
        if (column := columns.get(name.lower())) is not None and (stored := _other_type(spec, column, kind)):
            raise SourceError(
                "file-column-type-differs",
                "log {topic}: {file} stores {column} as {stored}, but the log and its other files have {type}. Fix the "
                "file{hint}. If all files are to have the new type, write them again, {rename}, and `rewindow land FEED "
                "--new-generation`. Nothing was landed",
                topic=spec.topic,
                file=Path(path).name,
                column=name,
                stored=stored,
                type=shown_type(kind),
                hint=_PANDAS if kind in INTEGERS and stored == "DOUBLE" else "",
                rename=other_name(name),
            )


def footer_of(path: str) -> pq.FileMetaData:
    """Return a file's footer. Raises `UnsuitableError` for a footer that cannot be read; Spark then reports what is wrong.

    Raises `SourceError` (66) if the file is encrypted, because Arrow ends the process when it reads an encrypted column.
    """
    try:
        system, location = filesystem_of(path)
        with system.open_input_file(location) as stream:
            end = stream.read_at(8, max(0, stream.size() - 8))
            is_encrypted = end.endswith(_ENCRYPTED)
            if not is_encrypted:
                footer = pq.read_metadata(stream)
                is_encrypted = int.from_bytes(end[:4], "little") == footer.serialized_size + _SIGNATURE_BYTES
    except (OSError, pa.ArrowException) as error:
        raise UnsuitableError(f"{path}: {error}") from error
    if is_encrypted:
        raise SourceError(
            "parquet-encrypted",
            "{file} is encrypted, and `land` has no keys. Nothing was landed. Write it without encryption",
            file=path,
        )
    return footer


def check_whole(spec: LogSpec, path: str) -> None:
    """Raise `StorageError` (74) if a local file does not end as Parquet files do."""
    file = Path(path)
    if not file.is_file():
        return
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - len(_MAGIC)))
        is_whole = stream.read() == _MAGIC
    if not is_whole:
        raise StorageError(
            "parquet-file-truncated",
            "log {topic}: {file} is not a whole Parquet file: it is truncated, not completely written yet, or "
            "has another format. Nothing was landed. Restore it or wait for it, then land again",
            topic=spec.topic,
            file=file.name,
        )


def check_nanoseconds(spec: LogSpec, path: str, schema: pq.ParquetSchema, reason: str) -> None:
    """Raise `SourceError` (66) if a file has times in nanoseconds, which Spark refuses.

    ``reason`` says why Spark has to read the file.
    """
    for number in range(len(schema)):
        column = schema.column(number)
        if column.logical_type.type == "TIMESTAMP" and "nanoseconds" in column.logical_type.to_json():
            raise SourceError(
                "parquet-times-in-nanoseconds",
                "log {topic}: {file} has times in nanoseconds in {column}. Spark has to read this source, because "
                "{reason}, but cannot read nanoseconds. Nothing was landed. Write them in microseconds (pandas and "
                'pyarrow: `coerce_timestamps="us"`; polars: `cast(pl.Datetime("us"))`)',
                topic=spec.topic,
                file=Path(path).name,
                column=column.path,
                reason=reason,
            )


def column_repeated(spec: LogSpec, file: str, name: str, count: int) -> SourceError:
    """Return the error of a file that has a column several times."""
    return SourceError(
        "file-column-repeated",
        "log {topic}: {file} has the column {column} {count} times (in capitals or not): rename all but one. Nothing was landed",
        topic=spec.topic,
        file=file,
        column=name,
        count=count,
    )


def _other_type(spec: LogSpec, column: pq.ColumnSchema, wanted: str) -> str | None:
    """Return the type that a column has, if it cannot be read as the wanted type; otherwise None."""
    stored = type_name(column)
    if stored is None:
        logical = json.loads(column.logical_type.to_json())
        is_unsigned = logical["Type"] == "Int" and not logical["isSigned"] and logical["bitWidth"] == 64
        digits, scale = decimal_of(wanted) if wanted.startswith("decimal(") else (0, 0)
        return "unsigned BIGINT" if is_unsigned and digits - scale < _UNSIGNED_DIGITS else None
    if stored in TIMES and wanted in TIMES and stored != wanted:
        zones = {"timestamp": "TIMESTAMP with a zone", "timestamp_ntz": "TIMESTAMP without a zone"}
        return None if spec.zone == "UTC" else zones[stored]
    return None if fits(stored, wanted) or _converts(stored, wanted) else shown_type(stored)


def _converts(stored: str, wanted: str) -> bool:
    """Return whether Spark reads a stored type as the wanted type without a loss."""
    if wanted.startswith("decimal("):
        digits, scale = decimal_of(wanted)
        whole = {**dict.fromkeys(INTEGERS[:3], 10), "long": 20}.get(stored)
        if stored.startswith("decimal("):
            own_digits, own_scale = decimal_of(stored)
            return own_scale <= scale and own_digits - own_scale <= digits - scale
        return whole is not None and whole <= digits - scale
    is_number = stored in INTEGERS[:3] and wanted == "double"
    return is_number or (stored, wanted) == _FROM_DATE or {stored, wanted} == {*_TEXTS}


@contextmanager
def open_parquet(path: str, coded: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file. Columns in ``coded`` are read dictionary-encoded if Arrow can do so.

    If the file cannot be opened, or cannot be read within the block, this raises an error: `UnsuitableError` if the file
    needs a feature that Arrow lacks, otherwise `StorageError` (74).
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

    Arrow cannot do so if a page has DELTA or another encoding without a dictionary.
    """
    index = next((index for index in range(footer.num_columns) if footer.schema.column(index).path == name), None)
    groups = map(footer.row_group, range(footer.num_row_groups))
    return index is not None and all(_CODED.issuperset(group.column(index).encodings) for group in groups)


def stored_batches(
    piece: Piece, row_groups: Sequence[int], names: set[str], coded: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield batches of some row groups of a Parquet file, each with the number of rows that precede it in the file."""
    # If a column's values are not in the file, the column is not read: the file may have another column of the same name.
    outside = dict(piece.values)
    with open_parquet(piece.path, [name for name in coded if name not in outside]) as file:
        stored = [name for name in file.schema_arrow.names if name in names and name not in outside]
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        first_rows = [*accumulate((group.num_rows for group in groups), initial=0)]
        for number in row_groups:
            group, first_row = groups[number], first_rows[number]
            rows = max(1, min(_READ_ROWS, group.num_rows * _READ_BYTES // max(group.total_byte_size, 1)))
            for batch in file.iter_batches(rows, row_groups=[number], columns=stored):
                yield batch, first_row
                first_row += batch.num_rows


class StoredRows:
    """A batch of a Parquet file.

    Besides the columns of the file, it has those whose values are in the table's metadata or in the names of directories.
    """

    def __init__(self, batch: pa.RecordBatch, piece: Piece, types: Mapping[str, str]) -> None:
        self.rows, self.piece = batch.num_rows, piece
        self._batch, self._types = batch, types
        self._values = dict(piece.values)

    def filter(self, mask: pa.Array) -> StoredRows:
        """Return some of the rows."""
        return StoredRows(self._batch.filter(mask), self.piece, self._types)

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
            # The values are milliseconds that exceed 64 bits when converted to microseconds. Spark cannot read them either.
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
def naming_large(path: str) -> Iterator[None]:
    """If the rows of a file do not fit into memory, name the file in the error. Even small files may have huge values."""
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


def check_calendar(path: str, footer: pq.FileMetaData, columns: Collection[str]) -> None:
    """Raise `UnsuitableError` if a file uses the old calendar and may have early values in one of ``columns``."""
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
    """Return whether a file uses the old calendar.

    As in Spark, this follows from the version of the writer, or from the metadata key of the legacy mode.
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
