"""The partition of a key as a Spark expression: the same bytes as `streams.serde.key_bytes`, without leaving the JVM."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.errors import ConfigError

NULL_PARTITION = 0
"""Where records without a key lie."""


def partition_column(keys: Sequence[tuple[Column, str]], *, is_scalar: bool, partitions: int) -> Column:
    """Return the partition of keys given as (column, column type). Records without a key lie in partition 0.

    A key of several columns is a tuple: nulls among its items count, and it is never null itself.
    """
    encoded = key_bytes(*keys[0]) if is_scalar else F.concat(*(_item(*key) for key in keys))
    return F.coalesce((F.crc32(encoded) % partitions).cast("int"), F.lit(NULL_PARTITION))


def key_bytes(column: Column, column_type: str) -> Column:
    """Return the canonical bytes of a key's column (`streams.serde.key_bytes`); null for null.

    Raises `ConfigError` for a type that has none.
    """
    if column_type == "string":
        return F.encode(column, "UTF-8")
    if column_type == "binary":
        return column
    if column_type == "boolean":
        return F.when(column, F.unhex(F.lit("01"))).when(~column, F.unhex(F.lit("00")))
    if column_type == "long":
        return _big_endian(column, 16)
    if column_type == "double":
        # No SQL function gives the bits of a double.
        one_zero = F.when(column == 0, F.lit(0.0)).otherwise(column)
        bits = F.reflect(F.lit("java.lang.Double"), F.lit("doubleToLongBits"), one_zero).cast("long")
        return F.when(column.isNotNull(), _big_endian(bits, 16))
    if column_type.startswith("decimal("):
        # Spark's cast to text writes small numbers with an exponent.
        scale = int(column_type[:-1].split(",")[1])
        text = F.replace(F.format_number(column, scale), F.lit(","))
        return F.encode(F.regexp_replace(text, r"\.?0+$", "") if scale else text, "UTF-8")
    message = f"a column of type {column_type} cannot be a key: use text, numbers, booleans or bytes"
    raise ConfigError(message)


def _item(column: Column, column_type: str) -> Column:
    encoded = key_bytes(column, column_type)
    length = _big_endian(F.octet_length(encoded).cast("long"), 8)
    return F.coalesce(F.concat(length, encoded), F.unhex(F.lit("ffffffff")))


def _big_endian(column: Column, digits: int) -> Column:
    return F.unhex(F.lpad(F.hex(column), digits, "0"))
