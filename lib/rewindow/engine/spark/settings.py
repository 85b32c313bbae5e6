"""Settings of a session for the time of one job. Some a platform may keep to itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_ZONE = "spark.sql.session.timeZone"
_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_UNION = "spark.sql.unionOutputPartitioning"
"""Where it is on, frames of one partition each become one partition, and one Spark task."""
ROWS = 2_048
"""How many rows Spark hands to a worker at once, at most: records, and pieces of packs."""
NO_LIMIT = 2**31 - 1
"""What Spark understands as no limit of bytes: then it does not look at them."""


@contextmanager
def in_utc(spark: SparkSession) -> Iterator[None]:
    """Read times without a zone as UTC, whatever the session's zone: the feed's own is applied by expressions."""
    with _set(spark, _ZONE, "UTC"):
        yield


@contextmanager
def for_packs(spark: SparkSession, *, has_files: bool = False) -> Iterator[None]:
    """Bound what the workers are handed by rows, and by bytes only where whole files travel (``has_files``).

    Spark looks at the bytes with each row, which costs it more than the row. A target whose records are large says fewer
    rows: ``spark.sql.execution.arrow.maxRecordsPerBatch``.
    """
    most = 64 << 20 if has_files else NO_LIMIT
    with in_utc(spark), ExitStack() as settings:
        wishes = {_BATCH_ROWS: _at_most(spark, _BATCH_ROWS, ROWS), _BATCH_BYTES: most, _UNION: "false"}
        for name, value in wishes.items():
            with suppress(PySparkException):  # Databricks' serverless lets nobody ask or set some of them
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
