"""The types of keys and values in a topology, and their binding to shapes (columns) once the feed's logs are known.

A declared type is a Python type, None (undeclared: stored as JSON text), or one of the type expressions below. The DSL builds
type expressions. Their meaning depends on the columns of a log. Binding is a pure function of the topology and of these
columns. The rows of changelogs have shapes of their own, for nullable values, values with timestamps, buffered updates and
record keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rewindow.errors import ConfigError, DataError
from rewindow.streams.record import Change, row_class
from rewindow.streams.serde.canonical_json import dump_value, load_value
from rewindow.streams.serde.normalizers import as_row, coerce_long, row_normalizer
from rewindow.streams.serde.schema import (
    CHANGELOG_META,
    INTERNAL_META,
    OUTPUT_META,
    PARTITION,
    Column,
    Shape,
    check_distinct,
    field_type,
    list_shape,
    named_shape,
    number_type,
    renamed,
    row_shape,
    scalar_shape,
    shape_of,
    sum_type,
    windowed_shape,
)
from rewindow.streams.state.join_store import RecordKey
from rewindow.streams.state.spill import Codec
from rewindow.streams.state.stores import (
    BUFFER,
    JOIN,
    RECORDS,
    SESSION,
    VERSIONED,
    WINDOW,
    Normalizers,
    Stamped,
    StoreBuilder,
    canonical_normalizer,
    stamped_normalizer,
)
from rewindow.streams.state.suppress_buffer import Buffered
from rewindow.streams.state.versioned_store import Version, VersionKey

if TYPE_CHECKING:
    from rewindow.streams.nodes import SinkNode
    from rewindow.streams.topology import SubTopology

LogShapes = Mapping[str, tuple[Shape, Shape]]
"""The shapes of each topic's key and value."""


class LogType(NamedTuple):
    """The type of a log's key or value. ``part`` is ``key`` or ``value``."""

    topic: str
    part: str


class WindowedType(NamedTuple):
    """The type of a windowed key. ``key`` is the type of the key in it."""

    key: Any
    is_session: bool = False


class FieldType(NamedTuple):
    """The type of one field of the row type ``row`` or, if ``field`` is None, of the whole value."""

    row: Any
    field: str | None


class SumType(NamedTuple):
    """The type of the sum of a field of the row type ``row`` or, if ``field`` is None, of whole values.

    ``aggregate`` is the name of the aggregate, for messages.
    """

    row: Any
    field: str | None
    aggregate: str


class OptionalType(NamedTuple):
    """A `FieldType` that distinguishes a null value from a row of nulls."""

    row: Any
    field: str | None


class ListType(NamedTuple):
    """The type of a list, which is JSON text: values of ``field`` in the row type ``row`` or, if None, whole values."""

    row: Any
    field: str | None


class EqualType(NamedTuple):
    """The common type of merged streams; JSON text if their types differ."""

    types: tuple[Any, ...]


class RowType(NamedTuple):
    """A row, given the names and types of its fields."""

    fields: tuple[tuple[str, Any], ...]


class NamedType(NamedTuple):
    """The type of a name in an expression.

    The name is a field of the value or, if there is none, ``key``, ``value`` or ``timestamp``.
    """

    key: Any
    value: Any
    name: str


class NumberType(NamedTuple):
    """The type of a number computed from numbers of the types ``parts``: float if one of these is float, else int.

    ``text`` is the expression, for messages.
    """

    parts: tuple[Any, ...]
    text: str


class ChangeType(NamedTuple):
    """The type of updates (`Change`) of a table whose values have the type ``value``."""

    value: Any


def log_shape(columns: tuple[Column, ...], *, is_scalar: bool) -> Shape:
    """Return the shape of a log's key or value, given its columns. ``is_scalar``: whether it is a single value, not a row."""
    return scalar_shape(*columns[0]) if is_scalar else row_shape(columns)


def unknown_topic(topic: str, logs: LogShapes) -> ConfigError:
    """Return the error for a topic that the feed lacks."""
    return ConfigError(
        "topic-not-in-feed",
        "the topology reads {topic!r}, which its feed does not have (it has {topics})",
        topic=topic,
        topics=", ".join(sorted(logs)),
    )


