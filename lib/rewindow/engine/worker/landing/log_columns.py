"""Decide the columns of a log from the schema of its source: their names after ``columns:``, and their landed types. Pure."""

from __future__ import annotations

import json
import keyword
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

from rewindow.contracts.ingest import ARRIVAL, LogColumns, LogSpec
from rewindow.contracts.source_fields import json_texts, repeated_names, separator_in
from rewindow.errors import ConfigError
from rewindow.streams.serde.schema import Column

RESERVED = frozenset({"generation", "partition", "offset", "timestamp", "landing", "arrived_at"})
"""The columns that every log has."""

_LANDED: Mapping[str, str] = {
    **dict.fromkeys(("byte", "short", "integer", "long", "timestamp", "timestamp_ntz"), "long"),
    **dict.fromkeys(("float", "double"), "double"),
    **dict.fromkeys(("string", "date", "json"), "string"),
    "boolean": "boolean",
    "binary": "binary",
}
_SHOWN: Mapping[str, str] = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def landed_type(source_type: Any) -> str:
    """Return the type of a log's column for a type in Spark's schema JSON. There, a type is a name or, if nested, an object."""
    if not isinstance(source_type, str):
        return "json"
    if source_type.startswith(("char", "varchar")):
        return "string"
    return source_type if source_type.startswith("decimal(") else _LANDED.get(source_type, "json")


def source_types(spec: LogSpec, schema: str, hidden: Sequence[str] = ()) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Return the source's columns: the name after the renames of ``columns:``, mapped to its path in the source and its type.

    A path has a single item, unless ``columns:`` names a nested field. Raises `ConfigError` (78) for a renamed column that does
    not exist, or two columns with one name.
    """
    renames = dict(spec.renames or {})
    fields = json.loads(schema)["fields"]
    names = [field["name"] for field in fields]
    every: list[tuple[tuple[str, ...], Any]] = [((field["name"],), field["type"]) for field in fields]
    if spec.source_offsets is None and spec.source.format != "csv":
        nested = {".".join(path): (path, kind) for field in fields for path, kind in _below(field)}
        every += [nested[name] for name in renames if name not in names and name in nested]
    paths = {".".join(path) for path, _ in every}
    if wrong := sorted(set(renames) - paths):
        meant = [
            ".".join(path)
            for field in fields
            if any(name.startswith(f"{field['name']}.") for name in wrong)
            for path, _ in _below(field)
        ]
        raise _unknown(spec, [(name, "columns") for name in wrong], [*names, *meant])
    types: dict[str, tuple[tuple[str, ...], Any]] = {}
    for name, path, kind in ((name, *column) for column in every for name in spec.names_of(".".join(column[0]))):
        if name in types:
            raise ConfigError(
                "source-column-ambiguous",
                "log {topic}: {source} has two columns called {column}. Rename one under `columns:`",
                topic=spec.topic,
                source=spec.source.name,
                column=name,
            )
        if name not in hidden:
            types[name] = path, kind
    return types


def _below(field: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the type of each field in a struct."""
    kind = field["type"]
    if isinstance(kind, dict) and kind["type"] == "struct":
        for inner in kind["fields"]:
            yield (field["name"], inner["name"]), inner["type"]
            yield from (((field["name"], *path), below) for path, below in _below(inner))


def nested_renames(spec: LogSpec, names: Collection[str]) -> list[str]:
    """Return the names in ``columns:`` that may be fields nested in one of the source's columns (``names``)."""
    if spec.source.format == "csv":
        return []
    return [name for name in spec.renames or {} if name not in names and name.partition(".")[0] in names]


