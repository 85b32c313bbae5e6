"""Shapes are codecs between keys or values and typed columns. This module also has the column types of fields and sums.

Shapes are built once, when a job is bound to its feed. They are built from Python types (``str``, ``int``, a `NamedTuple` class)
or from the columns of a log. The column types are:

``string`` ``long`` ``double`` ``boolean`` ``binary`` ``decimal(p,s)`` and ``json`` (canonical text, for undeclared types).
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rewindow.errors import ConfigError, DataError, TopologyError
from rewindow.streams.record import Window, Windowed, maker, row_class
from rewindow.streams.serde.canonical_json import dump_value, load_value
from rewindow.streams.serde.normalizers import (
    JsonType,
    Normalizer,
    as_row,
    coerce_long,
    coercer,
    hints_of,
    is_row_type,
    json_type_of,
    list_type,
    normalize_undeclared,
    row_normalizer,
    unannotated,
    without_none,
)


class Column(typing.NamedTuple):
    """A column's name and type."""

    name: str
    type: str


OUTPUT_META = tuple(Column(name, "long") for name in ("_timestamp", "_epoch", "_partition", "_offset", "_run"))
"""Metadata columns of every output row. (_partition, _offset) is unique and ordered across runs; times are epoch ms."""
INTERNAL_META = tuple(Column(name, "long") for name in ("_timestamp", "_epoch", "_order", "_number"))
"""Metadata columns of every row of an internal log; see `streams.ordering.Emission`."""
PARTITION = "_partition"
"""The partition column of changelogs and internal logs. No field of a row may have this name."""
CHANGELOG_META = (Column("_run", "long"), Column("_tombstone", "boolean"))
"""Metadata columns of every changelog row. There is one row per key and run."""
_BOUNDS = ("window_start", "window_end")
"""The columns of a window's bounds, which are the last columns of a windowed key."""
_SCALARS: dict[Any, str] = {
    str: "string",
    int: "long",
    float: "double",
    bool: "boolean",
    bytes: "binary",
    Decimal: "decimal(38,18)",
}
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)", re.IGNORECASE)
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Shape:
    """Named columns, and the codec between a Python value and the values of these columns.

    ``encode`` raises `DataError` for a value of the wrong structure. Only `encode_checked` checks the column types.
    """

    columns: tuple[Column, ...]
    encode: Callable[[Any], tuple[Any, ...]]
    decode: Callable[[tuple[Any, ...]], Any]
    normalize: Normalizer
    """The function that stores apply when a value is put, so that a read returns the same value as after a restart."""
    is_bare: bool = False
    """Whether there is a single column whose value is the Python value itself."""
    row_type: type[Any] | None = None
    """The class of the values, if they are rows."""

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def has_json(self) -> bool:
        """Whether a column contains JSON. Its values may be mutable, such as lists."""
        return any(column.type == "json" for column in self.columns)

    @property
    def has_doubles(self) -> bool:
        """Whether a column contains doubles. Its values may be NaN."""
        return any(column.type == "double" for column in self.columns)

    def encode_checked(self, value: Any) -> tuple[Any, ...]:
        """Return the coerced column values of a Python value. Raises `DataError`, which names the column, if one does not fit."""
        return tuple(map(coerce, self.encode(value), self.columns))


def coerce(value: Any, column: Column) -> Any:
    """Return a value coerced to its column's type. Raises `DataError`, which names the column and the fix, if it does not fit."""
    try:
        return coercer(column.type)(value)
    except DataError as error:
        fix = "declare the type that the code gives (key= / value= in the topology), or convert the value"
        error.surrounded(after=f" of column {column.name!r}: {fix}")
        raise


def scalar_shape(name: str, column_type: str, json_type: JsonType | None = None) -> Shape:
    """Return the shape of a value in one column. ``json_type``: the declared type of a ``json`` value; None if undeclared."""
    if column_type == "json":
        dump, load = _json_codec(json_type)
        return Shape(
            (Column(name, "json"),),
            lambda value: (dump(value),),
            lambda values: load(values[0]),
            normalize_undeclared if json_type is None else json_type.normalize,
        )
    return Shape(
        (Column(name, column_type),),
        lambda value: (value,),
        lambda values: values[0],
        coercer(column_type),
        is_bare=True,
    )


