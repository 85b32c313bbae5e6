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
from types import UnionType
from typing import Any

from rewindow.core.json_codec import dump_value, load_value
from rewindow.core.record import Window, Windowed, row_class
from rewindow.errors import ConfigError

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
    """Named columns and the two functions between a Python value and their cells."""

    columns: tuple[Column, ...]
    to_cells: Callable[[Any], tuple[Any, ...]]
    from_cells: Callable[[tuple[Any, ...]], Any]
    is_bare: bool = False
    """The one cell is the value."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)


def scalar_shape(name: str, column_type: str) -> Shape:
    """Return the shape of a bare value in one column."""
    if column_type == "json":
        return Shape(
            (Column(name, "json"),),
            lambda value: (None if value is None else dump_value(value),),
            lambda cells: None if cells[0] is None else load_value(cells[0]),
        )
    return Shape((Column(name, column_type),), lambda value: (value,), lambda cells: cells[0], is_bare=True)


def row_shape(columns: Sequence[Column], row_type: type[Any] | None = None) -> Shape:
    """Return the shape of a named tuple, one column a field. A null value is a null in every column."""
    make = (row_type or row_class(tuple(column.name for column in columns)))._make
    nulls = (None,) * len(columns)
    json_at = [index for index, column in enumerate(columns) if column.type == "json"]

    def to_cells(value: Any) -> tuple[Any, ...]:
        if value is None:
            return nulls
        if not json_at:
            return tuple(value)
        cells = list(value)
        for index in json_at:
            cells[index] = None if cells[index] is None else dump_value(cells[index])
        return tuple(cells)

    def from_cells(cells: tuple[Any, ...]) -> Any:
        values = list(cells)
        for index in json_at:
            values[index] = None if values[index] is None else load_value(values[index])
        return make(values)

    return Shape(tuple(columns), to_cells, from_cells if json_at else make)


def windowed_shape(key: Shape, *, session: bool = False) -> Shape:
    """Return the shape of a windowed key: the key's columns, then ``window_start`` and ``window_end`` (epoch ms).

    Of a window within a window the inner bounds are called ``key_window_start`` and ``key_window_end``.
    """
    width = len(key.columns)

    def from_cells(cells: tuple[Any, ...]) -> Windowed:
        return Windowed(key.from_cells(cells[:width]), Window(cells[width], cells[width + 1], session))

    bounds = (Column("window_start", "long"), Column("window_end", "long"))
    return Shape(
        (*renamed(key.columns, [bound.name for bound in bounds]), *bounds),
        lambda windowed: (*key.to_cells(windowed.key), windowed.window.start_ms, windowed.window.end_ms),
        from_cells,
    )


def renamed(columns: Sequence[Column], taken: Collection[str]) -> tuple[Column, ...]:
    """Return a key's columns with ``key_`` before each name that is taken."""
    return tuple(
        Column(f"key_{column.name}" if column.name in taken else column.name, column.type) for column in columns
    )


def shape_of(declared: Any, name: str) -> Shape:
    """Return the shape of a Python type; of ``None`` (nothing was declared) one ``json`` column called ``name``.

    Raises `ConfigError` for a type that has no columns.
    """
    declared = _without_none(declared)
    if declared is None or declared is Any:
        return scalar_shape(name, "json")
    if declared in SCALARS:
        return scalar_shape(name, SCALARS[declared])
    if isinstance(declared, type) and issubclass(declared, tuple) and hasattr(declared, "_fields"):
        hints = typing.get_type_hints(declared)
        fields = getattr(declared, "_fields")  # noqa: B009 - a NamedTuple's own
        return row_shape([Column(field, _column_type(hints.get(field))) for field in fields], declared)
    if typing.get_origin(declared) in (dict, list, tuple) or declared in (dict, list, tuple):
        return scalar_shape(name, "json")
    message = f"no columns for the type {declared!r} of {name}: use str, int, float, bool, bytes, Decimal or a NamedTuple of them"
    raise ConfigError(message)


def _column_type(hint: Any) -> str:
    return SCALARS.get(_without_none(hint), "json")


def _without_none(hint: Any) -> Any:
    """Return ``T`` for ``T | None``: every column is nullable."""
    if typing.get_origin(hint) in (typing.Union, UnionType):
        others = [argument for argument in typing.get_args(hint) if argument is not type(None)]
        return others[0] if len(others) == 1 else None
    return hint
