"""Run sub-topologies on Spark: one Spark job per sub-topology, several tasks per Spark task, reports returned as rows.

The number of Spark tasks only affects time (L3). Unless Spark reads a log, records do not pass through the JVM.

Spark verifies page checksums, but not the CRC-32 in the name of a landed file. So the engine verifies the CRC-32 of the files
that a frame read. The frame lists these files; pruned files are not among them. They are verified after the computation, so
that corruption during the computation is found, too. They are also verified after a failure. Corruption may have caused the
failure, and the error that names the corrupt file is then more helpful.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import replace
from functools import partial
from io import StringIO
from urllib.parse import unquote

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rewindow.contracts.staged_files import TaskReport, named_checksum
from rewindow.contracts.tasks import Execution, SubTopologyWork, TaskWork
from rewindow.engine.spark.shuffle_reader import colocated_frame, run_colocated, run_shuffle, shuffle_frame
from rewindow.engine.spark.spark_calls import Driver, following, for_packs, json_rows, mapped, this_driver
from rewindow.engine.worker.checksums import UNREADABLE, check_bytes, unreadable
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.engine.worker.packing import Packing
from rewindow.engine.worker.task_execution import run_tasks
from rewindow.errors import StorageError
from rewindow.storage.progress import counted

_AT_ONCE = 4
"""The number of files that are read concurrently. Neither reading nor the checksum holds the GIL."""
_ESCAPED = "file:///"
"""The prefix of local paths that Spark converted to URIs. These have escapes. Delta's paths start with ``file:/`` and have no
escapes."""


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
        """``slots`` is the number of concurrent Spark tasks. Workers import the job's modules from ``import_paths``.

        ``execution`` is the setting of this name in the target. ``on_share`` gets the finished share of a sub-topology (0 to
        1) twice a second. ``on_task`` gets the report of each task.
        """
        super().__init__(execution)
        self._spark = spark
        self._on_share, self._on_task = on_share, on_task
        self._slots = slots
        self._import_paths = tuple(import_paths)

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology; return a report of each task, ordered by partition. Raises the worker's own `RewindowError`."""
        with mapped(), for_packs(self._spark), following(self._spark, self._on_share):
            frame = self._report_frame(work)
            with verified(frame, work):
                rows = frame.collect()
        unordered = [TaskReport.from_json(json.loads(row.report)) for row in rows]
        reports = sorted(unordered, key=lambda report: report.partition)
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
            run_group = partial(_run_group, bare, groups, self._import_paths, this_driver())
            return self._spark.range(0, len(groups), 1, len(groups)).mapInArrow(run_group, "report string")
        logs = work.code.load_logs()
        colocated = colocated_frame(self._spark, work, groups, logs)
        if colocated is not None:
            rows, packing = colocated
            run_groups = partial(_run_colocated, bare, groups, packing, self._import_paths, this_driver())
            return rows.mapInArrow(run_groups, "report string")
        rows = shuffle_frame(self._spark, work, groups, logs)
        tasks = {task.partition: task for task in work.tasks}
        return rows.mapInArrow(partial(_run_rows, bare, tasks, self._import_paths, this_driver()), "report string")


def groups_of(tasks: Sequence[TaskWork], slots: int) -> list[list[TaskWork]]:
    """Distribute tasks over n groups: the task with index t goes to group t mod n. n is at most ``slots``."""
    number = max(1, min(slots, len(tasks)))
    return [list(tasks[start::number]) for start in range(number)]


@contextmanager
def verified(frame: DataFrame, work: SubTopologyWork) -> Iterator[None]:
    """Verify the log files that a frame read. The block computes the frame.

    The files are verified when the block ends or raises.

    Raises `StorageError` (74), as the partition-local reader does, if a file differs from the CRC-32 in its name. Files
    without a CRC-32 in their names are not checked. If Spark reads no log of the sub-topology, no file is checked.
    """
    try:
        yield
    except Exception:
        # After a failure, Spark may have stopped, or may not have listed the files. In both cases, the original error is
        # raised.
        with suppress(PySparkException, Py4JError, OSError):
            _check(work, _read_by(frame, work))
        raise
    files = _read_by(frame, work)
    if not files and _has_landed_rows(work):
        raise StorageError(
            "log-files-not-reported",
            "Spark does not report which log files it read, so their checksums cannot be verified. Nothing "
            "was committed. Let tasks open the files (`source: auto` in the target), or land a new "
            "generation",
        )
    _check(work, files)


def _run_group(
    work: SubTopologyWork,
    groups: Sequence[Sequence[TaskWork]],
    import_paths: Iterable[str],
    driver: Driver,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    tasks = (task for batch in batches for group in batch.column(0).to_pylist() for task in groups[group])
    return _reports(import_paths, driver, lambda: run_tasks(work, tasks))


def _run_rows(
    work: SubTopologyWork,
    tasks: Mapping[int, TaskWork],
    import_paths: Iterable[str],
    driver: Driver,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    return _reports(import_paths, driver, lambda: run_shuffle(work, tasks, counted(batches)))


def _run_colocated(
    work: SubTopologyWork,
    groups: Sequence[Sequence[TaskWork]],
    packing: Packing,
    import_paths: Iterable[str],
    driver: Driver,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    return _reports(import_paths, driver, lambda: run_colocated(work, groups, packing, counted(batches)))


def _reports(
    import_paths: Iterable[str],
    driver: Driver,
    run: Callable[[], Iterator[TaskReport]],
) -> Iterator[pa.RecordBatch]:
    return json_rows("report", import_paths, driver, lambda: (report.as_json() for report in run()))


def _read_by(frame: DataFrame, work: SubTopologyWork) -> list[str]:
    """Return the files that a frame read, ordered by name."""
    if not work.tables:
        return []
    # Spark plans a frame once, so these are the files that the computation read.
    return sorted(map(_local_path, frame.inputFiles()))


def _local_path(path: str) -> str:
    """Return the local path of a ``file`` URI; other URIs unchanged."""
    return unquote(path.removeprefix("file://")) if path.startswith(_ESCAPED) else path.removeprefix("file:")


def _check(work: SubTopologyWork, files: Sequence[str]) -> None:
    stated = [path for path in files if named_checksum(path) is not None]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for path, mismatch in zip(stated, pool.map(_mismatch_of, stated), strict=True):
            if mismatch is not None:
                pool.shutdown(wait=False, cancel_futures=True)
                raise unreadable(_topic_of(work, path), path, mismatch) from mismatch


def _mismatch_of(path: str) -> Exception | None:
    try:
        check_bytes(path)
    except UNREADABLE as error:
        return error
    return None


def _topic_of(work: SubTopologyWork, path: str) -> str:
    """Return the topic of a file."""
    within = [topic for topic, table in work.tables.items() if f"{table.location.rstrip('/')}/" in path]
    return (within or list(work.tables))[0]


def _has_landed_rows(work: SubTopologyWork) -> bool:
    """Return whether the sub-topology has rows to read from a log that `land` wrote."""
    return any(
        work.tables[topic].source_offsets is None and log.spans
        for task in work.tasks
        for topic, log in task.logs.items()
        if topic in work.tables
    )
