"""The fields of a source's schema and of its files, so that `land` can refuse a file with other fields.

A field is a column, or a path into nested values (``address.zip``, also through an array). Tables have no type for canonical
JSON, so such values are in a text column. A run marks these columns of its outputs in the schema of the table. A feed that
lands the output then restores their type.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewindow.contracts.ingest import ARRIVAL, LogColumns, LogSpec

SMALL_JSON_BYTES = 1 << 20
"""If the JSON files together are larger than this, their fields are not determined, because every line would have to be
read."""
_MARK = "rewindow.type"
_JSON = "json"


@dataclass(frozen=True, slots=True)
class FileFields:
    """The fields that occur in any row of one file (or of a table).

    ``empty`` are the fields without a value in any row, so it is unknown which fields are nested in them. ``header`` are the
    columns of a CSV file in order. Columns that come from names of directories are only in ``present``. ``repeated`` are the
    names that the header of a CSV file has more than once; in ``present`` a number is appended to each.
    """

    name: str
    present: frozenset[str]
    empty: frozenset[str] = frozenset()
    header: tuple[str, ...] = ()
    repeated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceFields:
    """The fields of a log's schema (``known``), and the fields of the files to land.

    ``structs`` are the fields whose nested fields the schema lists. In other fields (maps, text), nested names are data.
    """

    known: frozenset[str] = frozenset()
    structs: frozenset[str] = frozenset()
    files: tuple[FileFields, ...] = ()
    ignores_case: bool = False


def read_columns(spec: LogSpec, columns: LogColumns) -> set[str]:
    """Return the columns of the source from which rows are made, by their names in the source. Nested fields are paths."""
    return _in_source(spec, {column.name for column in columns.all} | _named(spec))


def named_columns(spec: LogSpec) -> set[str]:
    """Return the columns that the configuration names, by their names in the source."""
    return _in_source(spec, _named(spec) | {*(spec.value or ())})


def is_read(column: str, names: Collection[str]) -> bool:
    """Return whether a column is in ``names``, or contains a nested field that is in ``names``."""
    return column in names or any(name.startswith(f"{column}.") for name in names)


def written(name: str) -> str:
    """Return a column's name for a message. If the name begins or ends with blanks, put it in quotes to make them visible."""
    return name if name == name.strip() else repr(name)


def repeated_names(columns: Sequence[str]) -> frozenset[str]:
    """Return the names, in lower case, that a CSV header has more than once."""
    # To a repeated name, the reader has appended the position of the column.
    names = [name.lower().removesuffix(str(at)) for at, name in enumerate(columns) if name.endswith(str(at))]
    return frozenset(name for name, count in Counter(names).items() if count > 1)


def positions(header: Sequence[str], names: Collection[str]) -> dict[str, int]:
    """Return the position of each named column that a CSV header has. Names are compared without case, but with blanks."""
    at = {name.lower(): position for position, name in reversed([*enumerate(header)])}
    return {name: at[name.lower()] for name in names if name.lower() in at}


def separator_in(names: Collection[str]) -> str | None:
    """Return the probable separator of a CSV file whose header was read as one column; None if there is none."""
    only = next(iter(names)) if len(names) == 1 else ""
    return next((one for one in (";", "\t", "|", ",") if one in only), None)


def role_of(spec: LogSpec, fields: Collection[str]) -> str:
    """Return the role in the log of the first of ``fields`` that has one, as ``at is the log's timestamp``; ``""`` if none has.

    Without a column that has a role, a row cannot be landed or has no key. So ``optional`` does not help for such a column.
    """
    roles = [(spec.timestamp, "the log's timestamp"), (spec.arrived_at, "the log's `arrived_at`")]
    roles += [(name, "the log's key" if spec.scalar_key else "part of the log's key") for name in spec.key]
    for name, role in roles:
        if name is not None and (source := next(iter(_in_source(spec, {name})))).lower() in {f.lower() for f in fields}:
            return f"{source} is {role}"
    return ""


def read_schema(spec: LogSpec, columns: LogColumns) -> str:
    """Return the schema (Spark's JSON) with which a log's source is read."""
    schema = columns.source_schema or '{"fields":[],"type":"struct"}'
    if spec.source.format not in ("csv", "json", "parquet") or spec.source.schema is not None:
        return schema
    # Inferred number types are replaced by the log's wide types, because later files may have larger numbers.
    wide = {**dict.fromkeys(("byte", "short", "integer"), "long"), "float": "double"}
    read = json.loads(schema)
    fields = [
        {**field, "type": wide.get(field["type"], field["type"])} if isinstance(field["type"], str) else field
        for field in read["fields"]
    ]
    return json.dumps({**read, "fields": fields}, separators=(",", ":"), sort_keys=True)


def fields_of_schema(schema: Mapping[str, Any]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return three sets of fields of a schema in Spark's JSON: all fields, structs, and fields without values.

    A field has no values if its type is void, or a struct without fields.
    """
    present: set[str] = set()
    structs: set[str] = set()
    empty: set[str] = set()
    _walk(schema, "", present, structs, empty)
    return frozenset(present), frozenset(structs), frozenset(empty)


def parent_of(field: str, fields: Sequence[str] | frozenset[str]) -> str:
    """Return the innermost of ``fields`` in which a field is nested; empty if there is none."""
    at = field
    while "." in at:
        at = at.rpartition(".")[0]
        if at in fields:
            return at
    return ""


def marked(schema: str, names: Collection[str]) -> str:
    """Return a schema (Spark's JSON) in which the columns ``names`` are marked as canonical JSON."""
    parsed = json.loads(schema)
    for field in parsed["fields"]:
        if field["name"] in names:
            field["metadata"] = {**field.get("metadata", {}), _MARK: _JSON}
    return json.dumps(parsed)


def json_texts(schema: str) -> frozenset[str]:
    """Return the columns that `marked` has marked in a schema."""
    fields = json.loads(schema)["fields"]
    return frozenset(field["name"] for field in fields if field.get("metadata", {}).get(_MARK) == _JSON)


def _in_source(spec: LogSpec, names: set[str]) -> set[str]:
    old = {new: name for name, new in (spec.renames or {}).items()}
    return {old.get(name, name) for name in sorted(names)}


def _named(spec: LogSpec) -> set[str]:
    names = {*spec.key, *spec.order, *spec.position_columns}
    names |= {spec.arrived_at} if spec.arrived_at else set()
    return names if spec.timestamp == ARRIVAL or spec.extractor else names | {spec.timestamp}


def _walk(kind: Any, path: str, present: set[str], structs: set[str], empty: set[str]) -> None:
    match kind:
        case {"type": "struct", "fields": fields}:
            if path:
                structs.add(path)
                empty |= set() if fields else {path}
            for field in fields:
                below = f"{path}.{field['name']}" if path else field["name"]
                present.add(below)
                _walk(field["type"], below, present, structs, empty)
        case {"type": "array", "elementType": inner}:
            _walk(inner, path, present, structs, empty)
        case "void":
            empty.add(path)
