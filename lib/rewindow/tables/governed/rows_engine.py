"""The engine for governed tables. Tasks receive and return rows through Spark instead of opening files.

The task itself is the same as for files. Before it starts, the worker copies the stored data of its internal logs and stores to a
temporary folder. The task reads and writes files there, and the files that it wrote are stored as rows of the journal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.contracts.tasks import Execution, SubTopologyWork, TaskWork
from rewindow.control.plan.stored_rows import stored_json
from rewindow.engine.spark.shuffle_reader import (
    DATA,
    FIRST,
    GROUP,
    LAST,
    PACK,
    PIECE,
    TASK,
    TOPIC,
    run_shuffle,
    shuffle_frame,
)
from rewindow.engine.spark.spark_calls import for_packs, mapped
from rewindow.engine.spark.spark_engine import SparkEngine, groups_of
from rewindow.engine.worker.packing import PIECE_BYTES
from rewindow.engine.worker.worker_errors import mark
from rewindow.errors import NotNowError, RewindowError, StorageError
from rewindow.storage.scratch import scratch_folder
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.journal import ROOT, ROW, SparkJournal, file_row, hold_rows, journal_row
from rewindow.tables.governed.own_table import REPORT

_BLOCK_TOPIC = -2
"""The number that packs have as their topic if they are blocks. They are numbered in the order of `paths_of`, and precede all
other packs of their task."""

_PIECES = (
    f"transform(sequence(0, (length(data) - 1) div {PIECE_BYTES}), i -> substring(data, "
    f"CAST(i * {PIECE_BYTES} + 1 AS INT), {PIECE_BYTES}))"
)
"""An SQL expression that splits a block into pieces. So a batch of rows is small, however many blocks a task reads."""

_WANTED = pa.schema([(GROUP, pa.int64()), (TASK, pa.int64()), (FIRST, pa.int64()), ("path", pa.string())])


class RowsEngine(SparkEngine):
    """An engine for sub-topologies whose tasks may neither read nor write the tables' files."""

    def __init__(
        self,
        spark: SparkSession,
        journal_of: Callable[[str], SparkJournal],
        *,
        slots: int,
        import_paths: Sequence[str] = (),
        execution: Execution,
    ) -> None:
        """``journal_of`` returns a job's journal. The job's tasks append to it, and read earlier blocks from it."""
        super().__init__(spark, slots=slots, import_paths=import_paths, execution=execution)
        self._journal_of = journal_of
        self._journal = journal_of("none")

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology. Its rows are appended once and read back. Raises the worker's own `RewindowError`."""
        failure: RewindowError | None = None
        journal, attempt, part = self._journal_of(work.identity.job), work.identity.attempt, work.sub_topology
        self._journal = journal
        journal.make_durable(attempt)
        try:
            with mapped(), for_packs(self._spark):
                journal.append(attempt, part, self._rows(work))
        except NotNowError:
            raise
        except RewindowError as error:
            # The append may have landed although it raised an error. So the journal is read.
            failure = error
        journal.read_back(attempt, part)
        reports = journal.reports(attempt, part)
        if len(reports) != len(work.tasks):
            raise failure or StorageError(
                "journal-lacks-part",
                "sub-topology {sub_topology} of attempt {attempt} is not in the journal: run again",
                sub_topology=part,
                attempt=attempt,
            )
        return reports

    def stage_rows(
        self,
        target: str,
        root: str,  # noqa: ARG002 - the rows go to the journal
        attempt: str,
        columns: Sequence[Column],
        rows: Iterable[tuple[Any, ...]],
    ) -> list[StagedFile]:
        """Stage a few rows that the driver made. The journal holds them until the next ledger row is appended."""
        return hold_rows(self._journal, target, attempt, columns, rows)

    def _rows(self, work: SubTopologyWork) -> DataFrame:
        groups = groups_of(work.tasks, self._slots)
        bare = replace(self.with_execution(work), tasks=())
        rows = shuffle_frame(self._spark, work, groups, work.code.load_logs(), [*self._blocks(groups)])
        tasks = {task.partition: task for task in work.tasks}
        return rows.mapInArrow(partial(_run_rows, bare, tasks, self._import_paths), ROW)

    def _blocks(self, groups: Sequence[Sequence[TaskWork]]) -> Iterator[DataFrame]:
        wanted = [
            (group, task.partition, number, path)
            for group, tasks in enumerate(groups)
            for task in tasks
            for number, path in enumerate(paths_of(task))
        ]
        if wanted:
            columns = [list(column) for column in zip(*wanted, strict=True)]
            wanted_frame = self._spark.createDataFrame(pa.table(columns, schema=_WANTED))
            attempts = sorted({path.partition("/")[0] for *_, path in wanted})
            blocks = self._journal.blocks(attempts).join(F.broadcast(wanted_frame), "path")
            names = {TOPIC: _BLOCK_TOPIC, LAST: -1, PACK: -1}
            positions = [F.lit(number).cast("long").alias(name) for name, number in names.items()]
            # Each block is made into one array, which is then exploded. Otherwise Spark would copy the whole block for each
            # piece.
            pieces = blocks.select(GROUP, TASK, FIRST, *positions, F.expr(_PIECES).alias("pieces"))
            numbered = pieces.select(GROUP, TASK, FIRST, *names, F.posexplode("pieces").alias(PIECE, DATA))
            yield numbered.withColumn(PIECE, F.col(PIECE).cast("long"))


