"""The engines that run tasks in this process, and the code that all engines share. Imports nothing of Spark.

`InlineEngine` runs small sub-topologies in this process, and lets Spark run the others. A task runs the same Python and Arrow
code in both places, so its files are the same (L3). User code in this process runs as in a worker
(`worker_errors.as_in_a_worker`): what it prints goes to stderr, and it cannot end the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Protocol

from rewindow.contracts.staged_files import QUARANTINE, SHARED, StagedFile, TaskReport
from rewindow.contracts.tasks import Execution, SubTopologyWork
from rewindow.engine.worker.staging import StagingTarget, sharing, stage_rows
from rewindow.engine.worker.task_execution import run_tasks
from rewindow.engine.worker.vectorized.choose_execution import choose_execution, why_one_by_one
from rewindow.engine.worker.worker_errors import as_in_a_worker
from rewindow.errors import ConfigError
from rewindow.storage.locations import filesystem_of, is_uri
from rewindow.streams.serde.schema import Column
from rewindow.streams.state.stores import JOIN, KEY_VALUE, RECORDS, WINDOW
from rewindow.streams.topology import key_topics

VECTORIZED_SHARE = 10
"""Vectorized execution processes this number of records in the time in which record execution processes one."""
_RECORD_BYTES = 16
"""The estimated bytes per record of an internal log, or per row of a changelog that is read whole."""
_PRUNED_BYTES = 512
"""If a task restores only some keys or live windows, this number of changelog bytes costs as much time as one record."""
_WHOLE = (KEY_VALUE, JOIN, RECORDS)
"""The kinds of stores that joins use. Vectorized execution restores such stores completely."""


class LocalEngine:
    """Runs sub-topologies in this process, task by task: for tests, and to measure the overhead of Spark."""

    def __init__(
        self, execution: Execution = Execution.AUTO, *, is_shareable: Callable[[str], bool] = lambda _root: True
    ) -> None:
        """``execution`` is the setting of this name in the target.

        ``is_shareable`` returns whether a file of the table in a folder may have rows of several tasks.
        """
        self._execution, self._is_shareable = execution, is_shareable

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology; return a report of each task, ordered by partition.

        Raises `ConfigError` (78) for a log that only Spark can read.
        """
        if work.tables:
            raise ConfigError(
                "log-needs-spark",
                "the log {topic} can only be read by Spark: use a Spark engine",
                topic=next(iter(work.tables)),
            )
        return self.run_here(self.with_execution(work))

    def run_here(
        self, work: SubTopologyWork, on_task: Callable[[TaskReport], None] = lambda _report: None
    ) -> list[TaskReport]:
        """Run the tasks; return their reports, ordered by partition. The first report lists the files that tasks shared.

        ``on_task`` gets each task's report when the task has ended.
        """
        reports = []
        with sharing(self._is_shareable) as shared:
            for made in run_tasks(work, work.tasks):
                reports.append(replace(made, shared_rows=shared.end_task()))
                on_task(reports[-1])
            files = tuple(shared.close())
        if files:
            reports.append(TaskReport(work.sub_topology, SHARED, files, {}, (), {}))
        return sorted(reports, key=lambda report: report.partition)

    def with_execution(self, work: SubTopologyWork) -> SubTopologyWork:
        """Return the work with its execution (record or vectorized) chosen.

        If the work already names an execution, it is kept.
        """
        if work.execution is not Execution.AUTO:
            return work
        return replace(work, execution=chosen_execution(work, self._execution))

    def stage_rows(
        self, target: str, root: str, attempt: str, columns: Sequence[Column], rows: Iterable[tuple[Any, ...]]
    ) -> list[StagedFile]:
        """Stage a few rows that the driver itself made."""
        return stage_rows(StagingTarget(target, root, attempt=attempt, partition=0), columns, rows)


def chosen_execution(work: SubTopologyWork, wanted: Execution = Execution.AUTO) -> Execution:
    """Return `RECORD` or `VECTORIZED` for a sub-topology, given the execution of the target.

    Raises `ConfigError` (78) if the target demands vectorized execution and the sub-topology does not support it.
    """
    code = work.code
    part = code.topology.sub_topologies()[work.sub_topology]
    has_quarantine = QUARANTINE in work.staging.roots
    one_by_one = why_one_by_one(code.topology, part, code.settings, has_quarantine=has_quarantine)
    plan = choose_execution(wanted, code.topology, part, code.load_logs(), one_by_one=one_by_one)
    if isinstance(plan, str) and wanted is Execution.VECTORIZED:
        raise ConfigError(
            "vectorized-execution-unsupported",
            "sub-topology {sub_topology} of job {job!r} cannot use vectorized execution: {reason}. Set execution: "
            "auto in the target, or see `rewindow explain {job}`",
            sub_topology=part.index,
            job=work.identity.job,
            reason=plan,
        )
    return Execution.RECORD if isinstance(plan, str) else Execution.VECTORIZED


