"""Read files of JSON lines without Spark, if that gives exactly what Spark's reader gives.

Only objects of texts, numbers and truth values are taken. Anything else is an `UnsuitableError`, and Spark reads the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from rewindow.contracts.ingest import LogColumns, LogSpec, Piece, SourceLook, SourceSpec
from rewindow.contracts.source_fields import FileFields, SourceFields, fields_of_schema, read_columns
from rewindow.engine.worker.file_fields import directory_columns, shown
from rewindow.engine.worker.landing.source_types import (
    INTEGERS,
    TIMES,
    RepeatedFieldError,
    UnsuitableError,
    arrow_type,
    schema_of,
)
from rewindow.engine.worker.landing.text_files import check_files, usual_bytes
from rewindow.engine.worker.landing.text_values import typed

_MOST_BYTES = 16 << 20
_SUFFIXES = ("", ".json", ".jsonl", ".ndjson", ".txt")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KINDS = {str: "string", bool: "boolean", int: "long", float: "double"}
_MOST_LONG = 2**63


def check_json(source: SourceSpec, pieces: Sequence[Piece]) -> None:
    """Raise `UnsuitableError` for options, and for large or compressed files."""
    if source.options:
        raise UnsuitableError("it has options")
    check_files(pieces, _SUFFIXES, _MOST_BYTES)


def json_schema(_source: SourceSpec, pieces: Sequence[Piece]) -> str:
    """Return the schema (JSON) that Spark infers from JSON lines. Raises `UnsuitableError` if that is not certain."""
    kinds: dict[str, set[str]] = {}
    for piece in pieces:
        for row in _objects(piece.path):
            for name, value in row.items():
                kinds.setdefault(name, set()).update([] if value is None else [_KINDS[type(value)]])
    if len({name.lower() for name in kinds}) < len(kinds) or not kinds:
        raise UnsuitableError("its files have no fields, or two that differ in case only")
    return schema_of({name: _common(name, kinds[name]) for name in sorted(kinds)})


def json_rows(_source: SourceSpec, path: str, types: Mapping[str, str], zone: str) -> pa.RecordBatch:
    """Return the rows of a file with the given columns. Raises `UnsuitableError` if Spark may read them otherwise."""
    rows = list(_objects(path, types))
    columns = [_column(name, [row.get(name) for row in rows], kind, zone) for name, kind in types.items()]
    return pa.RecordBatch.from_arrays(columns, names=list(types))


def json_fields(spec: LogSpec, columns: LogColumns, look: SourceLook) -> SourceFields:
    """Return the fields of a log's schema, and those that occur in each file to land. Raises `UnsuitableError`."""
    known, structs, _ = fields_of_schema(json.loads(columns.source_schema or "{}"))
    needed = read_columns(spec, columns)
    pieces = look.fresh or look.rest
    check_json(spec.source, pieces)
    files = []
    for piece in sorted(pieces, key=lambda piece: piece.path):
        rows = list(_objects(piece.path, needed))
        present = frozenset(name for row in rows for name in row)
        filled = {name for row in rows for name, value in row.items() if value is not None}
        if rows:
            directories = directory_columns(piece.path, look.base)
            files.append(FileFields(shown(spec.source, piece.path), present | directories, present - filled))
    return SourceFields(known, structs, tuple(files))


def _objects(path: str, needed: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file. Only fields that are needed, by default all, must not occur twice in one."""
    data = usual_bytes(path)
    if rb"\ud" in data or rb"\uD" in data:  # two of them are one character, and what else they are is checked there
        raise UnsuitableError(f"{Path(path).name} has escaped surrogates")
    lines, number = data.split(b"\n"), 0
    decoder = json.JSONDecoder(object_pairs_hook=partial(_flat, needed), parse_constant=_refused)
    try:
        for number, line in enumerate(lines, start=1):
            if text := line.decode().removesuffix("\r"):
                row = decoder.decode(text)
                if not isinstance(row, dict):
                    raise UnsuitableError(f"{Path(path).name}, line {number}: it is no object")
                yield row
    except (ValueError, RecursionError) as error:
        said = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise UnsuitableError(f"{Path(path).name}, line {number}: {said}") from error


def _flat(needed: Collection[str] | None, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    for name, value in pairs:
        is_long = isinstance(value, int) and -_MOST_LONG <= value < _MOST_LONG
        is_value = value is None or is_long or isinstance(value, str) or (isinstance(value, float) and isfinite(value))
        if not is_value or not _NAME.fullmatch(name):
            raise UnsuitableError(f"the field {name} has nested or unusual values")
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        if any(names.count(name) > 1 for name in (row if needed is None else needed)):
            raise RepeatedFieldError("an object has a field twice")
    return row


def _refused(text: str) -> NoReturn:
    raise UnsuitableError(f"it has {text}, which is not JSON")


def _common(name: str, kinds: set[str]) -> str:
    if kinds == {"long", "double"}:
        return "double"
    if len(kinds) > 1:
        types = " and ".join(sorted(kinds))
        raise UnsuitableError(f"the field {name} has values of several types ({types}), which may become text")
    return next(iter(kinds), "string")


def _column(name: str, values: list[Any], kind: str, zone: str) -> pa.Array:
    """Return values as a type of Spark's. Raises `UnsuitableError` for a value of another type or in an unusual form."""
    found = {type(value) for value in values} - {type(None)}
    try:
        if kind == "date" or kind in TIMES:
            if found <= {str}:
                return typed(name, pa.array(values, pa.string()), kind, zone)
        elif kind in ("string", "boolean"):
            if found <= {{"string": str, "boolean": bool}[kind]}:
                return pa.array(values, arrow_type(kind))
        elif kind == "long" and found <= {int}:
            return pa.array(values, pa.int64())
        elif kind == "double" and found <= {int, float}:
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        elif kind in INTEGERS and found <= {int}:
            return typed(
                name, pa.array([None if value is None else str(value) for value in values], pa.string()), kind, zone
            )
    except (UnicodeEncodeError, pa.ArrowException) as error:
        raise UnsuitableError(f"the field {name}: {error}") from error
    raise UnsuitableError(f"the field {name} has values that only Spark reads as {kind}")