def paths_of(task: TaskWork) -> list[str]:
    """Return the paths of the blocks that a task reads: internal logs and changelogs."""
    internal = [file.path for files in task.internal.values() for file in files]
    stores = [path for paths in task.stores.values() for path in paths]
    return [path.removeprefix(ROOT) for path in (*internal, *stores) if path.startswith(ROOT)]


def _run_rows(
    work: SubTopologyWork, tasks: Mapping[int, TaskWork], import_paths: Iterable[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    sys.path[:0] = [path for path in import_paths if path not in sys.path]
    with scratch_folder() as folder:
        here = {partition: _relocated(task, folder) for partition, task in tasks.items()}
        made = {target: f"{folder}/made/{target}" for target in work.staging.roots}
        try:
            for report in run_shuffle(
                replace(work, staging=replace(work.staging, roots=made)), here, _write_blocks(batches, tasks, folder)
            ):
                text = stored_json(report.as_json())
                yield journal_row(report.sub_topology, report.partition, REPORT, "", text, None)
                for file in report.files:
                    yield file_row(
                        report.sub_topology, report.partition, work.identity.attempt, file, made[file.target]
                    )
        except RewindowError as error:
            raise RuntimeError(mark(error)) from error


def _relocated(task: TaskWork, folder: str) -> TaskWork:
    """Return the task with paths of local files below a folder, in place of its blocks."""

    def local(path: str) -> str:
        return f"{folder}/given/{task.partition}/{path.removeprefix(ROOT)}"

    return replace(
        task,
        internal={t: tuple(replace(file, path=local(file.path)) for file in some) for t, some in task.internal.items()},
        stores={store: tuple(map(local, paths)) for store, paths in task.stores.items()},
    )


def _write_blocks(
    batches: Iterable[pa.RecordBatch], tasks: Mapping[int, TaskWork], folder: str
) -> Iterator[pa.RecordBatch]:
    """Write the packs that are blocks to files; yield the other packs."""
    paths = {partition: paths_of(task) for partition, task in tasks.items()}
    for batch in batches:
        is_block = np.asarray(batch.column(TOPIC)) == _BLOCK_TOPIC
        if is_block.any():
            blocks = batch.filter(pa.array(is_block))
            positions = [blocks.column(name).to_pylist() for name in (TASK, FIRST, PIECE)]
            for partition, number, piece, data in zip(*positions, blocks.column(DATA), strict=True):
                # Each task has its own files, because pieces for the next task may arrive while this task reads a copy of the
                # same block.
                file = Path(folder, "given", str(partition), paths[partition][number])
                file.parent.mkdir(parents=True, exist_ok=True)
                # The pieces of a block arrive in order.
                with file.open("ab" if piece else "wb") as out:
                    out.write(data.as_buffer())
        if not is_block.all():
            yield batch.filter(pa.array(~is_block))
