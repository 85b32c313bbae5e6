"""The engine of `land`: reads the due rows of a source once, shuffles them once, and lets the workers write them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import (
    Block,
    Intervals,
    LogColumns,
    LogSpec,
    LogWrite,
    ReadWindow,
    SourceLook,
    SourceSpec,
)
from rewindow.engine.spark.errors import mapped
from rewindow.engine.spark.ingest_frames import SourceFrame, sort_columns
from rewindow.engine.spark.kafka_offsets import first_above, source_offset_blocks
from rewindow.engine.spark.partitioning import repartition_by
from rewindow.engine.spark.settings import in_utc
from rewindow.engine.worker.arrivals import interval_starts
from rewindow.engine.worker.failures import mark
from rewindow.engine.worker.log_blocks import ARRIVED, PARTITION
from rewindow.engine.worker.log_writer import write_log
from rewindow.engine.worker.source_files import look_at_files, unchanged
from rewindow.errors import RewindowError
from rewindow.storage.locations import adopt, known

_BLOCK = pa.schema([pa.field("block", pa.string())])
_STARTS = pa.schema([pa.field("start", pa.int64())])


class SparkLandingEngine:
    """Lands sources on a Spark session, one job per log. Workers import extractors from ``project_root``."""

    def __init__(self, spark: SparkSession | Callable[[], SparkSession], *, project_root: str) -> None:
        """``spark``: a session, or a function that returns one and is called when rows are first read."""
        self._given = spark
        self.project_root = project_root

    @property
    def _spark(self) -> SparkSession:
        return self._given() if callable(self._given) else self._given

    def look(self, spec: SourceSpec, position: Mapping[str, Any] | None) -> SourceLook:
        """Compare a file source with its landed position (see `look_at_files`)."""
        return look_at_files(spec, position)

    def check_unchanged(self, spec: SourceSpec, look: SourceLook) -> None:
        """Raise `SourceError` (66) if fresh files changed since the look."""
        unchanged(look, spec)

    def columns(self, spec: LogSpec, look: SourceLook) -> LogColumns:
        """Decide the typed columns of a log. Raises `ConfigError` (78) for columns that cannot be landed."""
        with mapped(), in_utc(self._spark):
            return SourceFrame(self._spark, spec, look).columns()

    def intervals(
        self, spec: LogSpec, columns: LogColumns, look: SourceLook, window: ReadWindow, intervals: Intervals
    ) -> set[int | None]:
        """Return the starts of the arrival intervals of due rows; None for rows without an arrival."""
        with mapped(), in_utc(self._spark):
            due = SourceFrame(self._spark, spec, look).due(columns, window, 1).select(ARRIVED)
            rows = due.mapInArrow(partial(_interval_starts, intervals), "start bigint").collect()
        return {row.start for row in rows}

    def first_above(self, spec: LogSpec, partition: int, offsets: tuple[int, int], time_ms: int) -> int | None:
        """Return the first of some offsets with a timestamp above a time, for a log that keeps its source's offsets."""
        with mapped(), in_utc(self._spark):
            return first_above(self._spark, spec, partition, offsets, time_ms)

    def write(self, write: LogWrite, look: SourceLook, window: ReadWindow) -> list[Block]:
        """Write the due rows of a log as staged files; return a block per landing and partition.

        For a table with its own offsets, it writes nothing and only counts the new rows. Raises the worker's own
        `RewindowError`.
        """
        if write.spec.source_offsets:
            with mapped(), in_utc(self._spark):
                return source_offset_blocks(
                    write, SourceFrame(self._spark, write.spec, look).source_offsets(write.columns)
                )
        write_rows = partial(_write_rows, write, self.project_root, known())
        with mapped(), in_utc(self._spark):
            rows = self._ordered(write, look, window).mapInArrow(write_rows, "block string").collect()
        blocks = [Block.from_json(json.loads(row.block)) for row in rows]
        return sorted(blocks, key=lambda block: (block.landing, block.partition))

    def _ordered(self, write: LogWrite, look: SourceLook, window: ReadWindow) -> DataFrame:
        """Return the due rows of a log, by partition and in offset order."""
        tasks = max(1, min(write.partitions, int(self._spark.conf.get("spark.sql.shuffle.partitions") or 1)))
        due = SourceFrame(self._spark, write.spec, look).due(write.columns, window, write.partitions)
        rows = repartition_by(due, tasks, F.col(PARTITION) % tasks)
        return rows.sortWithinPartitions(*sort_columns(write.spec, write.columns))


def _write_rows(
    write: LogWrite, project_root: str, buckets: Mapping[str, Mapping[str, str]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    adopt(buckets)
    if project_root not in sys.path:
        sys.path.insert(0, project_root)
    blocks = write_log(write, batches)
    while True:
        try:
            block = next(blocks, None)
        except RewindowError as error:
            # The JVM passes text only; the driver decodes the mark.
            raise RuntimeError(mark(error)) from error
        if block is None:
            return
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(block.as_json())])], schema=_BLOCK)


def _interval_starts(intervals: Intervals, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = interval_starts(intervals, (batch.column(0) for batch in batches))
    yield pa.RecordBatch.from_arrays(
        [pa.array(sorted(found, key=lambda s: (s is not None, s or 0)), pa.int64())], schema=_STARTS
    )
