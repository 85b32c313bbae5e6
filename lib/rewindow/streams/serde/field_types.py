"""Types of fields, of their sums, and of the names and numbers in declared expressions."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rewindow.errors import ConfigError
from rewindow.streams.serde.schema import Shape, scalar_shape


def named_key(name: str, key: Sequence[str], fix: str) -> str:
    """Return, as the end of a sentence, that a name which no field has is that of the key, and the fix; else ``""``."""
    return f": it is the key, {fix}" if name in key else ""


def field_type(row: Shape, field: str | None, key: Sequence[str] = ()) -> str:
    """Return the type of a field of rows, or of bare values. Raises `ConfigError` if there is no such field.

    ``key``: the columns of the key of the log that has the rows, for the error.
    """
    is_json = len(row.columns) == 1 and row.columns[0].type == "json" and row.row_type is None
    if is_json:
        return "json"
    if field is None and row.is_bare:
        return row.columns[0].type
    if field is None:
        message = f"whole rows cannot be aggregated: name a field (fields: {', '.join(row.names)}), as in Sum({row.names[0]!r})"
        raise ConfigError(message)
    if row.is_bare:
        message = f"there is no field {field!r} because the values are not rows: leave the field out, as in Sum()"
        raise ConfigError(message)
    for column in row.columns:
        if column.name == field:
            return column.type
    fix = named_key(field, key, "not a field of the value: name one of them") or ": name one of them"
    message = f"there is no field {field!r} (fields: {', '.join(row.names)}){fix}"
    raise ConfigError(message)


def sum_type(row: Shape, field: str | None, key: Sequence[str] = (), *, aggregate: str, is_landed: bool) -> str:
    """Return the type of the sum of a field. Raises `ConfigError` for a field that is not a number.

    ``aggregate``, ``is_landed``: the aggregate that needs it, and whether the rows are those of a log, for the error.
    """
    column_type = field_type(row, field, key)
    if column_type.startswith("decimal("):
        return f"decimal(38,{column_type[:-1].split(',')[1]})"
    if column_type in ("string", "binary"):
        what = f"{aggregate}({'' if field is None else json.dumps(field, ensure_ascii=False)})"
        kind = "text" if column_type == "string" else "bytes"
        fix = (
            "convert it with map_values, or land it as a number: declare that in the source's `schema:`, give it a new name in "
            "`columns:`, as a log keeps the type of each name, and land with --new-generation"
        )
        if is_landed:
            raise ConfigError(f"{what}: {field or 'the value'} was landed as {kind}, and it takes numbers: {fix}")
        raise ConfigError(f"{what}: {field or 'the value'} is {kind}, and it takes numbers: convert it with map_values")
    return "long" if column_type == "boolean" else column_type


def named_shape(named: str, name: str, key: Shape, value: Shape) -> Shape:
    """Return the shape of ``named`` in a record, for a column ``name``. Raises `ConfigError` if there is no such name."""
    if value.row_type is None and value.has_json:
        return scalar_shape(name, "json")  # the fields of undeclared values are unknown
    fields = () if value.row_type is None else value.columns
    for column in fields:
        if column.name == named:
            return scalar_shape(name, column.type)
    if named == "timestamp":
        return scalar_shape(name, "long")
    if named in ("key", "value"):
        found = key if named == "key" else value
        if found.row_type is None:
            return found
        message = f"select(...): {named} is a row ({', '.join(found.names)}): name its fields, or use map_values(with_key=True)"
        raise ConfigError(message)
    names = ", ".join([*(column.name for column in fields), "key", "value", "timestamp"])
    fix = named_key(named, key.names, "write key") or ": name one of them"
    message = f"select(...): there is no field {named!r} (there are {names}){fix}"
    raise ConfigError(message)


def number_type(parts: Sequence[Shape], text: str) -> str:
    """Return the type of a number computed from others. Raises `ConfigError` for operands that are not numbers."""
    types = set()
    for shape in parts:
        types |= {column.type for column in shape.columns} if shape.row_type is None else {"a row"}
    if wrong := types - {"long", "double", "json"}:
        message = f"select(...): {text} of {', '.join(sorted(wrong))}: it takes whole numbers and floats"
        raise ConfigError(f"{message}; use map_values for others")
    return "json" if "json" in types else "double" if "double" in types else "long"
