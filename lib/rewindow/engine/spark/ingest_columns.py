"""Map a source's columns to a log's: names, types and conversion expressions.

Integers become longs, floats doubles, dates ISO text, timestamps epoch milliseconds, nested values JSON text. Times
without a zone are in the feed's zone. -0.0 becomes 0.0, so that equal numbers have equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql import types as T  # noqa: N812

from rewindow.contracts.ingest import LogSpec
from rewindow.contracts.instants import MILLISECONDS, RANGES
from rewindow.contracts.reserved_names import other_name
from rewindow.engine.worker.landing.log_columns import landed_type, not_a_time, source_types, unknown_column
from rewindow.errors import SourceError
from rewindow.streams.serde.schema import Column

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_SHOWN_ALIKE = (*_INTEGERS, T.StringType, T.BooleanType, T.DecimalType, T.DoubleType, T.FloatType)
"""The types of which JSON has the texts that Java shows."""
_ZONED = r"(Z|z|[+-]\d{2}:?\d{2}|UTC|GMT)\s*$"
_DATE = r"^\s*[+-]?\d{4,6}-\d"


class SourceColumn(NamedTuple):
    """A source column: the expression that reads it, and its Spark type."""

    read: Expression
    type: T.DataType


def source_columns(spec: LogSpec, schema: T.StructType, hidden: Sequence[str] = ()) -> dict[str, SourceColumn]:
    """Return a source's columns by their names after ``columns:``. Raises as `log_columns.source_types`."""
    return {
        name: SourceColumn(
            F.col(".".join(f"`{name_in_path.replace('`', '``')}`" for name_in_path in path)), _type_at(schema, path)
        )
        for name, (path, _) in source_types(spec, schema.json(), hidden).items()
    }


def landed(spec: LogSpec, column: Column, sources: Mapping[str, SourceColumn]) -> Expression:
    """Return the expression of a landed column. Raises `SourceError` (66) if the source's column has another type now."""
    source = sources.get(column.name)
    found_type = None if source is None else landed_type(source.type.jsonValue())
    is_canonical = spec.is_output and (found_type, column.type) == ("string", "json")
    if source is None or (found_type != column.type and not is_canonical):
        if source is None:
            raise SourceError(
                "source-column-gone",
                "{source}: column {column}, landed as {type}, is gone. Restore it, rename it under `columns:`, or land a new "
                "generation: `rewindow land FEED --new-generation`",
                source=spec.source.name,
                column=column.name,
                type=column.type,
            )
        raise SourceError(
            "source-column-type-changed",
            "{source}: column {column}, landed as {type}, is now {now}. Restore it, or {fix}, and land a new generation: "
            "`rewindow land FEED --new-generation`",
            source=spec.source.name,
            column=column.name,
            type=column.type,
            now=source.type.simpleString(),
            fix=other_name(column.name),
        )
    return _converted(source, spec.zone).alias(column.name)


def time_ms(spec: LogSpec, name: str, sources: Mapping[str, SourceColumn]) -> Expression:
    """Return a column as epoch milliseconds. Values that are not times become null.

    Raises `ConfigError` (78) if its type cannot be a time.
    """
    source = sources.get(name)
    if source is None:
        raise unknown_column(spec, name, "timestamp", names=list(sources))
    kind = source.type
    if isinstance(kind, _INTEGERS):
        return _in_ms(source.read.cast("long"), spec.units.get(name, MILLISECONDS))
    if isinstance(kind, T.StringType):
        # Spark takes `10:00` as that time on the day of its call.
        instant = F.when(source.read.rlike(_DATE), source.read.try_cast("timestamp"))
        local = F.to_utc_timestamp(instant, spec.zone)
        return F.unix_millis(F.when(source.read.rlike(_ZONED), instant).otherwise(local))
    if isinstance(kind, T.DateType):
        return F.unix_millis(F.to_utc_timestamp(source.read.cast("timestamp"), spec.zone))
    if isinstance(kind, (T.TimestampType, T.TimestampNTZType)):
        return _converted(source, spec.zone)
    raise not_a_time(spec, name, kind.simpleString())


