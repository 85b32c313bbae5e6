"""The fields of a source's files: columns of Parquet files and headers of CSV files.

Only footers and first lines are read. If a file cannot be read, it has no fields here. The landing reports what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.ingest import LogColumns, LogSpec, Piece, SourceLook, SourceSpec
from rewindow.contracts.source_fields import (
    FileFields,
    SourceFields,
    fields_of_schema,
    positions,
    repeated_names,
    role_of,
    written,
)
from rewindow.contracts.text_options import CSV, text_options
from rewindow.engine.worker.text.csv_records import csv_header
from rewindow.engine.worker.text.file_text import BadTextError, Part, read_blocks
from rewindow.engine.worker.text.reading import header_of
from rewindow.errors import RewindowError, SourceError, StorageError
from rewindow.storage.locations import is_uri


def stored_fields(spec: LogSpec, columns: LogColumns, look: SourceLook) -> SourceFields:
    """Return the fields of a log's schema, and the fields of the files to land, from their headers and footers.

    For a table, returns the fields of its schema instead of the fields of its files.
    """
    of_schema, structs, _ = fields_of_schema(json.loads(columns.source_schema or "{}"))
    pieces = look.fresh or look.rest
    if look.schema is not None:
        present, _, _ = fields_of_schema(json.loads(look.schema))
        files = [FileFields(spec.source.name, present)]
    elif spec.source.format == "csv":
        files = csv_fields(spec.source, pieces, look.base)
    else:
        files = parquet_fields(spec.source, pieces, look.base)
    return SourceFields(of_schema, structs, tuple(files), ignores_case=True)


def check_not_empty(pieces: Sequence[Piece]) -> None:
    """Raise `StorageError` (74) for a file without bytes, which Spark would skip. Only text formats allow empty files."""
    for path in local_files(pieces):
        if not path.stat().st_size:
            raise StorageError(
                "file-empty",
                "{file} is empty: it is corrupt or not written yet. Restore it or wait for it, then land again",
                file=path,
            )


def parquet_fields(spec: SourceSpec, pieces: Sequence[Piece], base: str | None = None) -> list[FileFields]:
    """Return the fields of Parquet files, including columns in the names of directories below ``base`` (``year=2013``)."""
    files = []
    for path in local_files(pieces):
        try:
            schema = pq.read_schema(path)
        except (OSError, pa.ArrowException):
            continue
        fields = {name for field in schema for name in _below(field.name, field.type)}
        files.append(FileFields(shown(spec, str(path)), frozenset(fields | directory_columns(str(path), base))))
    return files


def csv_fields(spec: SourceSpec, pieces: Sequence[Piece], base: str | None = None) -> list[FileFields]:
    """Return the columns in the headers of CSV files and in the names of their directories. Skips files without a header."""
    files = []
    for path in local_files(pieces):
        columns = csv_columns(spec, str(path))
        if columns is not None:
            fields = frozenset({*columns, *directory_columns(str(path), base)})
            name, header = shown(spec, str(path)), tuple(columns)
            files.append(FileFields(name, fields, header=header, repeated=repeated_names(columns)))
    return files


def csv_columns(spec: SourceSpec, path: str) -> tuple[str, ...] | None:
    """Return the columns in a CSV file's header; None if the file has no header, or cannot be read."""
    options = text_options(spec.format, spec.options)
    if spec.format != CSV or not options.header:
        return None
    try:
        return header_of(path, options) or None
    except (BadTextError, RewindowError, OSError):
        # The landing reports what is wrong with this file.
        return None


def check_has(spec: LogSpec, path: str, header: Sequence[str], needed: Collection[str]) -> None:
    """Raise `SourceError` (66) for a file that lacks a needed column. A column in ``optional:`` may be missing.

    Without the error, the missing column would be landed as null.
    """
    present = {*positions(header, needed), *positions(spec.optional, needed)}
    missing = [name for name in sorted(needed) if name not in present]
    if missing:
        names = ", ".join(missing)
        role = role_of(spec, missing)
        ways = f"or set `optional: [{names}]` to land null where it is missing"
        raise SourceError(
            "file-column-missing",
            "log {topic}: {file} has no column {columns}. It has {found}. {fix}",
            topic=spec.topic,
            file=Path(path).name,
            columns=names,
            found=", ".join(map(written, header)),
            fix=f"{role}. Fix the file, or remove it" if role else f"Fix the file, {ways}",
        )


def has_rows(spec: SourceSpec, path: str) -> bool:
    """Return whether a file has rows. Two files without rows may have equal bytes, although neither is a copy of the other."""
    try:
        if spec.format == "parquet":
            return bool(pq.read_metadata(path).num_rows)
        options = text_options(spec.format, spec.options)
        is_header = spec.format == CSV and options.header
        for block in read_blocks(Part(path), options, size=1):
            data = block.data
            if is_header:
                header = csv_header(data, options)
                if header is None:
                    continue
                data, is_header = data[header[1] :], False
            if data.strip():
                return True
    except (OSError, pa.ArrowException, BadTextError, RewindowError):
        # The landing reports what is wrong with the file.
        return True
    return False


def directory_columns(path: str, base: str | None) -> set[str]:
    """Return the columns that the directories of a path below ``base`` name; an empty set without ``base``."""
    if base is None or not path.startswith(f"{base}/"):
        return set()
    return {part.partition("=")[0] for part in Path(path).relative_to(base).parts[:-1] if "=" in part}


def shown(spec: SourceSpec, path: str) -> str:
    """Return a file's name for messages: the configured name, or the path below the configured folder."""
    location = spec.location.rstrip("/")
    if path == location:
        return spec.name
    return path.removeprefix(f"{location}/") if path.startswith(f"{location}/") else path


def _below(name: str, kind: pa.DataType) -> Iterator[str]:
    yield name
    # The keys of a map are data, not fields.
    if pa.types.is_map(kind):
        return
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _below(f"{name}.{field.name}", field.type)


def local_files(pieces: Sequence[Piece]) -> list[Path]:
    """Return the files of a source that are on a local disk."""
    return [Path(piece.path) for piece in pieces if not is_uri(piece.path) and Path(piece.path).is_file()]