def list_shape(name: str, item: Shape, declared: Any = None) -> Shape:
    """Return the shape of a list in one ``json`` column, given the items' shape and, if known, their ``declared`` Python type."""
    if is_row_type(declared) or typing.get_origin(declared) is not None:
        return scalar_shape(name, "json", json_type_of(list[declared]))
    return scalar_shape(name, "json", list_type(JsonType(item.normalize)))


def row_shape(columns: Sequence[Column], row_type: type[Any] | None = None) -> Shape:
    """Return the shape of a named tuple, with one column per field. A null value has null in every column."""
    made = row_type or row_class(tuple(column.name for column in columns))
    hints = hints_of(row_type) if row_type else {}
    types = [json_type_of(hints.get(c.name)) if c.type == "json" else JsonType(coercer(c.type)) for c in columns]
    nulls = (None,) * len(columns)
    codecs = [(index, *_json_codec(types[index])) for index, column in enumerate(columns) if column.type == "json"]

    def encode(value: Any) -> tuple[Any, ...]:
        if value is None:
            return nulls
        row: tuple[Any, ...] = as_row(value, made)
        if not codecs:
            return row
        values = list(row)
        for index, dump, _ in codecs:
            values[index] = dump(values[index])
        return tuple(values)

    def decode(values: tuple[Any, ...]) -> Any:
        items = list(values)
        for index, _, load in codecs:
            items[index] = load(items[index])
        return make(tuple(items))

    make = maker(made)
    return Shape(
        tuple(columns),
        encode,
        decode if codecs else make,
        row_normalizer(made, [json_type.normalize for json_type in types]),
        row_type=made,
    )


def windowed_shape(key: Shape, *, session: bool = False) -> Shape:
    """Return the shape of a windowed key: the key's columns, then ``window_start`` and ``window_end`` (epoch ms).

    If the key itself is windowed, its bounds are renamed to ``key_window_start`` and ``key_window_end``.
    """
    width = len(key.columns)

    def decode(values: tuple[Any, ...]) -> Windowed:
        return Windowed(key.decode(values[:width]), Window(values[width], values[width + 1], session))

    def encode(windowed: Any) -> tuple[Any, ...]:
        if windowed.__class__ is not Windowed:
            raise DataError(
                "key-not-windowed",
                "{given} ({type}) was given where a windowed key is declared",
                given=repr(windowed),
                type=type(windowed).__name__,
            )
        return (*key.encode(windowed.key), *windowed.window[:2])

    def normalize(windowed: Any) -> Any:
        if windowed.__class__ is Windowed and windowed.window.__class__ is Window:
            own, (start_ms, end_ms, is_session) = key.normalize(windowed.key), windowed.window
            if own is windowed.key and start_ms.__class__ is end_ms.__class__ is int and is_session is session:
                return windowed
        *_, start_ms, end_ms = encode(windowed)
        normal = Windowed(key.normalize(windowed.key), Window(coerce_long(start_ms), coerce_long(end_ms), session))
        if normal.window != windowed.window:
            raise DataError(
                "window-read-back-differently",
                "{given} was given, but would be read back as {restored}",
                given=repr(windowed.window),
                restored=repr(normal.window),
            )
        return normal

    bounds = tuple(Column(name, "long") for name in _BOUNDS)
    return Shape((*renamed(key.columns, _BOUNDS), *bounds), encode, decode, normalize)


def has_bounds(names: Sequence[str]) -> bool:
    """Return whether a key's column names end with the bounds of a window, possibly renamed with the prefix ``key_``."""
    return tuple(name.removeprefix("key_") for name in names[-2:]) == _BOUNDS


def renamed(columns: Sequence[Column], taken: Collection[str]) -> tuple[Column, ...]:
    """Return a key's columns. ``key_`` is put before each name that is in ``taken``, ignoring case."""
    folded = {name.casefold() for name in taken}
    return tuple(Column(f"key_{c.name}" if c.name.casefold() in folded else c.name, c.type) for c in columns)


