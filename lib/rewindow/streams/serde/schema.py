"""How keys and values become typed columns, and back.

A `Shape` is made once, when a job is bound to its feed, from Python types (``str``, ``int``, a `NamedTuple` class,
``Windowed[...]`` through `windowed_shape`) or from the columns of a log. The columns' types:

``string`` ``long`` ``double`` ``boolean`` ``binary`` ``decimal(p,s)`` and ``json`` (canonical text: what has no declared type).
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rewindow.errors import ConfigError, DataError
from rewindow.streams.record import Window, Windowed, maker, row_class
from rewindow.streams.serde.canonical_json import dump_value, load_value
from rewindow.streams.serde.coercion import Keep, fit_long, fitter
from rewindow.streams.serde.values import (
    Kind,
    as_row,
    hints_of,
    is_row_type,
    keep_undeclared,
    kind_of,
    list_kind,
    row_keep,
    without_none,
)

SCALARS: dict[Any, str] = {
    str: "string",
    int: "long",
    float: "double",
    bool: "boolean",
    bytes: "binary",
    Decimal: "decimal(38,18)",
}


class Column(typing.NamedTuple):
    """A column's name and type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Shape:
    """Named columns and the functions between a Python value and their cells.

    ``encode`` raises `DataError` for a value of another form; whether each cell fits its column is `encode_checked`.
    """

    columns: tuple[Column, ...]
    encode: Callable[[Any], tuple[Any, ...]]
    decode: Callable[[tuple[Any, ...]], Any]
    keep: Keep
    """What a store does to a value when it is put, so that it sees now what a restart gives back."""
    is_bare: bool = False
    """The one cell is the value."""
    row_type: type[Any] | None = None
    """The class of the values, if they are rows."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def has_json(self) -> bool:
        """Whether a value may have parts that can be changed in place."""
        return any(column.type == "json" for column in self.columns)

    @property
    def has_doubles(self) -> bool:
        """Whether a value may contain what is no number."""
        return any(column.type == "double" for column in self.columns)

    def encode_checked(self, value: Any) -> tuple[Any, ...]:
        """Return the cells of a value as their columns give them back. Raises `DataError` naming the column that refuses."""
        return tuple(fit_column(cell, column) for cell, column in zip(self.encode(value), self.columns, strict=True))


def fit_column(cell: Any, column: Column) -> Any:
    """Return a cell as its column gives it back. Raises `DataError` if it does not fit, naming the column and the fix."""
    try:
        return fitter(column.type)(cell)
    except DataError as error:
        message = (
            f"{error} of column {column.name!r}: declare the type that the code gives (key= / value= in the "
            "topology), or convert the value"
        )
        raise DataError(message) from error


def scalar_shape(name: str, column_type: str, kind: Kind | None = None) -> Shape:
    """Return the shape of a bare value in one column. ``kind``: what is known of a ``json`` value."""
    if column_type == "json":
        dump, load = _json_codec(kind)
        return Shape(
            (Column(name, "json"),),
            lambda value: (dump(value),),
            lambda cells: load(cells[0]),
            keep_undeclared if kind is None else kind.keep,
        )
    return Shape(
        (Column(name, column_type),), lambda value: (value,), lambda cells: cells[0], fitter(column_type), is_bare=True
    )


def list_shape(name: str, item: Shape, declared: Any = None) -> Shape:
    """Return the shape of a list in one ``json`` column. ``declared``: the items' Python type, if that is known."""
    if is_row_type(declared) or typing.get_origin(declared) is not None:
        return scalar_shape(name, "json", kind_of(list[declared]))
    return scalar_shape(name, "json", list_kind(Kind(item.keep)))


def row_shape(columns: Sequence[Column], row_type: type[Any] | None = None) -> Shape:
    """Return the shape of a named tuple, one column a field. A null value is a null in every column."""
    made = row_type or row_class(tuple(column.name for column in columns))
    hints = hints_of(row_type) if row_type else {}
    kinds = [kind_of(hints.get(c.name)) if c.type == "json" else Kind(fitter(c.type)) for c in columns]
    nulls = (None,) * len(columns)
    codecs = [(index, *_json_codec(kinds[index])) for index, column in enumerate(columns) if column.type == "json"]

    def encode(value: Any) -> tuple[Any, ...]:
        if value is None:
            return nulls
        row: tuple[Any, ...] = as_row(value, made)
        if not codecs:
            return row
        cells = list(row)
        for index, dump, _ in codecs:
            cells[index] = dump(cells[index])
        return tuple(cells)

    def decode(cells: tuple[Any, ...]) -> Any:
        values = list(cells)
        for index, _, load in codecs:
            values[index] = load(values[index])
        return make(tuple(values))

    make = maker(made)
    return Shape(
        tuple(columns),
        encode,
        decode if codecs else make,
        row_keep(made, [kind.keep for kind in kinds]),
        row_type=made,
    )


