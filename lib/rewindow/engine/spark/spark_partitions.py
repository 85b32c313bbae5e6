"""Partitions on Spark: the partition of a key as an expression, and repartitioning by a number."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.errors import ConfigError

NULL_PARTITION = 0
"""The partition of records without a key."""


def partition_column(keys: Sequence[tuple[Column, str]], *, is_scalar: bool, partitions: int) -> Column:
    """Return the partition of keys, computed as in `streams.serde.key_bytes`.

    ``keys`` has a pair (column, column type) for each key column. A key of several columns is never null, but its items may
    be null. Records without a key go to partition 0.
    """
    encoded = key_bytes(*keys[0]) if is_scalar else F.concat(*(_item(*key) for key in keys))
    return F.coalesce((F.crc32(encoded) % partitions).cast("int"), F.lit(NULL_PARTITION))


def key_bytes(column: Column, column_type: str) -> Column:
    """Return the canonical bytes of a key column (`streams.serde.key_bytes`); a null key has the bytes null.

    Raises `ConfigError` (78) for a type that cannot be a key.
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
        # A Java method is called, because no SQL function returns the bits of a double.
        one_zero = F.when(column == 0, F.lit(0.0)).otherwise(column)
        bits = F.reflect(F.lit("java.lang.Double"), F.lit("doubleToLongBits"), one_zero).cast("long")
        return F.when(column.isNotNull(), _big_endian(bits, 16))
    if column_type.startswith("decimal("):
        # `format_number` is used, because Spark's cast to text writes small numbers with exponents.
        scale = int(column_type[:-1].split(",")[1])
        text = F.replace(F.format_number(column, scale), F.lit(","))
        return F.encode(F.regexp_replace(text, r"\.?0+$", "") if scale else text, "UTF-8")
    raise ConfigError(
        "key-column-type-unusable",
        "a column of type {type} cannot be a key. Use text, numbers, booleans or bytes",
        type=column_type,
    )


def repartition_by(rows: DataFrame, tasks: int, number: Column) -> DataFrame:
    """Repartition rows by a number from 0 to ``tasks - 1``, each number to its own Spark task."""
    number = number.cast("int")
    # Before Spark 4.1 (Databricks runtime 17.3), the number is hashed. Two numbers may then share a task, which only costs
    # time.
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(tasks, number)
    return rows.repartition(tasks, number)


def _item(column: Column, column_type: str) -> Column:
    encoded = key_bytes(column, column_type)
    length = _big_endian(F.octet_length(encoded).cast("long"), 8)
    return F.coalesce(F.concat(length, encoded), F.unhex(F.lit("ffffffff")))


def _big_endian(column: Column, digits: int) -> Column:
    return F.unhex(F.lpad(F.hex(column), digits, "0"))
