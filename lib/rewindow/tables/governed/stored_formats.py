"""The formats of the rows in rewindow's own table, in a catalog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.control.health.phrases import counted
from rewindow.control.plan.stored_rows import FORMAT
from rewindow.engine.spark.spark_calls import mapped, planned_once
from rewindow.errors import StorageError
from rewindow.tables.governed.own_rows import FEEDS
from rewindow.tables.governed.own_table import FOLD, METRIC, OwnTable
from rewindow.tables.shared.paths import JOURNAL, LANDINGS, METRICS, RUNS
from rewindow.tables.shared.stored_formats import Fit, StoredTable, fit_of

_PART = (
    f"CASE WHEN kind = '{METRIC}' THEN '{METRICS}' WHEN seq IS NULL THEN '{JOURNAL}' "
    f"WHEN startswith(name, '{FEEDS}') THEN '{LANDINGS}' ELSE '{RUNS}' END"
)
_STATED = (
    "CASE WHEN get_json_object(body, '$') IS NULL OR NOT startswith(trim(body), '{') THEN '' "
    "ELSE coalesce(get_json_object(body, '$.format'), '1') END"
)
"""The SQL expression for the format that a row states. It is null for rows of format 1, and '' if a row's body is no JSON
object."""


class Stated(NamedTuple):
    """How many rows of one kind, of one job or feed, state a format.

    ``part``: the table that contains such rows in a warehouse of files. ``stated``: the format as text.
    """

    part: str
    name: str
    kind: str
    stated: str
    rows: int


def stated_formats(table: OwnTable) -> list[Stated]:
    """Return the number of rows by part, name, kind and stated format. No block is read."""
    columns = {
        "part": _PART,
        "name": "name",
        "kind": "CASE WHEN seq IS NULL THEN kind ELSE 'ledger' END",
        "stated": _STATED,
    }
    # The format of stored folds does not matter, because every version ignores the folds of other versions.
    rows = table.frame().where(F.col("kind") != FOLD)
    grouped = rows.groupBy(*(F.expr(text).alias(column) for column, text in columns.items()))
    with mapped(), planned_once(table.spark_of()):
        counts = grouped.agg(F.count("*").alias("rows")).collect()
    return sorted(Stated(*(row[column] for column in Stated._fields)) for row in counts)


def stored_tables(own: OwnTable) -> list[StoredTable]:
    """Return the parts of rewindow's own table. Each has the name of the table with such rows in a warehouse of files."""
    parts = {name: list[tuple[str, int, int]]() for name in (LANDINGS, RUNS, JOURNAL, METRICS)}
    if not own.exists():
        return [StoredTable(name, str(own.name), Fit.ABSENT, {}) for name in parts]
    for stated in stated_formats(own):
        if not stated.stated.isdigit():
            raise StorageError(
                "catalog-row-format-unknown",
                "{table} has {rows} of {owner} (kind {kind}) of format {format}, which no version wrote: "
                "RESTORE an earlier version of the table",
                table=own.name,
                rows=counted(stated.rows, "row"),
                owner=stated.name,
                kind=stated.kind,
                format=stated.stated or "unknown",
            )
        parts[stated.part].append((stated.name, int(stated.stated), stated.rows))
    return [_of_part(name, str(own.name), counts) for name, counts in parts.items()]


def _of_part(part: str, path: str, counts: Sequence[tuple[str, int, int]]) -> StoredTable:
    rows: Counter[int] = Counter()
    for _name, stated, count in counts:
        rows[stated] += count
    refused = {name for name, stated, _count in counts if stated != FORMAT}
    return StoredTable(part, path, fit_of(rows), dict(sorted(rows.items())), sorted(refused))
