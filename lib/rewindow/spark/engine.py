"""Spark as the placer of work: a stage is one job, a Spark task runs several of our tasks, reports come back as rows.

How many Spark tasks there are changes nothing but time (law 3). Records do not pass through the JVM.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from rewindow.core.schema import Column
from rewindow.core.staging import StagedFile, TaskReport
from rewindow.core.work import Lane, StageWork, TaskWork
from rewindow.errors import RewindowError
from rewindow.spark.emit import Place, stage_rows
from rewindow.spark.errors import mapped, mark
from rewindow.spark.execute import run_task

_REPORT = pa.schema([pa.field("report", pa.string())])


class LocalEngine:
    """Runs stages in this process, one task after the other: for tests, and to see how much Spark itself costs."""

    def run_stage(self, work: StageWork) -> list[TaskReport]:
        """Run one sub-topology; return the reports by partition."""
        return [run_task(work, task) for task in work.tasks]

    def stage_rows(
        self, target: str, root: str, attempt: str, columns: Sequence[Column], rows: Iterable[tuple[Any, ...]]
    ) -> list[StagedFile]:
        """Stage a few rows that the driver itself made."""
        return stage_rows(Place(target, root, attempt=attempt, partition=0), columns, rows)


class SparkEngine(LocalEngine):
    """Runs stages on a Spark session, local, on a cluster or through Spark Connect."""

    def __init__(
        self, spark: SparkSession, *, slots: int, import_paths: Sequence[str] = (), lane: Lane = Lane.AUTO
    ) -> None:
        """``slots``: Spark tasks at once. ``import_paths``: where workers find the job's own modules.

        ``lane``: that of all work, unless the work itself says `Lane.RECORD`.
        """
        self._spark = spark
        self._lane = lane
        self._slots = slots
        self._import_paths = tuple(import_paths)

    def run_stage(self, work: StageWork) -> list[TaskReport]:
        """Run one sub-topology; return the reports by partition. Raises the worker's own `RewindowError`."""
        groups = _groups(work.tasks, self._slots)
        lane = self._lane if work.lane is Lane.AUTO else work.lane
        run_group = partial(_run_group, replace(work, tasks=(), lane=lane), groups, self._import_paths)
        with mapped():
            rows = self._spark.range(0, len(groups), 1, len(groups)).mapInArrow(run_group, "report string").collect()
        reports = [TaskReport.from_json(json.loads(row.report)) for row in rows]
        return sorted(reports, key=lambda report: report.partition)


def _groups(tasks: Sequence[TaskWork], slots: int) -> list[list[TaskWork]]:
    """Deal the tasks out: partition p goes to group p mod n."""
    number = max(1, min(slots, len(tasks)))
    return [list(tasks[first::number]) for first in range(number)]


def _run_group(
    work: StageWork,
    groups: Sequence[Sequence[TaskWork]],
    import_paths: Iterable[str],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    sys.path[:0] = [path for path in import_paths if path not in sys.path]
    for batch in batches:
        for group in batch.column(0).to_pylist():
            for task in groups[group]:
                report = _report(partial(run_task, work, task))
                yield pa.RecordBatch.from_arrays([pa.array([report])], schema=_REPORT)


def _report(run: Callable[[], TaskReport]) -> str:
    try:
        return json.dumps(run().as_json())
    except RewindowError as error:
        # The JVM carries text only: the mark tells the driver which error this was.
        raise RuntimeError(mark(error)) from error
