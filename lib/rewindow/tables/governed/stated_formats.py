"""The formats that rewindow's own rows in a catalog state, counted by Spark."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.engine.spark.spark_job import mapped, planned_once
from rewindow.tables.governed.own_rows import feed_name
from rewindow.tables.governed.own_table import FOLD, METRIC, OwnTable
from rewindow.tables.shared.paths import JOURNAL, LANDINGS, METRICS, RUNS

_FEEDS = feed_name("")
_PART = (
    f"CASE WHEN kind = '{METRIC}' THEN '{METRICS}' WHEN seq IS NULL THEN '{JOURNAL}' "
    f"WHEN startswith(name, '{_FEEDS}') THEN '{LANDINGS}' ELSE '{RUNS}' END"
)
_STATED = (
    "CASE WHEN get_json_object(body, '$') IS NULL OR NOT startswith(trim(body), '{') THEN '' "
    "ELSE coalesce(get_json_object(body, '$.format'), '1') END"
)
"""Rows of format 1 do not state it. A text that is no JSON object states nothing."""


class Stated(NamedTuple):
    """How many rows of a job or feed state a format, as text. ``part`` is the table that they would be in as files."""

    part: str
    name: str
    kind: str
    stated: str
    rows: int


def stated_formats(table: OwnTable) -> list[Stated]:
    """Return the number of all rows by what they are and the format that they state. No block is read."""
    columns = {
        "part": _PART,
        "name": "name",
        "kind": "CASE WHEN seq IS NULL THEN kind ELSE 'ledger' END",
        "stated": _STATED,
    }
    rows = table.frame().where(F.col("kind") != FOLD)  # it is read again only by the version that wrote it
    grouped = rows.groupBy(*(F.expr(text).alias(column) for column, text in columns.items()))
    with mapped(), planned_once(table.spark_of()):
        found = grouped.agg(F.count("*").alias("rows")).collect()
    return sorted(Stated(*(row[column] for column in Stated._fields)) for row in found)
