"""Columns that a log gets with a new generation that keeps landings: null in those, which stay as they are. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rewindow.config.feed import TABLE_FORMATS
from rewindow.contracts.ingest import LogColumns, LogSpec
from rewindow.contracts.reserved_names import other_name
from rewindow.errors import ConfigError


def may_grow(spec: LogSpec, kept: LogColumns, declared: Mapping[str, Any]) -> bool:
    """Return whether a log may have more columns than its kept landings. ``declared`` are the settings of those."""
    if spec.source_offsets is not None or spec.scalar_value:
        return False
    is_new = spec.value is None or not {*spec.value} <= {column.name for column in kept.value}
    return is_new or declared.get("source", {}).get("schema") != spec.source.schema


def grows_only(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether two declarations of a log differ at most by new value columns and their renames."""
    old, new = before.get("value"), now.get("value")
    if isinstance(old, str) or isinstance(new, str):
        return old == new and before.get("columns") == now.get("columns")
    renames: Mapping[str, str] = before.get("columns") or {}
    return {*(old or ())} <= {*(new if new is not None else old or ())} and {**now["columns"], **renames} == now[
        "columns"
    ]


def grown(spec: LogSpec, kept: LogColumns, now: LogColumns) -> LogColumns:
    """Return the columns of kept landings and those that the sources have besides.

    A column that was landed keeps its type if it is inferred. Raises `ConfigError` (78) if it is declared with another one,
    or if a column is left out.
    """
    landed = {column.name: column for column in kept.all}
    found = {column.name: column for column in now.all}
    is_declared = spec.source.schema is not None or spec.source.format in TABLE_FORMATS
    gone = [name for name in landed if name not in found] if spec.value is not None or is_declared else []
    both = [name for name in landed if is_declared and name in found]
    other = [name for name in both if not _are_alike(spec, landed[name].type, found[name].type)]
    if gone or other:
        what = "it is left out" if gone else f"it is {found[other[0]].type} now"
        column = landed[(gone or other)[0]]
        first = f"{other_name(column.name)}, and land" if other and not gone else "Land"
        message = (
            f"log {spec.topic}: {column.name} was landed as {column.type}, but {what}, so kept landings and new ones would not "
            f"fit together. {first[0].upper()}{first[1:]} everything again: `rewindow land FEED --new-generation`"
        )
        raise ConfigError(message)
    values = [landed.get(column.name, column) for column in now.value]
    if spec.value is None:
        values = [*kept.value, *(column for column in now.value if column.name not in landed)]
    schema = now.source_schema if is_declared else _with_new_fields(kept.source_schema, now.source_schema)
    return LogColumns(kept.key, tuple(values), kept.scalar_key, kept.scalar_value, schema)


def _are_alike(spec: LogSpec, landed: str, found: str) -> bool:
    """Return whether values of the type ``found`` can be landed as ``landed``: JSON of an output was text (before ADR-139)."""
    return found == landed or (spec.is_output and (landed, found) == ("string", "json"))


def null_in_kept(kept: Mapping[str, LogColumns], now: Mapping[str, LogColumns]) -> str:
    """Return which columns kept landings lack, as a part of a sentence; nothing if there are none."""
    new = [
        column.name
        for topic, before in kept.items()
        for column in now[topic].value
        if column.name not in {old.name for old in before.all}
    ]
    if not new:
        return ""
    return f", where the new column{'s' if new[1:] else ''} {' and '.join(new)} {'are' if new[1:] else 'is'} null"


def _with_new_fields(kept: str | None, now: str | None) -> str:
    """Return a schema (Spark's JSON) with the fields of another one that it lacks."""
    schema, other = (json.loads(text or '{"fields":[],"type":"struct"}') for text in (kept, now))
    names = {field["name"].lower() for field in schema["fields"]}
    schema["fields"] += [field for field in other["fields"] if field["name"].lower() not in names]
    return json.dumps(schema, separators=(",", ":"), sort_keys=True)
