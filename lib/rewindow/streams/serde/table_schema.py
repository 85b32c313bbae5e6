"""The shapes of table updates and of versioned values."""

from __future__ import annotations

from typing import Any

from rewindow.errors import DataError
from rewindow.streams.record import Change
from rewindow.streams.serde.coercion import coerce_long
from rewindow.streams.serde.schema import Column, Shape
from rewindow.streams.state.versioned_store import Version, VersionKey


def change_shape(value: Shape) -> Shape:
    """Return the shape of a `Change`: ``new_...`` and ``old_...``. ``value`` distinguishes null from a row of nulls."""
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
        lambda values: Change(value.decode(values[:width]), value.decode(values[width:])),
        lambda change: Change(value.normalize(change.new), value.normalize(change.old)),
    )


def version_key_shape(key: Shape) -> Shape:
    """Return the shape of a `VersionKey`: the key's columns, then ``_valid_from``."""
    return Shape(
        (*key.columns, Column("_valid_from", "long")),
        lambda one: (*key.encode(one.key), one.valid_from),
        lambda values: VersionKey(key.decode(values[:-1]), values[-1]),
        lambda one: VersionKey(key.normalize(one.key), coerce_long(one.valid_from)),
    )


def version_shape(value: Shape) -> Shape:
    """Return the shape of a `Version`. ``value`` distinguishes a tombstone from a row of nulls."""
    return Shape(
        value.columns,
        lambda version: value.encode(version.value),
        lambda values: Version(value.decode(values)),
        lambda version: Version(value.normalize(version.value)),
    )
