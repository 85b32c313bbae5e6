"""Rows of a catalog for people: rows of outputs, and rows of the quarantine without those of replaced landings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.reserved_names import QUARANTINE_COLUMNS
from rewindow.control.ingest.feed_progress import landing_bodies
from rewindow.control.ingest.landings import GENERATION, LANDING
from rewindow.control.plan.job_state import LedgerRow
from rewindow.engine.spark.spark_job import mapped
from rewindow.tables.governed.journal import SparkJournal
from rewindow.tables.governed.log_tables import frame_of_log, landed_blocks
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.table_history import exists
from rewindow.tables.shared.quarantine import IN_ORDER, Chosen


def first_of(frame: DataFrame, names: Sequence[str], limit: int, *, last: bool) -> pa.Table:
    """Return the first ``limit`` rows, or with ``last`` the last, in the order of the columns ``names``."""
    order = [expression for name in names for expression in _ordered(frame, name, last=last)]
    rows = frame.orderBy(*order).limit(limit).toArrow()
    return rows.take(pa.array(range(rows.num_rows - 1, -1, -1), pa.int64())) if last else rows


def _ordered(frame: DataFrame, name: str, *, last: bool) -> Iterator[Column]:
    """Yield Spark's sort expressions for a column in Arrow's order: values, then NaN, then null, in both directions."""
    column = F.col(f"`{name}`")
    if dict(frame.dtypes)[name] in {"double", "float"}:
        yield F.coalesce(F.isnan(column), F.lit(False)).asc()
    yield column.desc_nulls_last() if last else column.asc_nulls_last()


def rows_of_key(frame: DataFrame, key: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return the rows whose key columns have one of the given values, in the order in which they were written."""
    for name, values in key.items():
        column = F.col(f"`{name}`")
        same = column.isin([value for value in values if value is not None])
        frame = frame.where(same | column.isNull() if None in values else same)
    return frame.orderBy("_epoch", "_partition", "_offset").toArrow()


def similar_value(frame: DataFrame, name: str, text: str) -> str | None:
    """Return a value of a column that differs from ``text`` only in case or surrounding blanks; None if there is none."""
    column = F.col(f"`{name}`")
    is_similar = (F.lower(F.trim(column)) == text.strip().lower()) & (column != text)
    values = frame.where(is_similar).select(column).limit(1).collect()
    return str(values[0][0]) if values else None


@dataclass(frozen=True)
class CatalogQuarantine:
    """The rows of a catalog's quarantine."""

    frame: DataFrame
    replaced_rows: int

    def batches(self, chosen: Chosen) -> Iterator[pa.Table]:
        """Yield all chosen rows at once, in the order `IN_ORDER`. Raises `StorageError` (74) if a block is lost."""
        with mapped():
            yield self._chosen(chosen).orderBy(*IN_ORDER).toArrow()

    def first(self, chosen: Chosen, limit: int, *, last: bool) -> tuple[int, pa.Table]:
        """Return how many rows are chosen, and the first ``limit`` of them in the order `IN_ORDER`; with ``last``, the last."""
        frame = self._chosen(chosen)
        with mapped():
            return frame.count(), first_of(frame, IN_ORDER, limit, last=last)

    def _chosen(self, chosen: Chosen) -> DataFrame:
        conditions = [*_conditions(chosen)]
        return self.frame.where(reduce(and_, conditions)) if conditions else self.frame


def open_quarantine(
    spark: SparkSession, name: TableName, ledgers: Mapping[str, tuple[SparkJournal, Sequence[LedgerRow]]]
) -> CatalogQuarantine | None:
    """Return the quarantine without rows of replaced landings; None if there is no quarantine.

    ``ledgers``: from a feed's name to its journal and the rows of its landing ledger.
    """
    if not exists(spark, name):
        return None
    frame, replaced = spark.table(name.quoted), 0
    columns = [column.name for column in QUARANTINE_COLUMNS]
    for feed, (journal, rows) in ledgers.items():
        present = landing_bodies(rows)
        if (
            count := _rows(row.body for row in rows if row.kind == LANDING) - _rows(present)
            if _is_replaced(rows)
            else 0
        ):
            replaced += count
            frame = frame.where((F.col("name") != feed) | F.col("_run").isNotNull())
            if paths := [path for path, _ in landed_blocks(present, "quarantine")]:
                frame = frame.select(columns).union(frame_of_log(spark, journal, paths, QUARANTINE_COLUMNS))
    return CatalogQuarantine(frame, replaced)


def _is_replaced(rows: Sequence[LedgerRow]) -> bool:
    return sum(row.kind == GENERATION for row in rows) > 1


def _rows(bodies: Any) -> int:
    return sum(file["rows"] for body in bodies for files in body["quarantine"].values() for file in files)


def _conditions(chosen: Chosen) -> Iterator[Column]:
    if chosen.name is not None:
        yield F.col("name") == chosen.name
    if chosen.is_landing:
        yield F.col("node").isNull()
    if chosen.runs is not None:
        yield F.col("_run").isin(list(chosen.runs))
    if chosen.nodes is not None:
        yield F.col("node").isin(list(chosen.nodes))
    if chosen.times is not None:
        yield F.col("timestamp").between(*chosen.times)
    for text in chosen.texts:
        yield F.contains(F.col("record"), F.lit(text))
