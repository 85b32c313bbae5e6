"""Check new files of a source for problems that Spark silently ignores: empty files and missing columns.

Checks local files only; Spark reports problems of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.ingest import ARRIVAL, LogColumns, LogSpec, Piece
from rewindow.errors import SourceError, StorageError
from rewindow.storage.locations import is_uri


def check_not_empty(pieces: Sequence[Piece]) -> None:
    """Raise `StorageError` (74) for an empty file. Only text formats allow them, and Spark skips them."""
    for path in _local_files(pieces):
        if not path.stat().st_size:
            message = f"{path} is empty: it is corrupt or not written yet. Restore it or wait for it, then land again"
            raise StorageError(message)


def check_columns(spec: LogSpec, columns: LogColumns, pieces: Sequence[Piece], *, is_first: bool) -> None:
    """Raise `SourceError` (66) for a Parquet file that lacks a column of the log: Spark would land nulls.

    Value columns may be missing if the configuration declares the schema, or in a first landing, which defines it.
    """
    needed = {column.name for column in columns.key}
    needed |= {spec.arrived_at} if spec.arrived_at else set()
    needed |= set() if spec.timestamp == ARRIVAL or spec.extractor else {spec.timestamp}
    if spec.source.schema is None and not is_first:
        needed |= {column.name for column in columns.value}
    sources = {landed: name for name, landed in (spec.renames or {}).items()}
    for path in _local_files(pieces):
        try:
            stored = pq.read_schema(path).names
        except (OSError, pa.ArrowException):
            continue  # Spark reports the problem
        there = {name.lower() for name in stored}
        there |= {part.partition("=")[0].lower() for part in path.parts[:-1] if "=" in part}
        for name in sorted(sources.get(name, name) for name in needed):
            if name.lower() not in there:
                message = (
                    f"{path} has no column {name}, which earlier files have (it has {', '.join(stored)}). Add the column, "
                    "or land a new generation: `rewindow land FEED --new-generation`"
                )
                raise SourceError(message)


def _local_files(pieces: Sequence[Piece]) -> list[Path]:
    return [Path(piece.path) for piece in pieces if not is_uri(piece.path) and Path(piece.path).is_file()]
