"""The formats of text files that this process reads as Spark does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rewindow.contracts.ingest import Piece, SourceSpec
from rewindow.engine.worker.landing.csv_rows import check_csv, csv_rows, csv_schema
from rewindow.engine.worker.landing.json_rows import check_json, json_rows, json_schema


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How to read a format. Each function raises `UnsuitableError` for what is left to Spark."""

    check: Callable[[SourceSpec, Sequence[Piece]], None]
    """Looks at options and at the sizes of files."""
    schema: Callable[[SourceSpec, Sequence[Piece]], str]
    """Returns the schema (JSON) that Spark infers."""
    rows: Callable[[SourceSpec, str, Mapping[str, str], str], pa.RecordBatch]
    """Returns the rows of a file with columns of some types; times without a zone are in the last argument."""


TEXT_FORMATS: Mapping[str, TextFormat] = {
    "csv": TextFormat(check_csv, csv_schema, csv_rows),
    "json": TextFormat(check_json, json_schema, json_rows),
}
