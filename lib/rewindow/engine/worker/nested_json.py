"""Nested cells: Spark's JSON of a struct, array, map or variant as the canonical JSON that a topology reads.

A struct whose fields are Python names is a row, a map a dictionary, an array a list; a variant's objects, and structs
with other names, are dictionaries.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from rewindow.contracts.ingest import LogColumns, LogSpec
from rewindow.streams.record import row_class
from rewindow.streams.serde.canonical_json import dump_value

Reader = Callable[[Any], Any]
"""Makes a Python value of parsed JSON."""


def json_readers(spec: LogSpec, columns: LogColumns) -> dict[str, Reader]:
    """Return for each ``json`` column of a log what makes Python values of its parsed cells."""
    wanted = {column.name for column in columns.all if column.type == "json"}
    if not wanted:
        return {}
    renames = spec.renames or {}
    fields = json.loads(columns.source_schema or '{"fields": []}')["fields"]
    kinds = {renames.get(field["name"], field["name"]): field["type"] for field in fields}
    return {name: _reader(kinds[name]) for name in sorted(wanted)}


def canonical_json(column: pa.Array, read: Reader) -> pa.Array:
    """Return cells of Spark's JSON as canonical JSON."""
    coded = column.dictionary_encode()
    texts = [dump_value(read(json.loads(text))) for text in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def _reader(kind: Any) -> Reader:
    """Return the reader of a type in the JSON form of Spark's schemas: a name, or an object for a nested one."""
    match kind:
        case {"type": "array", "elementType": inner}:
            item = _reader(inner)
            return lambda items: None if items is None else [item(value) for value in items]
        case {"type": "map", "valueType": inner}:
            item = _reader(inner)
            return lambda pairs: None if pairs is None else {key: item(value) for key, value in pairs.items()}
        case {"type": "struct", "fields": fields}:
            return _struct_reader({field["name"]: _reader(field["type"]) for field in fields})
    return lambda value: value


def _struct_reader(fields: Mapping[str, Reader]) -> Reader:
    is_row = all(name.isidentifier() and not keyword.iskeyword(name) and name[0] != "_" for name in fields)
    make: Callable[..., Any] = (
        row_class(tuple(fields)) if is_row else lambda *cells: dict(zip(fields, cells, strict=True))
    )

    def read(found: dict[str, Any] | None) -> Any:
        # Spark leaves null fields out.
        return None if found is None else make(*(item(found.get(name)) for name, item in fields.items()))

    return read
