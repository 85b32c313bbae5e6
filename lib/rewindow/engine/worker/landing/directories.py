"""Columns in the names of a Parquet source's directories (``date=2026-01-31``), with the types that Spark infers.

There is one exception: Spark reads codes like ``1D`` as numbers, but here they are texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from rewindow.contracts.ingest import LogSpec, Piece
from rewindow.engine.worker.landing.source_types import INTEGERS, UnsuitableError, arrow_type
from rewindow.errors import SourceError

Values = tuple[tuple[str, str | None], ...]
"""A pair (column, text) for each directory of a path, outermost directory first. A text of None means null."""

DIRECTORY_TYPES = frozenset({*INTEGERS, "string", "date", "boolean"})
"""Types that Arrow reads from texts as Spark does."""

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER, _DATE = re.compile(r"-?\d{1,18}"), re.compile(r"\d{4}-\d{2}-\d{2}")
_NEARLY_A_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_WORD = re.compile(r"(?!T\d)[A-Za-z].*", re.DOTALL)
"""Matches texts that are certainly neither a number nor a date, because they begin with a letter. ``T10`` may be a time."""
_OF_JAVA = re.compile(r"[0-9.][dDfF]\s*$|0[xX]")
"""Matches texts that may be codes, although Spark reads them as numbers (``7D`` and ``7F`` as 7, ``0x1p3`` as 8)."""
_NO_WORDS = frozenset({"nan", "infinity", "epoch", "now", "today", "tomorrow", "yesterday"})


def directory_values(path: str, base: str | None) -> Values:
    """Return the columns and texts in the names of a path's directories below ``base``; an empty tuple without ``base``.

    Raises `UnsuitableError` for a directory that is not named ``column=text``.
    """
    if base is None or not path.startswith(f"{base}/"):
        return ()
    values = []
    for part in Path(path).relative_to(base).parts[:-1]:
        name, mark, text = map(_unescaped, part.partition("="))
        if not (mark and name):
            raise UnsuitableError(f"the directory {part} names no column, but others on its path do")
        values.append((name, None if text == _NULL else text))
    return tuple(values)


def directory_types(pieces: Sequence[Piece], base: str | None) -> dict[str, str]:
    """Return the types that Spark infers for the columns of directories. Raises `UnsuitableError` if a type is not certain."""
    every = [directory_values(piece.path, base) for piece in pieces]
    names = {tuple(name for name, _ in values) for values in every}
    if len(names) > 1:
        raise UnsuitableError("its directories have different columns")
    return {
        name: _inferred(name, (values[index][1] for values in every))
        for index, name in enumerate(next(iter(names), ()))
    }


def text_directories(pieces: Sequence[Piece], base: str | None) -> frozenset[str]:
    """Return the columns in the names of directories whose type is certainly text."""
    try:
        return frozenset(name for name, kind in directory_types(pieces, base).items() if kind == "string")
    except UnsuitableError:
        return frozenset()


def check_values(spec: LogSpec, values: Values, types: dict[str, str]) -> None:
    """Check that the texts of needed columns are values of the columns' types.

    Raises `SourceError` (66) for a text that is no value of its type, and `UnsuitableError` for a text that only Spark reads.
    """
    for name, text in values:
        kind = types.get(name)
        if kind is None or text is None:
            continue
        if kind not in DIRECTORY_TYPES or (
            kind == "date" and _NEARLY_A_DATE.fullmatch(text) and not _DATE.fullmatch(text)
        ):
            raise UnsuitableError(f"the directory {name}={text} is a {kind}")
        try:
            pa.scalar(text, pa.string()).cast(arrow_type(kind))
        except pa.ArrowInvalid as error:
            shown = "DATE" if kind == "date" else "whole number"
            raise SourceError(
                "directory-value-invalid",
                "log {topic}: the directory {column}={value} has no valid {type}, the type of {column} in earlier files. "
                "Nothing was landed. Rename the directory",
                topic=spec.topic,
                column=name,
                value=text,
                type=shown,
            ) from error


def _inferred(name: str, texts: Iterable[str | None]) -> str:
    present = {text for text in texts if text is not None}
    if not present:
        raise UnsuitableError(f"the directories {name}= have no value")
    if all(_INTEGER.fullmatch(text) for text in present):
        return "integer" if all(-(2**31) <= int(text) < 2**31 for text in present) else "long"
    if all(_DATE.fullmatch(text) and _is_day(text) for text in present):
        return "date"
    if any(_OF_JAVA.search(text) for text in present):
        return "string"
    if all(_WORD.fullmatch(text) and text.lower() not in _NO_WORDS for text in present):
        return "string"
    raise UnsuitableError(f"the type of the directories {name}= is not certain")


def _is_day(text: str) -> bool:
    try:
        pa.scalar(text, pa.string()).cast(pa.date32())
    except pa.ArrowInvalid:
        return False
    return True


def _unescaped(text: str) -> str:
    unescaped = unquote(text)
    if "%" in text and not unescaped.isascii():
        raise UnsuitableError(f"the directory {text} has an escaped character that is not ASCII")
    return unescaped