def arrival_unit(spec: LogSpec, sources: Mapping[str, SourceColumn]) -> Expression | None:
    """Return the unit of each arrival that cannot be milliseconds, null for others; None if the column is not checked."""
    name = spec.arrived_at
    if name is None or spec.is_output or name in spec.units or not isinstance(sources[name].type, _INTEGERS):
        return None
    return unit_of_number(sources[name].read.cast("long"))


def unit_of_number(time: Expression) -> Expression:
    """Return the unit of a number that is a plausible time, but not in milliseconds; otherwise null."""
    units = [F.when((time >= low) & (time < end), F.lit(unit)) for unit, (low, end) in RANGES.items()]
    return F.coalesce(*units)


def offset_columns(spec: LogSpec, sources: Mapping[str, SourceColumn]) -> tuple[Expression, Expression]:
    """Return the partition and offset columns of a table that has its own, as longs."""
    partition, offset = spec.source_offsets or ("", "")
    return sources[partition].read.cast("long"), sources[offset].read.cast("long")


def _type_at(schema: T.StructType, path: Sequence[str]) -> T.DataType:
    kind: T.DataType = schema
    for name in path:
        kind = cast("T.StructType", kind)[name].dataType
    return kind


def _in_ms(time: Expression, unit: str) -> Expression:
    if unit == MILLISECONDS:
        return time
    if unit == "s":
        return F.try_multiply(time, F.lit(1_000))
    divided = F.call_function("div", time, F.lit({"us": 1_000, "ns": 1_000_000}[unit]))
    # A negative time stays invalid.
    return F.when(time < 0, time).otherwise(divided)


def _converted(source: SourceColumn, zone: str) -> Expression:
    read, kind = source
    if isinstance(kind, T.TimestampType):
        return F.unix_millis(read)
    if isinstance(kind, T.TimestampNTZType):
        return F.unix_millis(F.to_utc_timestamp(read.cast("timestamp"), zone))
    column_type = landed_type(kind.jsonValue())
    if column_type == "json":
        return F.to_json(_with_text_keys(read, kind))
    if column_type == "double":
        number = read.cast("double")
        return F.when(number == 0.0, F.lit(0.0)).otherwise(number)
    return read.cast(column_type)


def _with_text_keys(value: Expression, kind: T.DataType) -> Expression:
    """Return a nested value with texts as the keys of its maps, as `to_json` writes values: it writes keys as Java shows them."""
    if not _has_other_keys(kind):
        return value
    match kind:
        case T.ArrayType():
            return F.transform(value, lambda item: _with_text_keys(item, kind.elementType))
        case T.StructType():
            fields = [_with_text_keys(value.getField(field.name), field.dataType).alias(field.name) for field in kind]
            return F.when(value.isNotNull(), F.struct(*fields))
        case T.MapType():

            def with_text_key(entry: Expression) -> Expression:
                return F.struct(_text_key(entry["key"], kind.keyType), _with_text_keys(entry["value"], kind.valueType))

            return F.map_from_entries(F.transform(F.map_entries(value), with_text_key))
    return value


def _has_other_keys(kind: T.DataType) -> bool:
    """Return whether a type is, or contains, a map whose keys Java shows in another form."""
    return any(
        isinstance(inner, T.MapType) and not isinstance(inner.keyType, _SHOWN_ALIKE) for inner in _types_within(kind)
    )


def _text_key(key: Expression, kind: T.DataType) -> Expression:
    if isinstance(kind, _SHOWN_ALIKE):
        return key.cast("string")
    return F.get_json_object(F.to_json(F.struct(_with_text_keys(key, kind).alias("key"))), "$.key")


def _types_within(kind: T.DataType) -> Iterator[T.DataType]:
    """Yield a type, and those of the items, fields and values in it, at any depth; not those of the keys of maps."""
    yield kind
    match kind:
        case T.ArrayType():
            yield from _types_within(kind.elementType)
        case T.MapType():
            yield from _types_within(kind.valueType)
        case T.StructType():
            for field in kind:
                yield from _types_within(field.dataType)
