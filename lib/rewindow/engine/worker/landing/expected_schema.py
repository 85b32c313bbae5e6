"""The schema that a source will probably have when it is landed, as far as it can be told without Spark and reading all of it.

It serves to check a job's code before anything is landed. A type that is not certain is `UNSURE`, which fits everything.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rewindow.contracts.ingest import LogSpec, SourceLook
from rewindow.engine.worker.csv_files import csv_lines, csv_names, encoding_of, has_header, infers_types, lower_options
from rewindow.engine.worker.file_fields import local_files
from rewindow.engine.worker.landing.ddl import UNSURE, declared_columns
from rewindow.engine.worker.landing.log_columns import nested_renames
from rewindow.engine.worker.landing.source import inferred_schema
from rewindow.engine.worker.landing.source_types import UnsuitableError, schema_of

_MOST_BYTES = 16 << 20
"""Files that are larger together are not read to their end."""
_FIRST_ROWS = 1_000
_LONG = re.compile(r"[+-]?\d{1,18}")
_DOUBLE = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?")
_WORDS_OF_OTHER_TYPES = re.compile(r"(?i)nan|inf(inity)?|null")


def expected_schema(spec: LogSpec, look: SourceLook) -> str | None:
    """Return the schema (JSON, as Spark's) of a source, as far as it can be told; None if nothing can be."""
    source = spec.source
    if source.schema is not None:
        found = declared_columns(spec, source.schema)
    elif source.format == "csv":
        found = _csv(spec, local_files(look.fresh))
    elif source.format == "json":
        found = json_columns(spec, local_files(look.fresh))
    else:
        try:
            return inferred_schema(spec, look)
        except UnsuitableError:
            return look.schema
    if not found:
        return None
    found = {**found, **dict.fromkeys(nested_renames(spec, found), UNSURE)}
    keys = {old for old, new in (spec.renames or {}).items() if new in spec.key} | set(spec.key)
    types = {name: "string" if kind == UNSURE and name in keys else kind for name, kind in found.items()}
    return schema_of(types)


def _csv(spec: LogSpec, files: Sequence[Path]) -> dict[str, Any] | None:
    options = lower_options(spec.source)
    if not files or not has_header(spec.source) or "comment" in options:
        return None
    is_inferred = infers_types(spec.source)
    has_defaults = set(options) <= {
        "header",
        "inferschema",
        "sep",
        "delimiter",
        "quote",
        "escape",
        "encoding",
        "charset",
    }
    columns: dict[str, set[str]] = {}
    names: dict[str, str] = {}
    is_whole = _are_small(files)
    try:
        for file in files:
            with file.open(encoding=encoding_of(spec.source), newline="") as lines:
                rows = (row for _, row in csv_lines(lines, options))
                header = csv_names(next(rows, []), options)
                seen = [columns.setdefault(names.setdefault(name.lower(), name), set()) for name in header]
                for row in islice(rows, None if is_whole else _FIRST_ROWS):
                    for types, text in zip(seen, row, strict=False):
                        types.add(_type_of_text(text))
            if not is_whole:
                break
    except (OSError, ValueError, LookupError, TypeError, csv.Error):
        return None  # `land` says what is wrong with it
    if not is_inferred or not has_defaults:
        return dict.fromkeys(columns, UNSURE if is_inferred else "string")
    return {name: _common(types, is_whole=is_whole) for name, types in columns.items()}


def json_columns(spec: LogSpec, files: Sequence[Path], most_bytes: int = _MOST_BYTES) -> dict[str, Any] | None:
    """Return the columns of JSON lines. Any row may bring another column, so large files tell nothing."""
    if not files or not _are_small(files, most_bytes) or spec.source.options:
        return None
    columns: dict[str, set[str]] = {}
    try:
        for file in files:
            with io.StringIO(file.read_text(encoding="utf-8-sig")) as lines:
                for row in (json.loads(line) for line in lines if line.strip()):
                    for name, value in row.items():
                        columns.setdefault(name, set()).add(_type_of_value(value))
    except (OSError, ValueError, AttributeError):
        return None
    return {name: _common(columns[name], is_whole=True) for name in sorted(columns)}


def _are_small(files: Iterable[Path], most_bytes: int = _MOST_BYTES) -> bool:
    return sum(file.stat().st_size for file in files) <= most_bytes


def _common(seen: set[str], *, is_whole: bool) -> Any:
    """Return the type of a column of which these were seen. A text is certain at once, a number only at the end."""
    types = seen - {""}
    if "string" in types and "nested" not in types:
        return "string"
    if is_whole and types and types <= {"long", "double"}:
        return "double" if "double" in types else "long"
    if is_whole and types == {"boolean"}:
        return "boolean"
    return UNSURE


def _type_of_text(text: str) -> str:
    text = text.strip()
    if not text:
        return ""
    if _LONG.fullmatch(text):
        return "long"
    if _DOUBLE.fullmatch(text):
        return "double"
    if text.lower() in ("true", "false"):
        return "boolean"
    return "string" if text[0].isalpha() and not _WORDS_OF_OTHER_TYPES.fullmatch(text) else UNSURE


def _type_of_value(value: Any) -> str:
    kinds = {str: "string", bool: "boolean", int: "long", float: "double", type(None): ""}
    return kinds.get(type(value), "nested")