def bind(declared: Any, name: str, logs: LogShapes) -> Shape:
    """Return the shape of a declared type. ``name`` is the name of the column if the type does not name its columns.

    Raises `ConfigError` for a topic that the feed lacks, or a field that a row type lacks.
    """
    if isinstance(declared, LogType):
        if declared.topic not in logs:
            raise unknown_topic(declared.topic, logs)
        return logs[declared.topic][0 if declared.part == "key" else 1]
    if isinstance(declared, WindowedType):
        return windowed_shape(bind(declared.key, name, logs), session=declared.is_session)
    if isinstance(declared, FieldType):
        return scalar_shape(
            name, field_type(bind(declared.row, name, logs), declared.field, _key_of(declared.row, logs))
        )
    if isinstance(declared, SumType):
        row, is_landed = bind(declared.row, name, logs), isinstance(declared.row, LogType)
        of_key, aggregate = _key_of(declared.row, logs), declared.aggregate
        return scalar_shape(name, sum_type(row, declared.field, of_key, aggregate=aggregate, is_landed=is_landed))
    if isinstance(declared, OptionalType | ListType):
        part = bind(declared.row if declared.field is None else FieldType(*declared), name, logs)
        if isinstance(declared, ListType):
            return list_shape(name, part, declared.row if declared.field is None else None)
        return part if part.row_type is None else nullable_shape(part, "_is_null")
    if isinstance(declared, EqualType):
        return _common_shape([bind(kind, name, logs) for kind in declared.types], name)
    if isinstance(declared, RowType):
        return _compound_shape({field: bind(part, field, logs) for field, part in declared.fields})
    if isinstance(declared, NamedType):
        key, value = bind(declared.key, name, logs), bind(declared.value, name, logs)
        return named_shape(declared.name, name, key, value)
    if isinstance(declared, NumberType):
        return scalar_shape(name, number_type([bind(part, name, logs) for part in declared.parts], declared.text))
    if isinstance(declared, ChangeType):
        value = bind(declared.value, name, logs)
        return _change_shape(nullable_shape(value, "_is_null"))
    return shape_of(declared, name)


def bind_sink(sink: SinkNode, logs: LogShapes) -> tuple[Shape, Shape]:
    """Return the key and value shapes of a sink. In internal topics, a null value differs from a row of nulls.

    Raises `ConfigError` as `bind` does, and for a table that would have two columns of the same name.
    """
    key, value = bind(sink.key, "key", logs), bind(sink.value, "value", logs)
    if sink.is_internal:
        key, value = nullable_shape(key, "_key_is_null"), nullable_shape(value, "_value_is_null")
    key = _with_distinct_names(key, value)
    meta = (Column(PARTITION, "long"), *INTERNAL_META) if sink.is_internal else OUTPUT_META
    check_distinct((*key.columns, *value.columns, *meta), f"the table of {sink.topic!r}")
    return key, value


def bind_store(store: StoreBuilder, logs: LogShapes) -> tuple[Shape, Shape]:
    """Return the key and value shapes of a store's changelog. Raises `ConfigError` as `bind_sink` does."""
    key, value = bind(store.key, "key", logs), bind(store.value, "value", logs)
    if store.kind in (WINDOW, SESSION):
        key = windowed_shape(key, session=store.kind == SESSION)
    if store.kind == VERSIONED:
        key, value = _version_key_shape(key), _version_shape(nullable_shape(value, "_is_null"))
    if store.kind in (RECORDS, JOIN):
        key = record_key_shape(key)
    if store.kind == BUFFER:
        value = buffered_shape(value)
    elif store.is_stamped:
        value = stamped_shape(value)
    key = _with_distinct_names(key, value)
    meta = (Column(PARTITION, "long"), *CHANGELOG_META)
    check_distinct((*key.columns, *value.columns, *meta), f"the changelog of the store {store.name!r}")
    return key, value


def bound(part: SubTopology, logs: LogShapes) -> SubTopology:
    """Return a copy of a sub-topology whose stores have normalizers and codecs for the feed's logs."""
    return replace(part, stores=tuple(_bound_store(store, logs) for store in part.stores))


def _key_of(row: Any, logs: LogShapes) -> Sequence[str]:
    """Return the names of a log's key columns if ``row`` is the type of the log's rows; otherwise no names."""
    return logs[row.topic][0].names if isinstance(row, LogType) and row.topic in logs else ()


