"""Refuse Parquet files with a column that no reader converts to the log's type, or that Spark would read with another meaning.

Spark reports a bad type only when it reads the file, and silently takes times without a zone for times with one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq

from rewindow.contracts.ingest import LogSpec
from rewindow.contracts.reserved_names import other_name
from rewindow.engine.worker.landing.source_types import INTEGERS, TIMES, decimal_of, fits, type_name
from rewindow.errors import SourceError, StorageError

_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
_SHOWN: Mapping[str, str] = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}
_PANDAS = ': pandas writes whole numbers with a null as DOUBLE, unless they have its nullable type, `astype("Int64")`'
_UNSIGNED_DIGITS = 20
"""The digits of an unsigned BIGINT, which Spark reads as DECIMAL(20,0)."""
_FROM_DATE, _TEXTS = ("date", "timestamp_ntz"), ("string", "binary")


def check_types(spec: LogSpec, path: str, schema: pq.ParquetSchema, wanted: Mapping[str, str]) -> None:
    """Raise `SourceError` (66) if a file has a column of ``wanted`` twice, or with a type that is not the log's."""
    roots = [str(name).lower() for name in schema.to_arrow_schema().names]
    columns = {schema.column(number).path.lower(): schema.column(number) for number in range(len(schema))}
    for name, kind in wanted.items():
        if (count := roots.count(name.lower())) > 1:
            raise column_repeated(spec, Path(path).name, name, count)
        if (column := columns.get(name.lower())) is not None and (stored := _other_type(spec, column, kind)):
            raise SourceError(
                "file-column-type-differs",
                "log {topic}: {file} stores {column} as {stored}, but the log reads {type}, as the other files have it. "
                "Fix the file{hint}. If all files are to have the new type, write them anew, {rename}, and "
                "`rewindow land FEED --new-generation`. Nothing was landed",
                topic=spec.topic,
                file=Path(path).name,
                column=name,
                stored=stored,
                type=shown_type(kind),
                hint=_PANDAS if kind in _SHOWN and stored == "DOUBLE" else "",
                rename=other_name(name),
            )


def check_whole(spec: LogSpec, path: str) -> None:
    """Raise `StorageError` (74) if a local file does not end as Parquet files do."""
    file = Path(path)
    if not file.is_file():
        return
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - len(_MAGIC)))
        is_whole = stream.read() in (_MAGIC, _ENCRYPTED)
    if not is_whole:
        raise StorageError(
            "parquet-file-truncated",
            "log {topic}: {file} is not a whole Parquet file: it is truncated, not completely written yet, or "
            "has another format. Nothing was landed. Restore it or wait for it, then land again",
            topic=spec.topic,
            file=file.name,
        )


def check_nanoseconds(spec: LogSpec, path: str, schema: pq.ParquetSchema, reason: str) -> None:
    """Raise `SourceError` (66) if a file that Spark has to read, for a reason, has times in nanoseconds: Spark refuses them."""
    for number in range(len(schema)):
        column = schema.column(number)
        if column.logical_type.type == "TIMESTAMP" and "nanoseconds" in column.logical_type.to_json():
            raise SourceError(
                "parquet-times-in-nanoseconds",
                "log {topic}: {file} has times in nanoseconds in {column}, and Spark, which cannot read "
                "them, has to read this source: {reason}. Nothing was landed. Write them in microseconds "
                '(pandas and pyarrow: `coerce_timestamps="us"`; polars: `cast(pl.Datetime("us"))`)',
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


def shown_type(kind: str) -> str:
    """Return a type as in SQL."""
    return _SHOWN.get(kind, kind.upper())


def _other_type(spec: LogSpec, column: pq.ColumnSchema, wanted: str) -> str | None:
    """Return the type of a column, if it cannot be read as the wanted one."""
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
    """Return whether Spark reads a type as another one without a loss."""
    if wanted.startswith("decimal("):
        digits, scale = decimal_of(wanted)
        whole = {**dict.fromkeys(INTEGERS[:3], 10), "long": 20}.get(stored)
        if stored.startswith("decimal("):
            own_digits, own_scale = decimal_of(stored)
            return own_scale <= scale and own_digits - own_scale <= digits - scale
        return whole is not None and whole <= digits - scale
    is_number = stored in INTEGERS[:3] and wanted == "double"
    return is_number or (stored, wanted) == _FROM_DATE or {stored, wanted} == {*_TEXTS}
