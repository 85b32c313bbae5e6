"""Compare and hash a catalog's tables. The rows are collected in this process."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.engine.spark.spark_calls import mapped
from rewindow.streams.serde.schema import Column
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.content_hash import hash_rows
from rewindow.tables.shared.diff import PARTITION_ROWS, TableDiff, check_keys, compare_pairs


def compare_frames(
    frames: Sequence[DataFrame],
    columns: Sequence[Sequence[Column]],
    keys: Sequence[str],
    *,
    epochs: tuple[int, int],
    samples: int,
) -> TableDiff:
    """Compare two output tables key by key. The keys are split into partitions, which are collected one after the other.

    ``epochs``: rows with ``epochs[0] < _epoch <= epochs[1]`` are compared. ``samples``: describe at most this many keys.
    """
    schemas = [arrow_schema(some) for some in columns]
    check_keys(schemas[0], schemas[1], keys)
    is_compared = (F.col("_epoch") > epochs[0]) & (F.col("_epoch") <= epochs[1])
    compared = [frame.where(is_compared) for frame in frames]
    with mapped():
        parts = 1 + max(frame.count() for frame in compared) // PARTITION_ROWS if keys else 1
        part = F.pmod(F.xxhash64(*(F.col(f"`{name}`") for name in keys)), F.lit(parts)) if keys else F.lit(0)
        pairs = (
            tuple(_fetched(frame.where(part == n), schema) for frame, schema in zip(compared, schemas, strict=True))
            for n in range(parts)
        )
        return compare_pairs(((first, second) for first, second in pairs), keys, samples=samples)


def frame_hash(frame: DataFrame, columns: Sequence[Column]) -> str:
    """Return the content hash of a table. Its rows are collected in this process."""
    with mapped():
        return hash_rows(_fetched(frame, arrow_schema(columns)), exclude=("_run",))


def _fetched(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    return frame.toArrow().select(schema.names).cast(schema)
