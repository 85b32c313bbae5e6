"""Stages without Spark: what is run in this process, and what every engine does there. Nothing of Spark is imported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.contracts.tasks import SubTopologyWork
from rewindow.engine.worker.output import StagingTarget, stage_rows
from rewindow.engine.worker.record_execution import run_tasks
from rewindow.errors import ConfigError
from rewindow.streams.serde.schema import Column


class LocalEngine:
    """Runs stages in this process, one task after the other: for tests, and to see how much Spark itself costs."""

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology; return the reports by partition."""
        if work.tables:
            message = f"the log {next(iter(work.tables))} is read by Spark, and there is none: run on a Spark session"
            raise ConfigError(message)
        return list(run_tasks(work, work.tasks))

    def stage_rows(
        self, target: str, root: str, attempt: str, columns: Sequence[Column], rows: Iterable[tuple[Any, ...]]
    ) -> list[StagedFile]:
        """Stage a few rows that the driver itself made."""
        return stage_rows(StagingTarget(target, root, attempt=attempt, partition=0), columns, rows)