def log_columns(spec: LogSpec, schema: str) -> LogColumns:
    """Decide the typed columns of a log. Raises `ConfigError` (78) for columns that cannot be landed."""
    sources = source_types(spec, schema)
    types = {name: kind for name, (_, kind) in sources.items()}
    roles = _roles(spec)
    if missing := _missing(spec, list(types)):
        raise missing
    taken = {*spec.key, *roles["arrived_at"], *roles["timestamp"], *spec.position_columns}
    for name in spec.position_columns:
        if landed_type(types[name]) != "long":
            raise ConfigError(
                "offset-column-not-integer",
                "log {topic}: {column} is {type}, but must be an integer",
                topic=spec.topic,
                column=name,
                type=_shown_type(types[name]),
            )
    ignored = {(spec.renames or {}).get(name, name) for name in spec.ignore}
    values = spec.value if spec.value is not None else [name for name in types if name not in {*taken, *ignored}]
    if spec.value is None and spec.is_output:
        values = [name for name in values if not name.startswith("_")]
    names: set[str] = set()
    for name in (*spec.key, *values):
        _check_name(spec, name, names)
        names.add(name.lower())
    texts = json_texts(schema)
    key = [Column(name, landed_type(types[name])) for name in spec.key]
    value = [Column(name, "json" if sources[name][0][0] in texts else landed_type(types[name])) for name in values]
    for column in key:
        if column.type == "json":
            path, kind = sources[column.name]
            hint = ""
            for inside, _ in islice(_below({"name": ".".join(path), "type": kind}), 1):
                example = f"`columns: {{{column.name}_id: {'.'.join(inside)}}}`"
                hint = f" A nested field becomes a column under `columns:`, as in {example}"
            raise ConfigError(
                "key-column-nested",
                "log {topic}: the key {column} is nested: list columns of simple types under `key:`.{hint}",
                topic=spec.topic,
                column=column.name,
                hint=hint,
            )
    return LogColumns(tuple(key), tuple(value), spec.scalar_key, spec.scalar_value, schema)


def missing_columns(spec: LogSpec, names: Sequence[str]) -> ConfigError | None:
    """Return the error for configured columns that the source lacks; None if it has all. ``names``: the source's columns.

    A nested field counts as present if the source has its outermost column.
    """
    renames, maybe = spec.renames or {}, nested_renames(spec, names)
    wrong = [(name, "columns") for name in sorted(set(renames) - {*names, *maybe})]
    # If a column in `columns:` does not exist, its new name is missing, too. The message names only the column: the cause.
    if wrong:
        return _unknown(spec, wrong, names)
    return _missing(spec, [name for source in (*names, *maybe) for name in spec.names_of(source)])


def _roles(spec: LogSpec) -> dict[str, Sequence[str]]:
    """Return, for each setting that names columns, the columns that it names."""
    return {
        "key": spec.key,
        "order": spec.order,
        "value": spec.value or (),
        "arrived_at": (spec.arrived_at,) if spec.arrived_at else (),
        **{role: (name,) for role, name in zip(("partition", "offset"), spec.position_columns, strict=False)},
        "timestamp": () if spec.timestamp == ARRIVAL or spec.extractor else (spec.timestamp,),
    }


def _missing(spec: LogSpec, names: Sequence[str]) -> ConfigError | None:
    missing = [(name, role) for role, listed in _roles(spec).items() for name in listed if name not in names]
    return _unknown(spec, missing, names) if missing else None


def _unknown(spec: LogSpec, missing: Sequence[tuple[str, str]], names: Sequence[str]) -> ConfigError:
    if len(missing) == 1 or not names:
        return unknown_column(spec, *missing[0], names=names)
    listed = ", ".join(f"{name!r} (`{role}`)" for name, role in missing)
    is_turned = all(role == "columns" and (spec.renames or {})[name] in names for name, role in missing)
    turned = ". Write the new name first: `columns: {NEW: NAME_IN_THE_SOURCE}`"
    hint = turned if is_turned else _hint(spec, [name for name, _ in missing], names)
    return ConfigError(
        "columns-unknown",
        "log {topic}: {source} has no columns {columns}. It has {existing}{hint}",
        topic=spec.topic,
        source=spec.source.name,
        columns=listed,
        existing=", ".join(names),
        hint=hint,
    )


