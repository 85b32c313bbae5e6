"""Find the JSON object that has a field twice, or in another case than others: Spark refuses it and does not say where it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rewindow.contracts.ingest import LogSpec, Piece
from rewindow.engine.worker.csv_files import encoding_of
from rewindow.engine.worker.file_fields import local_files, shown
from rewindow.errors import ConfigError


class _TwiceError(Exception):
    """A field that occurs again."""


def field_twice(spec: LogSpec, pieces: Sequence[Piece]) -> ConfigError | None:
    """Return the error that names the first such field of JSON lines with file and line; None if there is none."""
    known: dict[str, str] = {}

    def noted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name.lower() for name, _ in pairs]
        for name, _ in pairs:
            if names.count(name.lower()) > 1:
                raise _TwiceError(f"an object has the field {name} twice, in capitals or not")
        return dict(pairs)

    for path in local_files(pieces):
        try:
            with path.open(encoding=encoding_of(spec.source)) as lines:
                for number, line in enumerate(lines, start=1):
                    where = f"{shown(spec.source, str(path))}, line {number}"
                    try:
                        row = json.loads(line, object_pairs_hook=noted) if line.strip() else {}
                    except _TwiceError as error:
                        return _error(spec, f"{where}: {error}")
                    for name in row if isinstance(row, dict) else ():
                        first = known.setdefault(name.lower(), name)
                        if first != name:
                            return _error(spec, f"{where}: it has the field {name}, which is {first} in lines before")
        except (OSError, ValueError, LookupError):
            continue  # the landing says what is wrong with it
    return None


def _error(spec: LogSpec, what: str) -> ConfigError:
    message = (
        f"log {spec.topic}: {what}. Nothing was landed. Fix the files, or declare the columns that you need in a `schema:` "
        "of the source"
    )
    return ConfigError(message)
