"""The shapes of changelog rows: nullable values, values with timestamps, buffered updates and record keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rewindow.streams.serde.canonical_json import dump_value, load_value
from rewindow.streams.serde.coercion import coerce_long
from rewindow.streams.serde.schema import Column, Shape
from rewindow.streams.state.join_store import RecordKey
from rewindow.streams.state.spill import Codec
from rewindow.streams.state.stores import Stamped, stamped_normalizer
from rewindow.streams.state.suppress_buffer import Buffered


def nullable_shape(shape: Shape, marker: str) -> Shape:
    """Return a shape with one more column. This boolean, called ``marker``, distinguishes a null value from a row of nulls."""
    nulls = (None,) * len(shape.columns)
    return Shape(
        (*shape.columns, Column(marker, "boolean")),
        lambda value: (*nulls, True) if value is None else (*shape.encode(value), False),
        lambda values: None if values[-1] else shape.decode(values[:-1]),
        lambda value: None if value is None else shape.normalize(value),
    )


def stamped_shape(shape: Shape) -> Shape:
    """Return the shape of a `Stamped` value, given the shape of the value in it: its columns, then ``_timestamp``."""
    return Shape(
        (*shape.columns, Column("_timestamp", "long")),
        lambda stamped: (*shape.encode(stamped.value), stamped.timestamp),
        lambda values: Stamped(shape.decode(values[:-1]), values[-1]),
        stamped_normalizer(shape.normalize),
    )


def buffered_shape(value: Shape) -> Shape:
    """Return the shape of a `Buffered` entry, given the shape of its values: newest value, times, size, prior value."""
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
        lambda values: Buffered(
            inner.decode(values[:width]),
            values[width],
            values[width + 1],
            prior.decode(values[width + 3 :]),
            values[width + 2],
        ),
        lambda e: Buffered(
            inner.normalize(e.value),
            coerce_long(e.timestamp),
            coerce_long(e.buffer_time),
            prior.normalize(e.prior),
            coerce_long(e.size),
        ),
    )


def entry_codec(key: Shape, entry: Shape) -> Codec:
    """Return the codec of a store's spilled rows: JSON text of the same columns as in the store's changelog."""
    width = len(key.columns)

    def load(text: str) -> tuple[Any, Any]:
        values = load_value(text)
        return key.decode(values[:width]), entry.decode(values[width:])

    return Codec(
        lambda row_key, held: dump_value((*key.encode_checked(row_key), *entry.encode_checked(held))),
        load,
        lambda row_key: dump_value(key.encode_checked(row_key)),
        lambda text: key.decode(load_value(text)),
    )


def record_key_shape(key: Shape) -> Shape:
    """Return the shape of a `RecordKey`: the key's columns, then ``_record_time`` and ``_record_number``."""
    return Shape(
        (*key.columns, Column("_record_time", "long"), Column("_record_number", "long")),
        lambda where: (*key.encode(where.key), where.timestamp, where.number),
        lambda values: RecordKey(key.decode(values[:-2]), values[-2], values[-1]),
        lambda where: RecordKey(key.normalize(where.key), coerce_long(where.timestamp), coerce_long(where.number)),
    )
