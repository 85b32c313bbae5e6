"""Delta tables as Spark opens them: by path, or by name where a catalog governs them."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

_NAMED = "table:"


def named(table: str) -> str:
    """Return the place of a catalog's table; its name is quoted as SQL wants it."""
    return _NAMED + table


def shown(place: str) -> str:
    """Return a place as people are told it."""
    return place.removeprefix(_NAMED)


def open_delta(spark: SparkSession, place: str, version: int | None = None) -> DataFrame:
    """Return the rows of a table, as it is or at a version. ``place`` is a path or what `named` returned."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.table(place.removeprefix(_NAMED)) if place.startswith(_NAMED) else reader.load(place)