def _json_codec(kind: Kind | None) -> tuple[Callable[[Any], str | None], Callable[[str | None], Any]]:
    """Return the functions between a value and its canonical text. What has no declared type is dumped as it is."""
    if kind is None or kind.rebuild is None:
        return (
            lambda value: None if value is None else dump_value(value),
            lambda text: None if text is None else load_value(text),
        )
    keep, rebuild = kind.keep, kind.rebuild
    return (
        lambda value: None if value is None else dump_value(keep(value)),
        lambda text: None if text is None else rebuild(load_value(text)),
    )


def windowed_shape(key: Shape, *, session: bool = False) -> Shape:
    """Return the shape of a windowed key: the key's columns, then ``window_start`` and ``window_end`` (epoch ms).

    Of a window within a window the inner bounds are called ``key_window_start`` and ``key_window_end``.
    """
    width = len(key.columns)

    def decode(cells: tuple[Any, ...]) -> Windowed:
        return Windowed(key.decode(cells[:width]), Window(cells[width], cells[width + 1], session))

    def encode(windowed: Any) -> tuple[Any, ...]:
        if windowed.__class__ is not Windowed:
            message = f"{windowed!r} ({type(windowed).__name__}) was given where a windowed key is declared"
            raise DataError(message)
        return (*key.encode(windowed.key), *windowed.window[:2])

    def keep(windowed: Any) -> Any:
        if windowed.__class__ is Windowed and windowed.window.__class__ is Window:
            own, (start_ms, end_ms, is_session) = key.keep(windowed.key), windowed.window
            if own is windowed.key and start_ms.__class__ is end_ms.__class__ is int and is_session is session:
                return windowed
        *_, start_ms, end_ms = encode(windowed)
        kept = Windowed(key.keep(windowed.key), Window(fit_long(start_ms), fit_long(end_ms), session))
        if kept.window != windowed.window:
            message = f"{windowed.window!r} was given where {kept.window!r} would come back"
            raise DataError(message)
        return kept

    bounds = (Column("window_start", "long"), Column("window_end", "long"))
    names = [bound.name for bound in bounds]
    return Shape((*renamed(key.columns, names), *bounds), encode, decode, keep)


def renamed(columns: Sequence[Column], taken: Collection[str]) -> tuple[Column, ...]:
    """Return a key's columns with ``key_`` before each name that is taken."""
    folded = {name.casefold() for name in taken}
    return tuple(Column(f"key_{c.name}" if c.name.casefold() in folded else c.name, c.type) for c in columns)


def check_distinct(columns: Sequence[Column], what: str) -> None:
    """Check that no two columns of a table have the same name, as Spark reads it: upper and lower case are one.

    Raises `ConfigError` naming the columns, the table and the fix.
    """
    seen: dict[str, str] = {}
    for column in columns:
        folded = column.name.casefold()
        if folded in seen:
            other = seen[folded]
            both = repr(other) if other == column.name else f"{other!r} and {column.name!r}"
            message = f"{what} would have the column {both} twice: give the key, field or aggregate another name"
            raise ConfigError(message)
        seen[folded] = column.name


def shape_of(declared: Any, name: str) -> Shape:
    """Return the shape of a Python type; of ``None`` (nothing was declared) one ``json`` column called ``name``.

    Raises `ConfigError` for a type that has no columns.
    """
    declared = without_none(declared)
    if declared is None or declared is Any:
        return scalar_shape(name, "json")
    if declared in SCALARS:
        return scalar_shape(name, SCALARS[declared])
    if is_row_type(declared):
        hints = hints_of(declared)
        return row_shape([Column(field, _column_type(hints.get(field))) for field in declared._fields], declared)
    if typing.get_origin(declared) in (dict, list, tuple) or declared in (dict, list, tuple):
        return scalar_shape(name, "json", kind_of(declared))
    message = f"no columns for the type {declared!r} of {name}: use str, int, float, bool, bytes, Decimal or a NamedTuple of them"
    raise ConfigError(message)


def _column_type(hint: Any) -> str:
    return SCALARS.get(without_none(hint), "json")
