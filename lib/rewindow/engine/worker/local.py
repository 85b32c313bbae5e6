"""The engine that runs tasks in this process, and what all engines share. Imports nothing of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from rewindow.contracts.staged_files import QUARANTINE, SHARED, StagedFile, TaskReport
from rewindow.contracts.tasks import Execution, SubTopologyWork
from rewindow.engine.worker.record_execution import run_tasks
from rewindow.engine.worker.shared_files import sharing
from rewindow.engine.worker.staging import StagingTarget, stage_rows
from rewindow.engine.worker.vectorized.planner import choose_execution, why_one_by_one
from rewindow.errors import ConfigError
from rewindow.streams.serde.schema import Column


class LocalEngine:
    """Runs sub-topologies in this process, task by task: for tests, and to measure the overhead of Spark."""

    def __init__(
        self, execution: Execution = Execution.AUTO, *, is_shareable: Callable[[str], bool] = lambda _root: True
    ) -> None:
        """``execution`` is that of the target.

        ``is_shareable`` returns whether a file of the table in a folder may have rows of several tasks.
        """
        self._execution, self._is_shareable = execution, is_shareable

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology; return the reports by partition.

        Raises `ConfigError` (78) for a log that only Spark can read.
        """
        if work.tables:
            message = f"the log {next(iter(work.tables))} can only be read by Spark: use a Spark engine"
            raise ConfigError(message)
        return self.run_here(self.with_execution(work))

    def run_here(
        self, work: SubTopologyWork, on_task: Callable[[TaskReport], None] = lambda _report: None
    ) -> list[TaskReport]:
        """Run the tasks; return their reports by partition, after that of the files that they share.

        ``on_task`` gets each task's report when it has ended.
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
        """Return work whose execution is chosen. Work that already names an execution keeps it."""
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
        message = (
            f"sub-topology {part.index} of job {work.identity.job!r} cannot use vectorized execution: {plan}. "
            "Set execution: auto in the target, or see `rewindow explain`"
        )
        raise ConfigError(message)
    return Execution.RECORD if isinstance(plan, str) else Execution.VECTORIZED
