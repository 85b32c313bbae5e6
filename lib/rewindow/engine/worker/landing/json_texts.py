"""Find objects, lists and numbers in JSON fields that have been texts so far.

Spark lands any value of a text field as its JSON text. So a producer that begins to send an object as the key would make new
keys, and nothing would fail.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from rewindow.contracts.ingest import LogColumns, LogSpec, SourceLook
from rewindow.contracts.source_fields import read_columns
from rewindow.engine.worker.file_fields import local_files, shown
from rewindow.errors import DataError

_FILES, _LINES = 64, 1_000
"""So many files, the newest of the landed ones, and so many of their first lines are looked at."""


def check_texts(spec: LogSpec, columns: LogColumns, look: SourceLook) -> None:
    """Raise `DataError` (65) for the first such value in new files, of a field that is only text in landed ones.

    A first landing and types that a ``schema:`` declares are not checked.
    """
    source = spec.source
    if source.schema is not None or source.options or not look.rest:
        return
    needed = read_columns(spec, columns)
    fields = json.loads(columns.source_schema or '{"fields": []}')["fields"]
    texts = sorted(field["name"] for field in fields if field["type"] == "string" and field["name"] in needed)
    mixed: set[str] | None = None
    for path in islice(local_files(look.fresh), _FILES):
        for line, name, value in _others(path, texts):
            if mixed is None:
                landed = local_files(look.rest)[-_FILES:]
                mixed = {known for file in landed for _, known, _ in _others(file, texts)}
            if name not in mixed:
                where = f"{shown(source, str(path))}, line {line}, field {name}"
                raise _error(spec, f"{where}: {json.dumps(value, ensure_ascii=False)[:80]}", name)


def _error(spec: LogSpec, value: str, name: str) -> DataError:
    message = (
        f"log {spec.topic}: {value} is not a text, as in landed files. Nothing was landed. Fix the file. To land any value of "
        f"{name} as its JSON text, declare it as STRING in a `schema:` of the source, and `rewindow land FEED --new-generation`"
    )
    return DataError(message)


def _others(path: Path, names: Sequence[str]) -> Iterator[tuple[int, str, Any]]:
    """Yield the line, the name and the value of fields that are neither texts nor null."""
    try:
        with pa.input_stream(str(path)) as raw, io.TextIOWrapper(raw, "utf-8") as lines:
            for number, line in enumerate(islice(lines, _LINES), start=1):
                row = json.loads(line) if line.strip() else {}
                for name in names if isinstance(row, dict) else ():
                    if not isinstance(row.get(name), str | None):
                        yield number, name, row[name]
    except (OSError, ValueError, pa.ArrowException):
        return  # the landing says what is wrong with it
