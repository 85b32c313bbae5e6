"""The schema that a source will have when it is landed, as far as that can be told without Spark and without reading large files.

It serves to check a job's code before anything is landed. A type that is not certain is `UNSURE`, which fits everything.
"""

from __future__ import annotations

from typing import Any

from rewindow.contracts.ingest import LogSpec, SourceLook
from rewindow.contracts.text_options import CSV, TEXT_FORMATS
from rewindow.engine.worker.file_fields import csv_columns, local_files
from rewindow.engine.worker.landing.log_columns import nested_renames
from rewindow.engine.worker.landing.source import inferred_schema
from rewindow.engine.worker.landing.source_types import UnsuitableError, schema_of
from rewindow.engine.worker.landing.text_source import TextFiles, text_schema

UNSURE = "unsure"
"""A type that is not certain."""
_MOST_BYTES = 16 << 20
"""Files that are larger together are not read."""


def expected_schema(spec: LogSpec, look: SourceLook) -> str | None:
    """Return the schema (JSON, as Spark's) of a source, as far as it can be told; None if nothing can be.

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
    found: dict[str, Any] = {**dict.fromkeys(names, UNSURE), **dict.fromkeys(nested_renames(spec, names), UNSURE)}
    keys = {old for old, new in (spec.renames or {}).items() if new in spec.key} | set(spec.key)
    return schema_of({name: "string" if name in keys else kind for name, kind in found.items()})
