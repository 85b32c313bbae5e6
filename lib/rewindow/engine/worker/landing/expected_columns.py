"""The columns that a log will have when it is landed, and whether its files have those that the feed's file names.

Before anything is landed, the schema serves to check a job's code, if it is known without Spark and without reading large files.
A type that is not certain is `UNSURE`, which fits everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewindow.contracts.ingest import LogSpec, SourceLook
from rewindow.contracts.source_fields import SMALL_JSON_BYTES
from rewindow.contracts.text_options import CSV, JSON, TEXT_FORMATS
from rewindow.engine.worker.file_fields import (
    csv_columns,
    declared_columns,
    directory_columns,
    local_files,
    parquet_fields,
)
from rewindow.engine.worker.landing.log_columns import missing_columns, nested_renames
from rewindow.engine.worker.landing.source import inferred_schema
from rewindow.engine.worker.landing.source_types import UnsuitableError, schema_of
from rewindow.engine.worker.landing.text_source import TextFiles, text_schema
from rewindow.errors import RewindowError

_UNSURE = "unsure"
"""A type that is not certain."""
_MOST_BYTES = 16 << 20
"""Files that are larger together are not read."""


def wrong_columns(spec: LogSpec, look: SourceLook, texts: TextFiles | None = None) -> RewindowError | None:
    """Return what is wrong with the columns that the configuration names; None if no fault can be found without rows.

    Without ``texts``, JSON files are read only if they are small.
    """
    try:
        names = _names(spec, look, texts)
    except RewindowError as error:
        return error
    return missing_columns(spec, names) if names else None


def expected_schema(spec: LogSpec, look: SourceLook) -> str | None:
    """Return the schema (JSON, as Spark's) of a source, with `UNSURE` for uncertain types; None if the columns are unknown.

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
    """Return the columns of all files, in the order of the first; None if they are not certain."""
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
