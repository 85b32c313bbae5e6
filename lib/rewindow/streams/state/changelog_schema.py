"""The shapes of what a store's changelog has besides plain values: nulls apart from rows of nulls, stamps, held updates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rewindow.streams.serde.canonical_json import dump_value, load_value
from rewindow.streams.serde.coercion import fit_long
from rewindow.streams.serde.schema import Column, Shape
from rewindow.streams.state.buffer_rows import Buffered
from rewindow.streams.state.record_rows import RecordKey
from rewindow.streams.state.spill import Codec
from rewindow.streams.state.stores import Stamped, stamped_keep


def nullable_shape(shape: Shape, marker: str) -> Shape:
    """Return the shape with a boolean column that tells a null value from a row of nulls."""
    nulls = (None,) * len(shape.columns)
    return Shape(
        (*shape.columns, Column(marker, "boolean")),
        lambda value: (*nulls, True) if value is None else (*shape.encode(value), False),
        lambda cells: None if cells[-1] else shape.decode(cells[:-1]),
        lambda value: None if value is None else shape.keep(value),
    )


def stamped_shape(shape: Shape) -> Shape:
    """Return the shape of a `Stamped` value."""
    return Shape(
        (*shape.columns, Column("_timestamp", "long")),
        lambda stamped: (*shape.encode(stamped.value), stamped.timestamp),
        lambda cells: Stamped(shape.decode(cells[:-1]), cells[-1]),
        stamped_keep(shape.keep),
    )


def buffered_shape(value: Shape) -> Shape:
    """Return the shape of a `Buffered` value: the newest and the prior one, and what is known of them."""
    inner = nullable_shape(value, "_is_null")
    priors = tuple(Column(f"_prior_{column.name}", column.type) for column in value.columns)
    prior = nullable_shape(replace(value, columns=priors), "_no_prior")
    width = len(inner.columns)
    return Shape(
        (
            *inner.columns,
            *(Column(f"_{name}", "long") for name in ("timestamp", "buffer_time", "size")),
            *prior.columns,
        ),
        lambda e: (*inner.encode(e.value), e.timestamp, e.buffer_time, e.size, *prior.encode(e.prior)),
        lambda cells: Buffered(
            inner.decode(cells[:width]),
            cells[width],
            cells[width + 1],
            prior.decode(cells[width + 3 :]),
            cells[width + 2],
        ),
        lambda e: Buffered(
            inner.keep(e.value), fit_long(e.timestamp), fit_long(e.buffer_time), prior.keep(e.prior), fit_long(e.size)
        ),
    )


def entry_codec(key: Shape, entry: Shape) -> Codec:
    """Return what writes a store's entry as text: the same cells as its changelog has."""
    width = len(key.columns)

    def load(text: str) -> tuple[Any, Any]:
        cells = load_value(text)
        return key.decode(cells[:width]), entry.decode(cells[width:])

    return Codec(
        lambda one, held: dump_value((*key.encode_checked(one), *entry.encode_checked(held))),
        load,
        lambda one: dump_value(key.encode_checked(one)),
        lambda text: key.decode(load_value(text)),
    )


def record_key_shape(key: Shape) -> Shape:
    """Return the shape of a `RecordKey`: the key's columns, then ``_record_time`` and ``_record_number``."""
    return Shape(
        (*key.columns, Column("_record_time", "long"), Column("_record_number", "long")),
        lambda where: (*key.encode(where.key), where.timestamp, where.number),
        lambda cells: RecordKey(key.decode(cells[:-2]), cells[-2], cells[-1]),
        lambda where: RecordKey(key.keep(where.key), fit_long(where.timestamp), fit_long(where.number)),
    )
