"""Check the columns that a feed's file names against headers, footers and small JSON files, before Spark is started."""

from __future__ import annotations

from collections.abc import Sequence

from rewindow.contracts.ingest import LogSpec, SourceLook
from rewindow.contracts.source_fields import SMALL_JSON_BYTES
from rewindow.engine.worker.csv_files import csv_columns, has_header
from rewindow.engine.worker.file_fields import directory_columns, local_files, parquet_fields
from rewindow.engine.worker.landing.ddl import declared_columns
from rewindow.engine.worker.landing.expected_schema import json_columns
from rewindow.engine.worker.landing.log_columns import missing_columns
from rewindow.errors import ConfigError


def wrong_columns(spec: LogSpec, look: SourceLook) -> ConfigError | None:
    """Return what is wrong with the columns that the configuration names; None if nothing is, or only reading rows tells."""
    names = _names(spec, look)
    return missing_columns(spec, names) if names else None


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
        columns = json_columns(spec, local_files(pieces), SMALL_JSON_BYTES)
        return None if columns is None else [*columns, *directories]
    if not has_header(source):
        return None
    headers = [header for path in local_files(pieces) if (header := csv_columns(source, str(path))) is not None]
    spelling = {name.lower(): name for header in reversed(headers) for name in header}
    first = [name.lower() for header in headers for name in header]
    return [*(spelling[name] for name in dict.fromkeys(first)), *directories] if headers else None