def check_distinct(columns: Sequence[Column], table: str) -> None:
    """Raise `ConfigError` if two columns of a table have the same name, ignoring case as Spark does.

    ``table`` describes the table in the message.
    """
    name_of: dict[str, str] = {}
    for column in columns:
        folded = column.name.casefold()
        if folded in name_of:
            other = name_of[folded]
            both = repr(other) if other == column.name else f"{other!r} and {column.name!r}"
            raise ConfigError(
                "column-named-twice",
                "{table} would have the column {columns} twice: give the key, field or aggregate another name",
                table=table,
                columns=both,
            )
        name_of[folded] = column.name


def shape_of(declared: Any, name: str) -> Shape:
    """Return the shape of a Python type. For None (undeclared), it is one ``json`` column called ``name``.

    Raises `ConfigError` for a type that has no columns.
    """
    if scalar := _scalar_type(declared):
        return scalar_shape(name, scalar)
    declared = unannotated(declared)
    if declared is None or declared is Any:
        return scalar_shape(name, "json")
    if is_row_type(declared):
        hints = hints_of(declared)
        return row_shape(
            [Column(field, _scalar_type(hints.get(field)) or "json") for field in declared._fields], declared
        )
    if typing.get_origin(declared) in (dict, list, tuple) or declared in (dict, list, tuple):
        return scalar_shape(name, "json", json_type_of(declared))
    raise ConfigError(
        "type-without-columns",
        "no columns for the type {type} of {column}: use str, int, float, bool, bytes, Decimal or a NamedTuple of them",
        type=repr(declared),
        column=name,
    )


def named_key(name: str, key: Sequence[str], fix: str) -> str:
    """Return the end of a message about an unknown field ``name``, with the fix, if it is a key column; otherwise ``""``."""
    return f": it is the key, {fix}" if name in key else ""


def field_type(row: Shape, field: str | None, key: Sequence[str] = ()) -> str:
    """Return the column type of a field of rows, or of values that are not rows if ``field`` is None.

    Raises `ConfigError` if there is no such field. ``key``: the key columns of the log that contains the rows, for the
    message.
    """
    is_json = len(row.columns) == 1 and row.columns[0].type == "json" and row.row_type is None
    if is_json:
        return "json"
    if field is None and row.is_bare:
        return row.columns[0].type
    if field is None:
        raise ConfigError(
            "aggregate-without-field",
            "whole rows cannot be aggregated: name a field (fields: {fields}), as in Sum({example!r})",
            fields=", ".join(row.names),
            example=row.names[0],
        )
    if row.is_bare:
        raise ConfigError(
            "aggregate-field-of-bare-value",
            "there is no field {field!r} because the values are not rows: leave the field out, as in Sum()",
            field=field,
        )
    for column in row.columns:
        if column.name == field:
            return column.type
    fix = named_key(field, key, "not a field of the value: name one of them") or ": name one of them"
    raise ConfigError(
        "aggregate-field-unknown",
        "there is no field {field!r} (fields: {fields}){fix}",
        field=field,
        fields=", ".join(row.names),
        fix=fix,
    )


def sum_type(row: Shape, field: str | None, key: Sequence[str] = (), *, aggregate: str, is_landed: bool) -> str:
    """Return the column type of the sum of a field. Raises `ConfigError` for a field that is not a number.

    For the message, ``aggregate`` is the name of the aggregate, and ``is_landed`` says whether the rows come directly from a
    log.
    """
    column_type = field_type(row, field, key)
    if column_type.startswith("decimal("):
        return f"decimal(38,{column_type[:-1].split(',')[1]})"
    if column_type in ("string", "binary"):
        call = f"{aggregate}({'' if field is None else json.dumps(field, ensure_ascii=False)})"
        kind = "text" if column_type == "string" else "bytes"
        if is_landed:
            raise ConfigError(
                "landed-field-not-number",
                "{aggregate}: {field} is {type} in the log, and it takes numbers: convert it with map_values, or declare a "
                "number in the source's `schema:`. If the log is landed already, also give the column a new name in "
                "`columns:`, and land with --new-generation",
                aggregate=call,
                field=field or "the value",
                type=kind,
            )
        raise ConfigError(
            "aggregate-field-not-number",
            "{aggregate} takes numbers, but {field} is {type}: convert it with map_values",
            aggregate=call,
            field=field or "the value",
            type=kind,
        )
    return "long" if column_type == "boolean" else column_type


