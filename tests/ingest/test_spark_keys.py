"""Spark and Python assign a key to the same partition."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from rewindow.streams.serde.key_bytes import partition_of

pytestmark = pytest.mark.spark

KEYS = {
    "string": ["a", "", "ü💥", "x" * 100, "0", None],
    "long": [0, 1, -1, 2**63 - 1, -(2**63), 12345678901, None],
    "double": [0.0, -0.0, 1.5, -1.5, float("nan"), float("inf"), 1e-300, 123456.789, None],
    "boolean": [True, False, None],
    "binary": [b"", b"\x00\xff", b"abc", None],
    "decimal(38,18)": [
        Decimal(0),
        Decimal("1.5"),
        Decimal("-0.000000000000000001"),
        Decimal(12345678901234567890),
        None,
    ],
    "decimal(10,0)": [Decimal(0), Decimal(-5), Decimal(100), Decimal(9999999999)],
    "decimal(7,7)": [Decimal("0.0000001"), Decimal("-0.5")],
    "decimal(10,2)": [Decimal("0.01"), Decimal("-0.01"), Decimal("12345678.90"), Decimal("100.00"), Decimal("0.00")],
}


def arrow_of(kind, values):
    from rewindow.engine.worker.arrow_rows import arrow_type

    return pa.array(values, arrow_type(kind))


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_and_python_agree_where_a_key_lies(spark, ansi):
    from pyspark.sql import functions as F

    from rewindow.engine.spark.spark_partitions import partition_column

    rows = max(map(len, KEYS.values()))
    keys = {kind: arrow_of(kind, [*values, *[None] * (rows - len(values))]) for kind, values in KEYS.items()}
    table = pa.table({"n": range(rows), **{f"k{i}": column for i, column in enumerate(keys.values())}})
    found_partitions = [
        partition_column([(F.col(f"k{i}"), kind)], is_scalar=True, partitions=1009).alias(kind)
        for i, kind in enumerate(keys)
    ]
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        found = {row["n"]: row for row in spark.createDataFrame(table).select("n", *found_partitions).collect()}
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    for kind, column in keys.items():
        for n, key in enumerate(column.to_pylist()):
            assert found[n][kind] == (0 if key is None else partition_of(key, 1009)), (kind, key)


@pytest.mark.parametrize("seed", range(2))
def test_spark_and_python_agree_on_keys_of_several_columns(spark, seed):
    from pyspark.sql import functions as F

    from rewindow.engine.spark.spark_partitions import partition_column

    rng = random.Random(seed)
    kinds = ["string", "long", "binary", "boolean", "decimal(10,2)", "double"]
    columns = {kind: arrow_of(kind, [rng.choice(KEYS[kind]) for _ in range(50)]) for kind in kinds}
    table = pa.table({"n": range(50), **{f"c{i}": columns[kind] for i, kind in enumerate(kinds)}})
    keys = [(F.col(f"c{i}"), kind) for i, kind in enumerate(kinds)]
    frame = spark.createDataFrame(table).select(
        "n", partition_column(keys, is_scalar=False, partitions=1009).alias("p")
    )
    found = {row.n: row.p for row in frame.collect()}
    expected = zip(*(columns[kind].to_pylist() for kind in kinds), strict=True)
    assert found == {n: partition_of(key, 1009) for n, key in enumerate(expected)}, f"seed {seed}"