def _shown_type(source_type: Any) -> str:
    """Return the name of a type as in SQL."""
    name = source_type if isinstance(source_type, str) else source_type["type"]
    return _SHOWN.get(name, str(name))


def unknown_column(spec: LogSpec, name: str, role: str, *, names: Sequence[str]) -> ConfigError:
    """Return the error of a setting that names a column which the source does not have."""
    if not names:
        return ConfigError(
            "source-without-columns",
            "log {topic}: {source} has no columns, because its files are empty, or not {format}: add a "
            "header line or rows, or fix `format:`",
            topic=spec.topic,
            source=spec.source.name,
            format=spec.source.format,
        )
    hint = f"It has {', '.join(names)}{_hint(spec, [name], names)}"
    return ConfigError(
        "column-unknown",
        "log {topic}, `{option}`: {source} has no column {column!r}. {known}",
        topic=spec.topic,
        option=role,
        source=spec.source.name,
        column=name,
        known=hint,
    )


def _hint(spec: LogSpec, missing: Sequence[str], names: Sequence[str]) -> str:
    """Return a hint at the probable mistake, for a message; an empty text if no mistake is probable.

    The mistakes are another separator of columns, several columns with the same name, and a misspelled name.
    """
    separator = separator_in(names)
    if spec.source.format == "csv" and separator is not None:
        option = f"`options: {{delimiter: {json.dumps(separator)}}}`"
        return f". That is one column: if {json.dumps(separator)} separates them, add {option}"
    repeated = (
        [name for name in missing if name.lower() in repeated_names(names)] if spec.source.format == "csv" else []
    )
    if repeated:
        numbered = f"The header has {repeated[0]!r} more than once (case does not count), so all are numbered"
        return f". {numbered}: rename the others in the files"
    lower = {name.lower(): name for name in names}
    near = [lower[match] for name in missing for match in get_close_matches(name.lower(), list(lower), 1)]
    return f". Did you mean {' and '.join(dict.fromkeys(map(repr, near)))}?" if near else ""


def not_a_time(spec: LogSpec, name: str, kind: str) -> ConfigError:
    """Return the error of a setting that names a column which cannot be a time. ``kind`` is the column's type, in words."""
    return ConfigError(
        "column-not-time",
        "log {topic}: {column} is {type}, which is not a time. Use a TIMESTAMP or a BIGINT of epoch milliseconds, or "
        "`timestamp: module:function`",
        topic=spec.topic,
        column=name,
        type=kind,
    )


def _check_name(spec: LogSpec, name: str, taken: set[str]) -> None:
    reason = None
    if not name.isidentifier() or keyword.iskeyword(name):
        reason = "is not a Python identifier, so it cannot be a field of a record"
    elif name.startswith("_"):
        reason = "begins with an underscore, as the columns do that rewindow adds to rows"
    elif name.lower() in RESERVED:
        reason = f"is the name of a column that every log has ({', '.join(sorted(RESERVED))})"
    elif name.lower() in taken:
        reason = "occurs twice (Delta ignores case), or is both key and value"
    if reason:
        hint = ""
        if spec.source.format == "csv" and (separator := separator_in([name])) is not None:
            here = f"If {json.dumps(separator)} separates the columns of a file"
            hint = f". {here}, unlike in the others, write it as these are, or remove it"
        raise ConfigError(
            "column-name-unusable",
            "log {topic}: the column {column!r} of {source} {reason}. Rename it, `columns: {{other_name: {quoted}}}`, or omit it "
            "by listing the others under `value:`{hint}",
            topic=spec.topic,
            column=name,
            source=spec.source.name,
            reason=reason,
            quoted=name if name.isidentifier() else json.dumps(name, ensure_ascii=not name.isprintable()),
            hint=hint,
        )