def named_shape(named: str, name: str, key: Shape, value: Shape) -> Shape:
    """Return the shape of the part of a record that ``named`` refers to. ``name``: its column's name, if it needs one.

    ``key`` and ``value`` are the record's shapes (see `NamedType`). Raises `ConfigError` if ``named`` is unknown or a row.
    """
    if value.row_type is None and value.has_json:
        # The fields of undeclared values are unknown.
        return scalar_shape(name, "json")
    fields = () if value.row_type is None else value.columns
    for column in fields:
        if column.name == named:
            return scalar_shape(name, column.type)
    if named == "timestamp":
        return scalar_shape(name, "long")
    if named in ("key", "value"):
        shape = key if named == "key" else value
        if shape.row_type is None:
            return shape
        raise ConfigError(
            "selected-name-is-row",
            "select(...): {name} is a row ({fields}): name its fields, or use map_values(with_key=True)",
            name=named,
            fields=", ".join(shape.names),
        )
    fix = named_key(named, key.names, "write key") or ": name one of them"
    raise ConfigError(
        "selected-field-unknown",
        "select(...): there is no field {field!r} (there are {fields}){fix}",
        field=named,
        fields=", ".join([*(column.name for column in fields), "key", "value", "timestamp"]),
        fix=fix,
    )


def number_type(parts: Sequence[Shape], text: str) -> str:
    """Return the column type of a number computed from ``parts``. Raises `ConfigError` for operands that are not numbers."""
    types = set()
    for shape in parts:
        types |= {column.type for column in shape.columns} if shape.row_type is None else {"a row"}
    if wrong := types - {"long", "double", "json"}:
        raise ConfigError(
            "computed-type-not-number",
            "select(...): {expression} of {types}: it takes whole numbers and floats; use map_values for others",
            expression=text,
            types=", ".join(sorted(wrong)),
        )
    return "json" if "json" in types else "double" if "double" in types else "long"


def _json_codec(json_type: JsonType | None) -> tuple[Callable[[Any], str | None], Callable[[str | None], Any]]:
    """Return the functions ``(dump, load)`` between a value and its canonical text. Undeclared values are not normalized."""
    if json_type is None or json_type.rebuild is None:
        return (
            lambda value: None if value is None else dump_value(value),
            lambda text: None if text is None else load_value(text),
        )
    normalize, rebuild = json_type.normalize, json_type.rebuild
    return (
        lambda value: None if value is None else dump_value(normalize(value)),
        lambda text: None if text is None else rebuild(load_value(text)),
    )


def _scalar_type(declared: Any) -> str | None:
    """Return the column type of a scalar Python type, which may be ``T | None``; None if the type is not scalar.

    ``Decimal`` means ``decimal(38,18)``; ``Annotated[Decimal, "DECIMAL(12,2)"]`` means ``decimal(12,2)``. Raises
    `TopologyError` if the text of such an annotation is not a decimal type.
    """
    declared = without_none(declared)
    if typing.get_origin(declared) is not typing.Annotated:
        return _SCALARS.get(declared) if isinstance(declared, type) else None
    base, *notes = typing.get_args(declared)
    texts = [note for note in notes if isinstance(note, str)]
    return _decimal_type(texts[0]) if base is Decimal and texts else _scalar_type(base)


def _decimal_type(text: str) -> str:
    match = _DECIMAL.fullmatch(text.strip())
    precision, scale = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= precision <= _MOST_DIGITS or scale > precision:
        raise TopologyError(
            "decimal-type-invalid",
            "Annotated[Decimal, {type!r}]: {type!r} is not a decimal type: write all its digits, at most "
            "{limit}, and those after the point, as in Annotated[Decimal, 'DECIMAL(12,2)']",
            type=text,
            limit=_MOST_DIGITS,
        )
    return f"decimal({precision},{scale})"
