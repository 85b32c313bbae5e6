"""Find objects, lists and numbers in JSON fields that are landed as text.

Spark lands any value of a text field as its JSON text. So a producer that begins to send an object as the key would make new
keys, and nothing would fail: where the field has been text so far, that is refused. In a first landing it is a warning.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from rewindow.contracts.ingest import LogColumns, LogSpec, SourceLook
from rewindow.engine.worker.file_fields import local_files, shown
from rewindow.engine.worker.landing.log_columns import source_types
from rewindow.errors import DataError

_FILES, _LINES = 8, 1_000
"""Number of first files that a warning looks at, and of lines of a new file that are read."""
_STRING = "string"

Paths = Mapping[str, Sequence[str]]
"""Fields by their names in messages: the names of the objects that they are nested in, and their own."""


def check_texts(spec: LogSpec, columns: LogColumns, look: SourceLook) -> None:
    """Raise `DataError` (65) for the first such value in new files, of a field that is text, and only text, in landed ones.

    A first landing and types that a ``schema:`` declares are not checked.
    """
    source = spec.source
    if source.schema is not None or source.options or not look.landed or not columns.source_schema:
        return
    types = source_types(spec, columns.source_schema)
    paths = [path for column in columns.all for path in _texts_in(*types[column.name])]
    fields = dict(sorted((".".join(path), path) for path in paths))
    landed: dict[str, bool] = {}
    for path in local_files(look.fresh):
        for line, name, value in _values(path, fields, _LINES):
            if isinstance(value, str):
                continue
            if name not in landed:
                landed[name] = _is_text(local_files(look.landed), {name: fields[name]})
            if landed[name]:
                raise _error(spec, f"{shown(source, str(path))}, line {line}, field {name}", name, value)


def mixed_texts(spec: LogSpec, look: SourceLook, texts: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the columns among ``texts`` whose values have several types, with the first values of two types and their places.

    Only for sources without a ``schema:``: one declares what is text.
    """
    source, old = spec.source, {new: name for name, new in (spec.renames or {}).items()}
    if source.schema is not None or source.options:
        return
    fields = {name: old.get(name, name).split(".") for name in texts}
    first, mixed = dict[str, tuple[str, Any]](), set[str]()
    for path in islice(local_files((*look.fresh, *look.rest)), _FILES):
        for line, name, value in _values(path, fields, _LINES):
            where = f"{shown(source, str(path))}, line {line}"
            there, known = first.setdefault(name, (where, value))
            if name not in mixed and _kind(value) is not _kind(known):
                mixed.add(name)
                yield name, f"{_shown(known)} in {there}", f"{_shown(value)} in {where}"


def _texts_in(path: Sequence[str], kind: Any) -> Iterator[Sequence[str]]:
    """Yield the path of a field that is text, and those within an object; not within lists."""
    if kind == _STRING:
        yield path
    elif isinstance(kind, dict) and kind["type"] == "struct":
        for field in kind["fields"]:
            yield from _texts_in((*path, field["name"]), field["type"])


def _kind(value: Any) -> type:
    """Return the JSON type of a value, as one of Python's."""
    return float if type(value) is int else type(value)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:80]


def _is_text(files: Sequence[Path], field: Paths) -> bool:
    """Return whether a field of files has texts, and nothing else but nulls."""
    has_texts = False
    for file in files:
        for _, _, value in _values(file, field):
            if not isinstance(value, str):
                return False
            has_texts = True
    return has_texts


def _values(path: Path, fields: Paths, most_lines: int | None = None) -> Iterator[tuple[int, str, Any]]:
    """Yield the line, the name and the value of fields, as far as they are not null."""
    try:
        with pa.input_stream(str(path)) as raw, io.TextIOWrapper(raw, "utf-8-sig") as lines:
            for number, line in enumerate(islice(lines, most_lines), start=1):
                row = json.loads(line) if line.strip() else None
                for name, names in fields.items():
                    value = row
                    for one in names:
                        value = value.get(one) if isinstance(value, dict) else None
                    if value is not None:
                        yield number, name, value
    except (OSError, ValueError, RecursionError, pa.ArrowException):
        return  # the landing says what is wrong with it


def _error(spec: LogSpec, where: str, name: str, value: Any) -> DataError:
    message = (
        f"log {spec.topic}: {where}: {_shown(value)} is not a text, as in landed files. Nothing was "
        f"landed. Fix the file. To land any value of {name} as its JSON text, declare it as STRING in a `schema:` of the source, "
        "and `rewindow land FEED --new-generation`"
    )
    return DataError(message)