class SubTopologyRunner(Protocol):
    """Runs sub-topologies."""

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology; return a report of each task, ordered by partition."""
        ...


class InlineEngine(LocalEngine):
    """An engine that runs small sub-topologies in this process, and larger ones on Spark.

    Spark is started when the first larger sub-topology is run.
    """

    def __init__(
        self,
        spark: Callable[[], SubTopologyRunner],
        *,
        most: int,
        execution: Execution = Execution.AUTO,
        on_task: Callable[[TaskReport], None] | None = None,
        on_share: Callable[[float], None] | None = None,
        on_other: Callable[[str], None] | None = None,
        is_shareable: Callable[[str], bool] = lambda _root: True,
    ) -> None:
        """A sub-topology of at most the size ``most`` (`size_of`) runs in this process.

        ``on_task`` gets each task's report. ``on_share`` gets the share of the records that are processed, from 0 to 1. For
        each sub-topology that Spark runs, ``on_other`` gets a text with the reason: ``run sub-topology 0: ...``.
        ``is_shareable`` returns whether a file of the table in a folder may have rows of several tasks.
        """
        super().__init__(execution, is_shareable=is_shareable)
        self._spark, self._most = spark, most
        self._on_task, self._on_share, self._on_other = on_task, on_share, on_other

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology; return a report of each task, ordered by partition.

        Raises the same errors in this process as on Spark.
        """
        work = self.with_execution(work)
        if why := self._why_spark(work):
            if self._on_other is not None:
                self._on_other(f"run sub-topology {work.sub_topology}: {why}")
            return self._spark().run_sub_topology(work)
        shares = iter(_shares(work))

        def on_task(report: TaskReport) -> None:
            if self._on_share is not None:
                self._on_share(next(shares))
            if self._on_task is not None:
                self._on_task(report)

        with as_in_a_worker():
            return self.run_here(work, on_task)

    def _why_spark(self, work: SubTopologyWork) -> str:
        """Return the reason why Spark runs a sub-topology; an empty text if it runs in this process."""
        if work.tables:
            topic, table = min(work.tables.items())
            return f"tasks cannot open the log of {topic!r}: {table.why}"
        size = size_of(work)
        if size <= self._most:
            return ""
        share = (
            f", of which vectorized execution counts 1 in {VECTORIZED_SHARE}"
            if work.execution is Execution.VECTORIZED
            else ""
        )
        size *= VECTORIZED_SHARE if share else 1
        return f"about {size:,} records to read and rows to restore{share and share + ','} are more than `inline: {self._most}`"


def size_of(work: SubTopologyWork) -> int:
    """Return the estimated cost of a sub-topology: the records that it processes plus the rows that it restores.

    In vectorized execution, `VECTORIZED_SHARE` records count as one. The numbers of records in internal logs and of rows in
    changelogs are estimated from the sizes of the files.
    """
    part = work.code.topology.sub_topologies()[work.sub_topology]
    is_vectorized = work.execution is Execution.VECTORIZED
    topics_of = key_topics(part)
    internal = [file.path for task in work.tasks for files in task.internal.values() for file in files]
    size = sum(end - start for task in work.tasks for log in task.logs.values() for start, end in log.bounds)
    size += _bytes(internal) // _RECORD_BYTES
    for store in part.stores:
        is_pruned = (
            store.kind == WINDOW or bool(topics_of.get(store.name)) or (is_vectorized and store.kind not in _WHOLE)
        )
        stored = _bytes({path for task in work.tasks for path in task.stores.get(store.name, ())})
        size += stored // (_PRUNED_BYTES if is_pruned else _RECORD_BYTES)
    return size // VECTORIZED_SHARE if is_vectorized else size


def _shares(work: SubTopologyWork) -> list[float]:
    """Return for each task the share (0 to 1) of all records that has been processed when this task ends."""
    sizes = [1 + sum(end - start for log in task.logs.values() for start, end in log.bounds) for task in work.tasks]
    return [done / sum(sizes) for done in accumulate(sizes)]


def _bytes(paths: Iterable[str]) -> int:
    names = list(paths)
    if not names:
        return 0
    system, _ = filesystem_of(names[0])
    located = [filesystem_of(name)[1] for name in names] if is_uri(names[0]) else names
    return sum(info.size or 0 for info in system.get_file_info(located))
