"""Nested cells: Spark's JSON of a struct, array, map or variant as the canonical JSON that a topology reads.

A struct whose fields are Python names is a row, a map a dictionary, an array a list; a variant's objects, and structs
with other names, are dictionaries.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - Spark's own convention

from rewindow.core.json_codec import dump_value
from rewindow.core.land import LogColumns, LogSpec
from rewindow.core.record import row_class

Reader = Callable[[Any], Any]
"""Makes a Python value of parsed JSON."""


def json_readers(spec: LogSpec, columns: LogColumns) -> dict[str, Reader]:
    """Return for each ``json`` column of a log what makes Python values of its parsed cells."""
    wanted = {column.name for column in columns.all if column.type == "json"}
    if not wanted:
        return {}
    renames = spec.renames or {}
    fields = T.StructType.fromJson(json.loads(columns.source_schema or "{}")).fields
    kinds = {renames.get(field.name, field.name): field.dataType for field in fields}
    return {name: _reader(kinds[name]) for name in sorted(wanted)}


def canonical_json(column: pa.Array, read: Reader) -> pa.Array:
    """Return cells of Spark's JSON as canonical JSON."""
    coded = column.dictionary_encode()
    texts = [dump_value(read(json.loads(text))) for text in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def _reader(kind: T.DataType) -> Reader:
    if isinstance(kind, T.ArrayType):
        item = _reader(kind.elementType)
        return lambda items: None if items is None else [item(value) for value in items]
    if isinstance(kind, T.MapType):
        item = _reader(kind.valueType)
        return lambda pairs: None if pairs is None else {key: item(value) for key, value in pairs.items()}
    if isinstance(kind, T.StructType):
        return _struct_reader(kind)
    return lambda value: value


def _struct_reader(kind: T.StructType) -> Reader:
    fields = {field.name: _reader(field.dataType) for field in kind.fields}
    is_row = all(name.isidentifier() and not keyword.iskeyword(name) and name[0] != "_" for name in fields)
    make: Callable[..., Any] = (
        row_class(tuple(fields)) if is_row else lambda *cells: dict(zip(fields, cells, strict=True))
    )

    def read(found: dict[str, Any] | None) -> Any:
        # Spark leaves null fields out.
        return None if found is None else make(*(item(found.get(name)) for name, item in fields.items()))

    return read
