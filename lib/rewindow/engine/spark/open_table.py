"""Open Delta tables on Spark: by path, or by name if a catalog governs them."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

_NAMED = "table:"


def named(table: str) -> str:
    """Return the location of a catalog's table, given its name quoted for SQL."""
    return _NAMED + table


def shown(location: str) -> str:
    """Return a location for messages."""
    return location.removeprefix(_NAMED)


def open_delta(spark: SparkSession, location: str, version: int | None = None) -> DataFrame:
    """Return the rows of a table, at a version if given. ``location`` is a path or a result of `named`."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.table(location.removeprefix(_NAMED)) if location.startswith(_NAMED) else reader.load(location)
