"""The quarantine of a catalog, without the rows of replaced landings."""

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
from rewindow.control.ingest.protocols import LostRows
from rewindow.control.plan.job_state import LedgerRow
from rewindow.engine.spark.spark_calls import mapped
from rewindow.tables.governed.journal import SparkJournal
from rewindow.tables.governed.log_tables import frame_of_log, landed_blocks
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.table_history import exists
from rewindow.tables.governed.table_rows import first_of
from rewindow.tables.shared.quarantine import IN_ORDER, Chosen


@dataclass(frozen=True)
class CatalogQuarantine:
    """The rows of a catalog's quarantine, without those of replaced landings."""

    frame: DataFrame
    replaced_rows: int
    lost: Sequence[LostRows] = ()

    def batches(self, chosen: Chosen) -> Iterator[pa.Table]:
        """Yield all chosen rows at once, in the order `IN_ORDER`. Raises `StorageError` (74) if a block is lost."""
        with mapped():
            yield self._chosen(chosen).orderBy(*IN_ORDER).toArrow()

    def first(self, chosen: Chosen, limit: int, *, last: bool) -> tuple[int, pa.Table]:
        """Return the number of chosen rows, and the first (``last``: the last) ``limit`` of them in the order `IN_ORDER`."""
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

    ``ledgers``: maps each feed's name to its journal and the rows of its landing ledger.
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
