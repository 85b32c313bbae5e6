"""Session settings for the duration of one job. A platform may forbid some of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_ZONE = "spark.sql.session.timeZone"
_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ADAPTIVE = "spark.sql.adaptive.enabled"
_UNION = "spark.sql.unionOutputPartitioning"
"""If on, a union of single-partition frames has one partition, and so one Spark task."""
ROWS = 2_048
"""Most rows per batch that Spark hands to a worker: records, or pieces of packs."""
NO_LIMIT = 2**31 - 1
"""Spark's value for no limit of bytes. It then does not measure them."""


@contextmanager
def in_utc(spark: SparkSession) -> Iterator[None]:
    """Read times without a zone as UTC. Expressions apply the time zone of the feed."""
    with _set(spark, _ZONE, "UTC"):
        yield


@contextmanager
def planned_once(spark: SparkSession) -> Iterator[None]:
    """Plan each statement once: adaptive execution makes a Spark job of every stage, also of Delta's own queries."""
    with ExitStack() as settings:
        with suppress(PySparkException):  # Databricks serverless forbids it
            settings.enter_context(_set(spark, _ADAPTIVE, "false"))
        yield


@contextmanager
def for_packs(spark: SparkSession, *, has_files: bool = False) -> Iterator[None]:
    """Limit the batches for workers by rows, and by bytes only if they contain whole files (``has_files``).

    A limit of bytes makes Spark measure each row, which costs more than the row itself. For large records, lower
    ``spark.sql.execution.arrow.maxRecordsPerBatch`` in the target.
    """
    most = 64 << 20 if has_files else NO_LIMIT
    with in_utc(spark), ExitStack() as settings:
        wishes = {_BATCH_ROWS: _at_most(spark, _BATCH_ROWS, ROWS), _BATCH_BYTES: most, _UNION: "false"}
        for name, value in wishes.items():
            with suppress(PySparkException):  # Databricks serverless forbids reading or setting some of them
                settings.enter_context(_set(spark, name, str(value)))
        yield


def _at_most(spark: SparkSession, name: str, most: int) -> int:
    with suppress(PySparkException):
        return min(int(spark.conf.get(name, None) or most), most)
    return most


@contextmanager
def _set(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)
