"""Map a source's columns to a log's: names, types and conversion expressions.

Integers become longs, floats doubles, dates ISO text, timestamps epoch milliseconds, nested values JSON text. Times
without a zone are in the feed's zone. -0.0 becomes 0.0, so that equal numbers have equal bytes.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql import types as T  # noqa: N812

from rewindow.contracts.ingest import ARRIVAL, LogColumns, LogSpec
from rewindow.contracts.time_units import MS, RANGES
from rewindow.errors import ConfigError, SourceError
from rewindow.streams.serde.schema import Column

RESERVED = frozenset({"generation", "partition", "offset", "timestamp", "landing", "arrived_at"})
"""The columns that every log has."""

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_ZONED = r"(Z|z|[+-]\d{2}:?\d{2}|UTC|GMT)\s*$"


class SourceColumn(NamedTuple):
    """A source column: the expression that reads it, and its Spark type."""

    read: Expression
    type: T.DataType


def source_columns(spec: LogSpec, schema: T.StructType, hidden: Sequence[str] = ()) -> dict[str, SourceColumn]:
    """Return a source's columns by their names after ``columns:``.

    Raises `ConfigError` (78) for a renamed column that does not exist, or two columns with one name.
    """
    renames = dict(spec.renames or {})
    if unknown := sorted(set(renames) - set(schema.names)):
        raise _unknown(spec, unknown[0], schema.names, "columns")
    found: dict[str, SourceColumn] = {}
    for field in schema.fields:
        name = renames.get(field.name, field.name)
        if name in found:
            message = f"log {spec.topic}: {spec.source.name} has two columns called {name}. Rename one under `columns:`"
            raise ConfigError(message)
        if name not in hidden:
            found[name] = SourceColumn(F.col(f"`{field.name.replace('`', '``')}`"), field.dataType)
    return found


def log_columns(spec: LogSpec, found: Mapping[str, SourceColumn], source_schema: str | None) -> LogColumns:
    """Decide the typed columns of a log. Raises `ConfigError` (78) for columns that cannot be landed."""
    roles = {"key": spec.key, "order": spec.order, "value": spec.value or ()}
    roles["arrived_at"] = (spec.arrived_at,) if spec.arrived_at else ()
    roles |= {role: (name,) for role, name in zip(("partition", "offset"), spec.source_offsets or (), strict=False)}
    roles["timestamp"] = () if spec.timestamp == ARRIVAL or spec.extractor else (spec.timestamp,)
    for role, names in roles.items():
        for name in names:
            if name not in found:
                raise _unknown(spec, name, list(found), role)
    taken = {*spec.key, *roles["arrived_at"], *roles["timestamp"], *(spec.source_offsets or ())}
    for name in spec.source_offsets or ():
        if landed_type(found[name].type) != "long":
            message = f"log {spec.topic}: {name} is {found[name].type.simpleString()}, but must be an integer"
            raise ConfigError(message)
    values = spec.value if spec.value is not None else [name for name in found if name not in taken]
    if spec.value is None and spec.is_output:
        values = [name for name in values if not name.startswith("_")]
    seen: set[str] = set()
    for name in (*spec.key, *values):
        _check_name(spec, name, seen)
        seen.add(name.lower())
    key, value = ([Column(name, landed_type(found[name].type)) for name in names] for names in (spec.key, values))
    for column in key:
        if column.type == "json":
            message = f"log {spec.topic}: the key {column.name} is nested. List columns of simple types under `key:`"
            raise ConfigError(message)
    return LogColumns(tuple(key), tuple(value), spec.scalar_key, spec.scalar_value, source_schema)


def landed_type(kind: T.DataType) -> str:
    """Return the column type of a log for a Spark type."""
    if isinstance(kind, (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.TimestampType, T.TimestampNTZType)):
        return "long"
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return "double"
    if isinstance(kind, (T.StringType, T.DateType, T.CharType, T.VarcharType)):
        return "string"
    if isinstance(kind, T.BooleanType):
        return "boolean"
    if isinstance(kind, T.BinaryType):
        return "binary"
    if isinstance(kind, T.DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    return "json"


def landed(spec: LogSpec, column: Column, found: Mapping[str, SourceColumn]) -> Expression:
    """Return the expression of a landed column. Raises `SourceError` (66) if the source's column has another type now."""
    source = found.get(column.name)
    if source is None or landed_type(source.type) != column.type:
        change = "is gone" if source is None else f"is now {source.type.simpleString()}"
        message = (
            f"{spec.source.name}: column {column.name}, landed as {column.type}, {change}. Restore it, rename it under "
            "`columns:`, or land a new generation: `rewindow land FEED --new-generation`"
        )
        raise SourceError(message)
    return _converted(source, spec.zone).alias(column.name)