def _bound_store(store: StoreBuilder, logs: LogShapes) -> StoreBuilder:
    key, value = bind(store.key, "key", logs), bind(store.value, "value", logs)
    stamped = stamped_shape(value) if store.is_stamped else value
    is_text = key.row_type is None and key.has_json
    return replace(
        store,
        codec=entry_codec(*bind_store(store, logs)),
        bound_normalizers=Normalizers(
            canonical_normalizer(key.normalize) if is_text else key.normalize,
            stamped.normalize,
            not key.has_json and not key.has_doubles,
            not value.has_json,
        ),
    )


def _compound_shape(parts: Mapping[str, Shape]) -> Shape:
    """Return the shape of a row, given the shapes of its fields. Columns of a field with several columns begin with its name."""
    row = row_class(tuple(parts))
    columns: list[Column] = []
    bounds: list[slice] = []
    for field, part in parts.items():
        start, is_one = len(columns), len(part.columns) == 1
        columns += [Column(field if is_one else f"{field}_{column.name}", column.type) for column in part.columns]
        bounds.append(slice(start, len(columns)))
    if all(part.is_bare for part in parts.values()):
        return row_shape(columns, row)
    nulls = (None,) * len(columns)
    shapes = tuple(parts.values())

    def encode(value: Any) -> tuple[Any, ...]:
        if value is None:
            return nulls
        items = as_row(value, row)
        return tuple(
            column_value for shape, item in zip(shapes, items, strict=True) for column_value in shape.encode(item)
        )

    def decode(values: tuple[Any, ...]) -> Any:
        return row(*(shape.decode(values[bound]) for shape, bound in zip(shapes, bounds, strict=True)))

    return Shape(
        tuple(columns),
        encode,
        decode,
        row_normalizer(row, [shape.normalize for shape in shapes]),
        row_type=row,
    )


def _with_distinct_names(key: Shape, value: Shape) -> Shape:
    """Return the key's shape, with ``key_`` before each column name that the value's shape has, too."""
    return replace(key, columns=renamed(key.columns, value.names))


def _common_shape(shapes: Sequence[Shape], name: str) -> Shape:
    first = shapes[0]
    types = {tuple(column.type for column in shape.columns) for shape in shapes}
    if len(types) == 1 and all(shape.is_bare for shape in shapes):
        return (
            first if {shape.names for shape in shapes} == {first.names} else scalar_shape(name, first.columns[0].type)
        )
    same = all((shape.columns, shape.row_type) == (first.columns, first.row_type) for shape in shapes)
    return first if same and first.row_type is not None else scalar_shape(name, "json")


def _change_shape(value: Shape) -> Shape:
    """Return the shape of a `Change`: columns ``new_...`` and ``old_...``. ``value``: a nullable shape of its values."""
    width = len(value.columns)
    columns = [Column(f"{side}_{name}", type_) for side in ("new", "old") for name, type_ in value.columns]

    def encode(change: Any) -> tuple[Any, ...]:
        if change is None:
            change = Change(None, None)
        if change.__class__ is not Change:
            raise DataError(
                "value-not-table-update",
                "{given} ({type}) was given where an update of a table is declared",
                given=repr(change),
                type=type(change).__name__,
            )
        return (*value.encode(change.new), *value.encode(change.old))

    return Shape(
        tuple(columns),
        encode,
        lambda values: Change(value.decode(values[:width]), value.decode(values[width:])),
        lambda change: Change(value.normalize(change.new), value.normalize(change.old)),
    )


def _version_key_shape(key: Shape) -> Shape:
    """Return the shape of a `VersionKey`: the key's columns, then ``_valid_from``."""
    return Shape(
        (*key.columns, Column("_valid_from", "long")),
        lambda version_key: (*key.encode(version_key.key), version_key.valid_from),
        lambda values: VersionKey(key.decode(values[:-1]), values[-1]),
        lambda version_key: VersionKey(key.normalize(version_key.key), coerce_long(version_key.valid_from)),
    )


def _version_shape(value: Shape) -> Shape:
    """Return the shape of a `Version`. ``value``: a nullable shape, because a tombstone differs from a row of nulls."""
    return Shape(
        value.columns,
        lambda version: value.encode(version.value),
        lambda values: Version(value.decode(values)),
        lambda version: Version(value.normalize(version.value)),
    )


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
