"""Run sub-topologies on Spark: one job for each, several of our tasks per Spark task, reports returned as rows.

The number of Spark tasks only affects time (L3). Unless Spark reads a log, records do not pass through the JVM.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import Execution, SubTopologyWork, TaskWork
from rewindow.engine.spark.colocated_reader import colocated_frame, run_colocated
from rewindow.engine.spark.errors import mapped
from rewindow.engine.spark.progress import following
from rewindow.engine.spark.settings import for_packs
from rewindow.engine.spark.shuffle_reader import run_shuffle, shuffle_frame
from rewindow.engine.spark.verified_checksums import verified
from rewindow.engine.spark.worker_rows import json_rows
from rewindow.engine.worker.local import LocalEngine
from rewindow.engine.worker.packing import Packing
from rewindow.engine.worker.record_execution import run_tasks
from rewindow.storage.locations import known


class SparkEngine(LocalEngine):
    """Runs sub-topologies on a Spark session: local, on a cluster or through Spark Connect."""

    def __init__(
        self,
        spark: SparkSession,
        *,
        slots: int,
        import_paths: Sequence[str] = (),
        execution: Execution = Execution.AUTO,
        on_share: Callable[[float], None] | None = None,
        on_task: Callable[[TaskReport], None] | None = None,
    ) -> None:
        """``slots``: concurrent Spark tasks. ``import_paths``: where workers find the job's modules.

        ``execution`` is that of the target. ``on_share`` gets the finished share of a sub-topology (0 to 1) twice a second,
        ``on_task`` each task's report.
        """
        super().__init__(execution)
        self._spark = spark
        self._on_share, self._on_task = on_share, on_task
        self._slots = slots
        self._import_paths = tuple(import_paths)

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology; return the reports by partition. Raises the worker's own `RewindowError`."""
        with mapped(), for_packs(self._spark), following(self._spark, self._on_share):
            frame = self._report_frame(work)
            with verified(frame, work):
                rows = frame.collect()
        found = [TaskReport.from_json(json.loads(row.report)) for row in rows]
        reports = sorted(found, key=lambda report: report.partition)
        if self._on_task is not None:
            for report in reports:
                self._on_task(report)
        return reports

    def spark_plan(self, work: SubTopologyWork) -> str:
        """Return Spark's plan of a sub-topology as text. Runs nothing."""
        with mapped(), for_packs(self._spark), redirect_stdout(StringIO()) as text:
            self._report_frame(work).explain()
        return text.getvalue().strip()

    def _report_frame(self, work: SubTopologyWork) -> DataFrame:
        """Return a frame that runs a sub-topology and contains the reports. Runs nothing yet."""
        groups = groups_of(work.tasks, self._slots)
        bare = replace(self.with_execution(work), tasks=())
        if not work.tables:
            run_group = partial(_run_group, bare, groups, self._import_paths, known())
            return self._spark.range(0, len(groups), 1, len(groups)).mapInArrow(run_group, "report string")
        logs = work.code.load_logs()
        colocated = colocated_frame(self._spark, work, groups, logs)
        if colocated is not None:
            rows, packing = colocated
            run_groups = partial(_run_colocated, bare, groups, packing, self._import_paths, known())
            return rows.mapInArrow(run_groups, "report string")
        rows = shuffle_frame(self._spark, work, groups, logs)
        tasks = {task.partition: task for task in work.tasks}
        return rows.mapInArrow(partial(_run_rows, bare, tasks, self._import_paths, known()), "report string")


def groups_of(tasks: Sequence[TaskWork], slots: int) -> list[list[TaskWork]]:
    """Distribute tasks over groups: task number t goes to group t mod n."""
    number = max(1, min(slots, len(tasks)))
    return [list(tasks[first::number]) for first in range(number)]


def _run_group(
    work: SubTopologyWork,
    groups: Sequence[Sequence[TaskWork]],
    import_paths: Iterable[str],
    buckets: Mapping[str, Mapping[str, str]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    tasks = (task for batch in batches for group in batch.column(0).to_pylist() for task in groups[group])
    return _reports(import_paths, buckets, lambda: run_tasks(work, tasks))


def _run_rows(
    work: SubTopologyWork,
    tasks: Mapping[int, TaskWork],
    import_paths: Iterable[str],
    buckets: Mapping[str, Mapping[str, str]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    return _reports(import_paths, buckets, lambda: run_shuffle(work, tasks, batches))


def _run_colocated(
    work: SubTopologyWork,
    groups: Sequence[Sequence[TaskWork]],
    packing: Packing,
    import_paths: Iterable[str],
    buckets: Mapping[str, Mapping[str, str]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    return _reports(import_paths, buckets, lambda: run_colocated(work, groups, packing, batches))


def _reports(
    import_paths: Iterable[str],
    buckets: Mapping[str, Mapping[str, str]],
    run: Callable[[], Iterator[TaskReport]],
) -> Iterator[pa.RecordBatch]:
    return json_rows("report", import_paths, buckets, lambda: (report.as_json() for report in run()))
