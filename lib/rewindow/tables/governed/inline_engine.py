"""Run small sub-topologies of governed tables in the process of the command.

One query reads all blocks that the tasks of a sub-topology need: landed rows, internal logs and stores. The rows that the
tasks stage are held in memory, so one commit contains the run's plan, rows and COMMIT (ADR-106). Spark runs the other
sub-topologies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.contracts.tasks import Execution, LogFile, LogSpan, LogTable, SubTopologyWork, TaskWork
from rewindow.control.plan.stored_rows import stored_json
from rewindow.engine.worker.local_engine import VECTORIZED_SHARE, LocalEngine, SubTopologyRunner
from rewindow.engine.worker.task_execution import run_tasks
from rewindow.engine.worker.worker_errors import as_in_a_worker
from rewindow.storage.scratch import scratch_folder
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.journal import ROOT, SparkJournal, block_path, file_row, hold_rows, journal_row
from rewindow.tables.governed.own_table import REPORT


class Staged(Protocol):
    """The protocol of an object that gives access to staged and landed blocks."""

    def journal(self, job: str) -> SparkJournal:
        """Return a job's journal."""
        ...

    def rows_staged(self, path: str) -> int | None:
        """Return the number of rows of a block that a run staged; None if it is unknown."""
        ...

    def landed_files(self, table: LogTable, partition: int, spans: Sequence[LogSpan]) -> list[LogFile]:
        """Return the landed blocks that contain the offsets in ``spans`` of a log's partition, in offset order."""
        ...


class CatalogInlineEngine(LocalEngine):
    """An engine that runs small sub-topologies in this process, and other sub-topologies on Spark."""

    def __init__(
        self,
        spark: Callable[[], SubTopologyRunner],
        tables: Staged,
        *,
        most: int,
        execution: Execution = Execution.AUTO,
        on_task: Callable[[TaskReport], None] | None = None,
    ) -> None:
        """A sub-topology runs in this process if its records and restored rows, added up, are at most ``most``.

        ``on_task``: called with each task's report.
        """
        super().__init__(execution)
        self._spark, self._tables, self._most, self._on_task = spark, tables, most, on_task
        self._journal = tables.journal("none")
        self._made: dict[str, int] = {}

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology; return a report of each task, sorted by partition. Raises as a worker would."""
        work = self.with_execution(work)
        self._journal = self._tables.journal(work.identity.job)
        if not self._is_small(work):
            return self._spark().run_sub_topology(work)
        reports = []
        with scratch_folder() as folder, as_in_a_worker():
            here = self._with_files(work, Path(folder, "given"))
            roots = {target: f"{folder}/made/{target}" for target in work.staging.roots}
            here = replace(here, staging=replace(work.staging, roots=roots))
            for report in run_tasks(here, here.tasks):
                self._hold(work.identity.attempt, report, roots)
                reports.append(report)
                if self._on_task is not None:
                    self._on_task(report)
        return sorted(reports, key=lambda report: report.partition)

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

    def _is_small(self, work: SubTopologyWork) -> bool:
        if any(table.source_offsets is not None for table in work.tables.values()):
            # A log that is read directly from its source is not copied, so it has no blocks.
            return False
        paths = [path for task in work.tasks for path in _blocks_of(task)]
        stored = [self._made.get(path, self._tables.rows_staged(path)) for path in paths]
        if None in stored:
            return False
        size = sum(rows or 0 for rows in stored)
        size += sum(end - start for task in work.tasks for log in task.logs.values() for start, end in log.bounds)
        return size <= self._most * (VECTORIZED_SHARE if work.execution is Execution.VECTORIZED else 1)

    def _with_files(self, work: SubTopologyWork, folder: Path) -> SubTopologyWork:
        """With one query, copy the blocks that tasks read to local files; return the work with the files in place of blocks."""
        tasks = [self._with_landed(work, task) for task in work.tasks]
        paths = {path for task in tasks for path in _blocks_of(task)}
        for path, data in self._journal.block_data(paths).items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        return replace(work, tables={}, tasks=tuple(_relocated(task, folder) for task in tasks))

    def _with_landed(self, work: SubTopologyWork, task: TaskWork) -> TaskWork:
        slices = {}
        for topic, log in task.logs.items():
            files = self._tables.landed_files(work.tables[topic], task.partition, log.spans) if log.spans else []
            slices[topic] = replace(log, files=tuple(files), spans=())
        return replace(task, logs=slices)

    def _hold(self, attempt: str, report: TaskReport, roots: Mapping[str, str]) -> None:
        part, partition = report.sub_topology, report.partition
        self._made |= {block_path(attempt, file.target, file.path): file.rows for file in report.files}
        files = [file_row(part, partition, attempt, file, roots[file.target]) for file in report.files]
        self._journal.hold(
            attempt, [journal_row(part, partition, REPORT, "", stored_json(report.as_json()), None), *files]
        )


def _blocks_of(task: TaskWork) -> list[str]:
    """Return the paths of the blocks that a task reads: landed rows, internal logs and changelogs."""
    landed = [file.path for log in task.logs.values() for file in log.files]
    internal = [file.path for files in task.internal.values() for file in files]
    stores = [path for paths in task.stores.values() for path in paths]
    return [path.removeprefix(ROOT) for path in (*landed, *internal, *stores)]


def _relocated(task: TaskWork, folder: Path) -> TaskWork:
    """Return the task with paths of local files below a folder, in place of its blocks."""

    def local(path: str) -> str:
        return f"{folder}/{path.removeprefix(ROOT)}"

    return replace(
        task,
        logs={
            topic: replace(log, files=tuple(replace(file, path=local(file.path)) for file in log.files))
            for topic, log in task.logs.items()
        },
        internal={t: tuple(replace(file, path=local(file.path)) for file in some) for t, some in task.internal.items()},
        stores={store: tuple(map(local, paths)) for store, paths in task.stores.items()},
    )
