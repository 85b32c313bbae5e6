"""The engine of `land` for governed logs: the workers' files become blocks of the journal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial, reduce
from itertools import count
from operator import or_

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import LogSpec, LogWrite, ReadWindow, SourceLook
from rewindow.contracts.landing_protocol import Block
from rewindow.control.plan.stored_rows import stored_json
from rewindow.engine.spark.ingest_frames import OFFSET, SourceFrame
from rewindow.engine.spark.spark_calls import named
from rewindow.engine.spark.spark_landing import SparkLandingEngine, source_offset_blocks
from rewindow.engine.worker.bad_rows import naming_bad_rows
from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine
from rewindow.engine.worker.landing.sorted_runs import PARTITION
from rewindow.engine.worker.landing.source_rows import ArrowSource
from rewindow.engine.worker.landing.source_types import UnsuitableError
from rewindow.engine.worker.log_writer import write_log
from rewindow.engine.worker.worker_errors import mark
from rewindow.errors import NotNowError, RewindowError, StorageError
from rewindow.storage.scratch import scratch_folder
from rewindow.tables.governed.journal import ROW, SparkJournal, file_row, journal_row
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.own_table import REPORT

FILE_ROWS = 250_000
"""A block has at most this many rows. A block is a value in a row, so it must be smaller than a file."""


class CatalogLandingEngine(SparkLandingEngine):
    """An engine that lands sources on a Spark session whose workers may not write files of tables."""

    def __init__(
        self,
        spark: Callable[[], SparkSession],
        journal_of: Callable[[str], SparkJournal],
        name_of: Callable[[str], TableName],
        *,
        project_root: str,
        on_share: Callable[[float], None] | None = None,
    ) -> None:
        """``journal_of`` returns a feed's journal. ``name_of`` returns the full name of a configured table."""
        super().__init__(spark, project_root=project_root, on_share=on_share)
        self._journal_of, self._name_of = journal_of, name_of
        self._parts = count(1)

    def first_above(self, spec: LogSpec, partition: int, offsets: tuple[int, int], time_ms: int) -> int | None:
        """Return the first offset in ``offsets`` whose timestamp is above ``time_ms``, for a log that is not copied."""
        location = named(self._name_of(spec.source.name).quoted)
        return super().first_above(
            replace(spec, source=replace(spec.source, location=location)), partition, offsets, time_ms
        )

    def write(self, write: LogWrite, look: SourceLook, window: ReadWindow) -> list[Block]:
        """Stage the due rows of a log in the journal and read them back; return the blocks of each landing.

        Raises the worker's own `RewindowError`, or `StorageError` (74) if the journal lacks staged rows.
        """
        if write.spec.source_offsets:
            with self.running():
                rows = SourceFrame(self._spark, write.spec, look).source_offsets(write.columns)
                return source_offset_blocks(write, _not_landed(rows, write))
        journal, part = self._journal_of(write.feed), next(self._parts)
        smaller = replace(write, file_rows=FILE_ROWS)
        failure: RewindowError | None = None
        try:
            with self.running():
                staged = self._ordered(write, look, window).mapInArrow(
                    partial(_stage_blocks, part, smaller, self.project_root), ROW
                )
                journal.append(write.attempt, part, staged)
        except NotNowError:
            raise
        except RewindowError as error:
            # The append may have landed although it raised an error. So the journal is read.
            failure = error
        if failure is not None and not journal.has(write.attempt, part):
            with naming_bad_rows(write, look):
                raise failure
        journal.read_back(write.attempt, part)
        blocks = [Block.from_json(block) for block in journal.texts(write.attempt, part)]
        files = [file for block in blocks for file in (*block.files, *block.quarantine)]
        journal.check(write.attempt, files)
        for block in blocks:
            if block.end - block.start != sum(file.rows for file in block.files):
                raise StorageError(
                    "landing-blocks-altered",
                    "feed {feed}: the blocks of landing {landing} do not hold its rows: land again",
                    feed=write.feed,
                    landing=block.landing,
                )
        return sorted(blocks, key=lambda block: (block.landing, block.partition))


def _not_landed(rows: DataFrame, write: LogWrite) -> DataFrame:
    """Return the rows that were not landed before. In a governed table, only offsets distinguish new rows from landed rows."""
    due: Mapping[int, int] = {partition: write.starts[partition][0] + base for partition, base in write.bases.items()}
    own = F.col(PARTITION)
    if not due:
        return rows
    is_new = own.isNull() | F.col(OFFSET).isNull() | ~own.isin(sorted(due))
    return rows.where(reduce(or_, [(own == p) & (F.col(OFFSET) >= start) for p, start in due.items()], is_new))


def _stage_blocks(
    part: int, write: LogWrite, project_root: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    if project_root not in sys.path:
        sys.path.insert(0, project_root)
    with scratch_folder() as folder:
        local = replace(write, log_root=f"{folder}/log", quarantine_root=f"{folder}/quarantine")
        try:
            for block in write_log(local, batches):
                yield journal_row(part, block.partition, REPORT, "", stored_json(block.as_json()), None)
                for files, root in ((block.files, local.log_root), (block.quarantine, local.quarantine_root)):
                    for file in files:
                        yield file_row(part, block.partition, write.attempt, file, root)
        except RewindowError as error:
            raise RuntimeError(mark(error)) from error


class CatalogArrowEngine(ArrowLandingEngine):
    """An engine that lands small sources with Arrow in the process of the command, and leaves other sources to Spark.

    The journal holds the blocks in memory until the landing's ledger row is appended.
    """

    def __init__(
        self,
        spark: CatalogLandingEngine,
        journal_of: Callable[[str], SparkJournal],
        *,
        most_rows: int,
        on_share: Callable[[float], None] | None = None,
    ) -> None:
        """``spark`` lands sources of more than ``most_rows`` rows, and sources that Arrow does not read."""
        super().__init__(
            lambda: spark, _too_large, project_root=spark.project_root, most_rows=most_rows, on_share=on_share
        )
        self._journal_of = journal_of

    def _land_here(self, write: LogWrite, source: ArrowSource) -> list[Block]:
        journal = self._journal_of(write.feed)
        with scratch_folder() as folder:
            log_root, quarantine_root = f"{folder}/log", f"{folder}/quarantine"
            local = replace(write, file_rows=FILE_ROWS, log_root=log_root, quarantine_root=quarantine_root)
            blocks = super()._land_here(local, source)
            for block in blocks:
                for files, root in ((block.files, log_root), (block.quarantine, quarantine_root)):
                    rows = [file_row(0, block.partition, write.attempt, file, root) for file in files]
                    journal.hold(write.attempt, rows)
        return blocks


def _too_large(write: LogWrite, source: ArrowSource) -> list[Block]:  # noqa: ARG001
    """Raise `UnsuitableError`, which leaves a large source to Spark."""
    message = "the source has too many rows to be landed in this process"
    raise UnsuitableError(message)
