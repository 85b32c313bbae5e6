"""Check the columns that a feed's file names against headers, footers and small JSON files, before Spark is started."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rewindow.contracts.ingest import LogSpec, SourceLook
from rewindow.engine.worker.csv_files import csv_columns, has_header
from rewindow.engine.worker.file_fields import directory_columns, local_files, parquet_fields
from rewindow.engine.worker.landing.ddl import declared_columns
from rewindow.engine.worker.landing.log_columns import missing_columns
from rewindow.errors import ConfigError

_MOST_BYTES = 1 << 20
"""JSON files that are larger together are not read: their fields are in every line."""


def wrong_columns(spec: LogSpec, look: SourceLook) -> ConfigError | None:
    """Return what is wrong with the columns that the configuration names; None if nothing is, or only reading rows tells."""
    names = _names(spec, look)
    return missing_columns(spec, names) if names else None


def _json_names(files: Sequence[Path]) -> Sequence[str] | None:
    """Return the fields of the objects in small files of JSON lines; None if there are other files, or lines."""
    if sum(path.stat().st_size for path in files) > _MOST_BYTES:
        return None
    names: dict[str, None] = {}
    try:
        for path in files:
            for line in path.read_text(encoding="utf-8-sig").split("\n"):
                row = json.loads(line) if line.strip() else {}
                if not isinstance(row, dict):
                    return None
                names |= dict.fromkeys(row)
    except (OSError, ValueError):
        return None  # the landing says what is wrong with it
    return list(names)


def _names(spec: LogSpec, look: SourceLook) -> Sequence[str] | None:
    """Return the columns of all files, in the order of the first; None if they are not certain."""
    source, pieces = spec.source, (*look.rest, *look.fresh)
    if look.schema is not None or not pieces:
        return None
    directories = sorted({name for piece in pieces for name in directory_columns(piece.path, look.base)})
    if source.schema is not None:
        declared = declared_columns(spec, source.schema)
        return None if declared is None else [*declared, *directories]
    if source.format == "parquet" and not source.options:
        files = parquet_fields(source, pieces, look.base)
        found = {name for file in files for name in file.present if "." not in name}
        return sorted(found) if len(files) == len(pieces) else None
    if source.format == "json":
        names = None if source.options else _json_names(local_files(pieces))
        return None if names is None else [*names, *directories]
    if not has_header(source):
        return None
    headers = [columns for path in local_files(pieces) if (columns := csv_columns(source, str(path))) is not None]
    spelling = {name.lower(): name for columns in reversed(headers) for name in columns}
    first = [name.lower() for columns in headers for name in columns]
    return [*(spelling[name] for name in dict.fromkeys(first)), *directories] if headers else None
