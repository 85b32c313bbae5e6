"""Which fields the files of a source have: columns of Parquet files, headers of CSV files. And files that are empty.

Reads footers and first lines only. A file that cannot be read has no fields here; Spark reports the problem.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.ingest import LogColumns, LogSpec, Piece, SourceLook, SourceSpec
from rewindow.contracts.source_fields import FileFields, SourceFields, fields_of_schema
from rewindow.errors import StorageError
from rewindow.storage.locations import is_uri


def stored_fields(spec: LogSpec, columns: LogColumns, look: SourceLook) -> SourceFields:
    """Return the fields of a log's schema and, from headers and footers, of the files to land; of a table, of its schema."""
    known, structs, _ = fields_of_schema(json.loads(columns.source_schema or "{}"))
    pieces = look.fresh or look.rest
    if look.schema is not None:
        present, _, _ = fields_of_schema(json.loads(look.schema))
        files = [FileFields(spec.source.name, present)]
    elif spec.source.format == "csv":
        files = csv_headers(spec.source, pieces)
    else:
        files = parquet_fields(spec.source, pieces, look.base)
    return SourceFields(known, structs, tuple(files), ignores_case=True)


def check_not_empty(pieces: Sequence[Piece]) -> None:
    """Raise `StorageError` (74) for an empty file. Only text formats allow them, and Spark skips them."""
    for path in local_files(pieces):
        if not path.stat().st_size:
            message = f"{path} is empty: it is corrupt or not written yet. Restore it or wait for it, then land again"
            raise StorageError(message)


def parquet_fields(spec: SourceSpec, pieces: Sequence[Piece], base: str | None = None) -> list[FileFields]:
    """Return the fields of Parquet files, including those that their directories below ``base`` name (``year=2013``)."""
    found = []
    for path in local_files(pieces):
        try:
            schema = pq.read_schema(path)
        except (OSError, pa.ArrowException):
            continue
        fields = {name for field in schema for name in _below(field.name, field.type)}
        found.append(FileFields(shown(spec, str(path)), frozenset(fields | directory_columns(str(path), base))))
    return found


def csv_headers(spec: SourceSpec, pieces: Sequence[Piece]) -> list[FileFields]:
    """Return the headers of CSV files; nothing if they have none, by their options."""
    options = lower_options(spec)
    if options.get("header", "true").lower() != "true":
        return []
    found = []
    for path in local_files(pieces):
        header = _header(path, encoding_of(spec), options)
        if header is not None:
            found.append(FileFields(shown(spec, str(path)), frozenset(header), header=header))
    return found


def has_rows(spec: SourceSpec, path: str) -> bool:
    """Return whether a file has rows: files with nothing but a header or a schema may be equal."""
    try:
        if spec.format == "parquet":
            return bool(pq.read_metadata(path).num_rows)
        with pa.input_stream(path) as raw, io.TextIOWrapper(raw, encoding_of(spec), newline="") as lines:
            rows = (line for line in lines if line.strip())
            has_header = spec.format == "csv" and lower_options(spec).get("header", "true").lower() == "true"
            return next(islice(rows, int(has_header), None), None) is not None
    except (OSError, ValueError, LookupError, pa.ArrowException):
        return True  # Spark reports what is wrong with it


def lower_options(spec: SourceSpec) -> dict[str, str]:
    """Return a source's options with their names in lower case, as Spark compares them."""
    return {name.lower(): value for name, value in spec.options.items()}


def encoding_of(spec: SourceSpec) -> str:
    """Return the encoding of text files, as Python calls it."""
    options = lower_options(spec)
    encoding = options.get("encoding", options.get("charset", "utf-8"))
    return "utf-8-sig" if encoding.lower() in {"utf-8", "utf8"} else encoding


def csv_dialect(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of `csv.reader` for Spark's options."""
    quote = options.get("quote", '"')
    quoted = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    return {
        "delimiter": options.get("sep", options.get("delimiter", ",")),
        "escapechar": options.get("escape", "\\"),
        **quoted,
    }


def directory_columns(path: str, base: str | None) -> set[str]:
    """Return the columns that the directories of a path below ``base`` name; none without ``base``."""
    if base is None or not path.startswith(f"{base}/"):
        return set()
    return {part.partition("=")[0] for part in Path(path).relative_to(base).parts[:-1] if "=" in part}


def shown(spec: SourceSpec, path: str) -> str:
    """Return a file's name for messages: as configured, or its path below the configured folder."""
    location = spec.location.rstrip("/")
    if path == location:
        return spec.name
    return path.removeprefix(f"{location}/") if path.startswith(f"{location}/") else path


def _header(path: Path, encoding: str, options: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the first line that is neither empty nor a comment, as columns; None if there is none."""
    comment = options.get("comment")
    try:
        with pa.input_stream(str(path)) as raw, io.TextIOWrapper(raw, encoding, newline="") as lines:
            kept = (line for line in lines if line.strip() and not (comment and line.startswith(comment)))
            row = next(csv.reader(kept, **csv_dialect(options)), None)
    except (OSError, ValueError, LookupError, TypeError, csv.Error, pa.ArrowException):
        return None
    return tuple(name.strip() for name in row) if row else None


def _below(name: str, kind: pa.DataType) -> Iterator[str]:
    yield name
    if pa.types.is_map(kind):  # its keys are data
        return
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _below(f"{name}.{field.name}", field.type)


def local_files(pieces: Sequence[Piece]) -> list[Path]:
    """Return the files of a source that are on a local disk."""
    return [Path(piece.path) for piece in pieces if not is_uri(piece.path) and Path(piece.path).is_file()]
