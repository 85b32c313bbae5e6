"""The columns of what tables add to values: both sides of an update, and the versions of a key."""

from __future__ import annotations

from typing import Any

from rewindow.errors import DataError
from rewindow.streams.record import Change
from rewindow.streams.serde.coercion import fit_long
from rewindow.streams.serde.schema import Column, Shape
from rewindow.streams.state.versioned_store import Version, VersionKey


def change_shape(value: Shape) -> Shape:
    """Return the shape of a `Change` of values: ``new_...`` and ``old_...``. ``value`` tells null from a row of nulls."""
    width = len(value.columns)
    columns = [Column(f"{side}_{name}", type_) for side in ("new", "old") for name, type_ in value.columns]

    def encode(change: Any) -> tuple[Any, ...]:
        if change is None:
            change = Change(None, None)
        if change.__class__ is not Change:
            message = f"{change!r} ({type(change).__name__}) was given where an update of a table is declared"
            raise DataError(message)
        return (*value.encode(change.new), *value.encode(change.old))

    return Shape(
        tuple(columns),
        encode,
        lambda cells: Change(value.decode(cells[:width]), value.decode(cells[width:])),
        lambda change: Change(value.keep(change.new), value.keep(change.old)),
    )


def version_key_shape(key: Shape) -> Shape:
    """Return the shape of a key and the time from which its version holds: the key's columns, then ``_valid_from``."""
    return Shape(
        (*key.columns, Column("_valid_from", "long")),
        lambda one: (*key.encode(one.key), one.valid_from),
        lambda cells: VersionKey(key.decode(cells[:-1]), cells[-1]),
        lambda one: VersionKey(key.keep(one.key), fit_long(one.valid_from)),
    )


def version_shape(value: Shape) -> Shape:
    """Return the shape of a version. ``value`` tells a tombstone from a row of nulls."""
    return Shape(
        value.columns,
        lambda version: value.encode(version.value),
        lambda cells: Version(value.decode(cells)),
        lambda version: Version(value.keep(version.value)),
    )
