"""What a Parquet file's footer says: whether the file is whole and can be read, and whether its columns have the wanted types.

Spark reports a bad type only when it reads the file. Times without a zone it reads as times with a zone, without any error. So
files with unsuitable types are refused before Spark reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.ingest import LogSpec
from rewindow.contracts.reserved_names import other_name
from rewindow.engine.worker.landing.source_types import (
    INTEGERS,
    TIMES,
    UnsuitableError,
    decimal_of,
    fits,
    shown_type,
    type_name,
)
from rewindow.errors import SourceError, StorageError
from rewindow.storage.locations import filesystem_of

_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
_SIGNATURE_BYTES = 28
"""The bytes of the signature that follows the footer if a file's columns are encrypted, but its footer is not."""
_PANDAS = ': pandas writes whole numbers with a null as DOUBLE, unless they have its nullable type, `astype("Int64")`'
_UNSIGNED_DIGITS = 20
"""The digits of an unsigned BIGINT, which Spark reads as DECIMAL(20,0)."""
_FROM_DATE, _TEXTS = ("date", "timestamp_ntz"), ("string", "binary")


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
    """Return a file's footer. Raises `UnsuitableError` if it cannot be read, because Spark then reports what is wrong.

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
    """Return the type of a column if it cannot be read as the wanted type; otherwise None."""
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