def time_ms(spec: LogSpec, name: str, found: Mapping[str, SourceColumn]) -> Expression:
    """Return a column as epoch milliseconds. Values that are not times become null.

    Raises `ConfigError` (78) if its type cannot be a time.
    """
    source = found.get(name)
    if source is None:
        raise _unknown(spec, name, list(found), "timestamp")
    kind = source.type
    if isinstance(kind, _INTEGERS):
        return _in_ms(source.read.cast("long"), spec.units.get(name, MS))
    if isinstance(kind, T.StringType):
        instant = source.read.try_cast("timestamp")
        local = F.to_utc_timestamp(instant, spec.zone)
        return F.unix_millis(F.when(source.read.rlike(_ZONED), instant).otherwise(local))
    if isinstance(kind, T.DateType):
        return F.unix_millis(F.to_utc_timestamp(source.read.cast("timestamp"), spec.zone))
    if isinstance(kind, (T.TimestampType, T.TimestampNTZType)):
        return _converted(source, spec.zone)
    message = (
        f"log {spec.topic}: {name} is {kind.simpleString()}, which is not a time. Use a TIMESTAMP or a BIGINT of epoch "
        "milliseconds, or `timestamp: module:function`"
    )
    raise ConfigError(message)


def arrival_unit(spec: LogSpec, found: Mapping[str, SourceColumn]) -> Expression | None:
    """Return the unit of each arrival that cannot be milliseconds, null for others; None if the column is not checked."""
    name = spec.arrived_at
    if name is None or spec.is_output or name in spec.units or not isinstance(found[name].type, _INTEGERS):
        return None
    return unit_of_number(found[name].read.cast("long"))


def unit_of_number(time: Expression) -> Expression:
    """Return the unit of a number that is a plausible time, but not in milliseconds; otherwise null."""
    units = [F.when((time >= first) & (time < end), F.lit(unit)) for unit, (first, end) in RANGES.items()]
    return F.coalesce(*units)


def _in_ms(time: Expression, unit: str) -> Expression:
    if unit == MS:
        return time
    if unit == "s":
        return F.try_multiply(time, F.lit(1_000))
    divided = F.call_function("div", time, F.lit({"us": 1_000, "ns": 1_000_000}[unit]))
    return F.when(time < 0, time).otherwise(divided)  # a negative time stays invalid


def offset_columns(spec: LogSpec, found: Mapping[str, SourceColumn]) -> tuple[Expression, Expression]:
    """Return the partition and offset columns of a table that has its own, as longs."""
    partition, offset = spec.source_offsets or ("", "")
    return found[partition].read.cast("long"), found[offset].read.cast("long")


def _converted(source: SourceColumn, zone: str) -> Expression:
    read, kind = source
    if isinstance(kind, T.TimestampType):
        return F.unix_millis(read)
    if isinstance(kind, T.TimestampNTZType):
        return F.unix_millis(F.to_utc_timestamp(read.cast("timestamp"), zone))
    column_type = landed_type(kind)
    if column_type == "json":
        return F.to_json(read)
    if column_type == "double":
        number = read.cast("double")
        return F.when(number == 0.0, F.lit(0.0)).otherwise(number)
    return read.cast(column_type)


def _check_name(spec: LogSpec, name: str, seen: set[str]) -> None:
    reason = None
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        reason = "is not a Python identifier, so it cannot be a field of a record"
    elif name.lower() in RESERVED:
        reason = f"is the name of a column that every log has ({', '.join(sorted(RESERVED))})"
    elif name.lower() in seen:
        reason = "occurs twice (Delta ignores case), or is both key and value"
    if reason:
        message = (
            f"log {spec.topic}: the column {name!r} of {spec.source.name} {reason}. Rename it, "
            f"`columns: {{other_name: {_quoted(name)}}}`, or omit it by listing the others under `value:`"
        )
        raise ConfigError(message)


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'


def _unknown(spec: LogSpec, name: str, names: Sequence[str], role: str) -> ConfigError:
    if not names:
        message = (
            f"log {spec.topic}: {spec.source.name} has no columns, because its files are empty, or not {spec.source.format}: add "
            "a header line or rows, or fix `format:`"
        )
        return ConfigError(message)
    shown = ", ".join(names)
    return ConfigError(f"log {spec.topic}, `{role}`: {spec.source.name} has no column {name!r}. It has {shown}")
