"""The columns that ``schema:`` declares for text files, in the form of Spark's DDL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from rewindow.contracts.ingest import LogSpec
from rewindow.engine.worker.landing.source_types import UnsuitableError, schema_of
from rewindow.errors import ConfigError

UNSURE = "unsure"
"""A type that is not certain."""
_DDL_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("tinyint", "byte"), "byte"),
    **dict.fromkeys(("smallint", "short"), "short"),
    **dict.fromkeys(("int", "integer"), "integer"),
    **dict.fromkeys(("bigint", "long"), "long"),
    **dict.fromkeys(("float", "real"), "float"),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), "timestamp"),
    **{name: name for name in ("double", "string", "boolean", "binary", "date", "timestamp_ntz")},
}
_OTHER_TYPES = ("decimal", "array", "map", "struct", "variant", "interval", "void", "time", "char", "varchar")
_DDL_NAME = re.compile(r"\s*(`(?:[^`]|``)+`|[A-Za-z_]\w*)\s*")
_DDL_COLUMN = re.compile(r"\s*(`(?:[^`]|``)+`|[A-Za-z_]\w*)\s*:?\s+(\w+)\s*(\(.*?\))?(.*)", re.DOTALL)
_UNQUOTED = re.compile(r"\s*([^\s`<>():]*[^\w\s`<>():][^\s`<>():]*)\s+(\w+(?:\s*\(.*\))?)\s*")
"""A column whose name only backticks allow, and its type."""
_SIMPLE = re.compile(r"\s*\w+\s+(\w+)\s*(\(\s*\d+\s*,\s*\d+\s*\))?\s*")
"""A column of which Spark's schema has nothing but the name and the type."""


def declared_schema(spec: LogSpec, ddl: str) -> str:
    """Return the schema (JSON) of a DDL text. Raises `UnsuitableError` if it has more than names and simple types."""
    found = declared_columns(spec, ddl)
    simple = [match and match[1].lower() in (*_DDL_TYPES, "decimal") for match in map(_SIMPLE.fullmatch, _split(ddl))]
    if found is None or not all(simple):
        raise UnsuitableError("its schema declares more than names and simple types")
    return schema_of(found)


def declared_columns(spec: LogSpec, ddl: str) -> dict[str, Any] | None:
    """Return the columns of a DDL text with the names of their types; None if it is more than names and types.

    Raises `ConfigError` (78) for a column without a type, a name without backticks that needs them, and an unknown type.
    """
    found: dict[str, Any] = {}
    for text in _split(ddl):
        match = _DDL_COLUMN.fullmatch(text)
        if match is None:
            if (unquoted := _UNQUOTED.fullmatch(text)) is not None:
                message = (
                    f"log {spec.topic}: write the column {unquoted[1]} of `schema` in backticks, "
                    f"`` `{unquoted[1]}` {unquoted[2]} ``, because its name has other signs than letters, digits and _"
                )
                raise ConfigError(message)
            if not _DDL_NAME.fullmatch(text):
                return None
            message = f"log {spec.topic}: {text.strip()} has no type in `schema`: write {text.strip()} STRING, or another type"
            raise ConfigError(message)
        name, word = match[1].strip("`").replace("``", "`"), match[2].lower()
        if word in ("decimal", "dec", "numeric"):
            precision, _, scale = (match[3] or "(10,0)").strip("()").replace(" ", "").partition(",")
            found[name] = f"decimal({precision},{scale or 0})"
        elif word in ("char", "varchar"):
            found[name] = "string"
        elif word in _DDL_TYPES or word in _OTHER_TYPES or match[3] or "<" in match[4]:
            found[name] = _DDL_TYPES.get(word, {"type": UNSURE})
        else:
            near = get_close_matches(word, [*_DDL_TYPES, *_OTHER_TYPES], 1)
            fix = (
                f"did you mean {near[0].upper()}?"
                if near
                else "write a type of Spark, such as STRING, BIGINT or TIMESTAMP"
            )
            message = f"log {spec.topic}: {name} has the unknown type {match[2]} in `schema`: {fix}"
            raise ConfigError(message)
    return found


def _split(ddl: str) -> list[str]:
    """Split at the commas outside of brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for sign in ddl:
        if quote or sign in "`'":
            quote = "" if sign == quote else quote or sign
        elif sign in "(<":
            depth += 1
        elif sign in ")>":
            depth -= 1
        elif sign == "," and not depth:
            parts.append("")
            continue
        parts[-1] += sign
    return parts
