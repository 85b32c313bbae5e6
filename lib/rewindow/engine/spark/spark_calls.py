"""What every Spark job needs, in the driver and in the workers: settings, progress, and errors of one line.

A platform may forbid some settings. Errors state the fix, without Java's stack traces.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rewindow.engine.spark.session import status_tracker
from rewindow.engine.worker.worker_errors import find_marked, mark, translate_text
from rewindow.errors import LimitError, RewindowError
from rewindow.storage.locations import adopt, known
from rewindow.storage.progress import heartbeat_of_this, work_for

_ZONE = "spark.sql.session.timeZone"
_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ADAPTIVE = "spark.sql.adaptive.enabled"
_UNION = "spark.sql.unionOutputPartitioning"
"""A setting of Spark. With it, a union of frames of one partition each has one partition, and so needs a single Spark task."""
_ROWS = 2_048
"""The most rows per batch that Spark hands to a worker. A row is a record or a piece of a pack."""
_NO_LIMIT = 2**31 - 1
"""A limit of bytes that stands for no limit. With this value, Spark does not measure the bytes."""
_SECONDS = 0.5


@contextmanager
def in_utc(spark: SparkSession) -> Iterator[None]:
    """Let Spark read times without a zone as UTC in the block. Expressions apply the time zone of the feed."""
    with _set(spark, _ZONE, "UTC"):
        yield


@contextmanager
def planned_once(spark: SparkSession) -> Iterator[None]:
    """Switch adaptive execution off in the block, so that Spark plans each statement once.

    Adaptive execution runs every stage as a separate Spark job, including the stages of Delta's own queries.
    """
    with ExitStack() as settings:
        # Databricks serverless forbids this setting.
        with suppress(PySparkException):
            settings.enter_context(_set(spark, _ADAPTIVE, "false"))
        yield


@contextmanager
def for_packs(spark: SparkSession, *, has_files: bool = False) -> Iterator[None]:
    """Limit the batches for workers by rows. Limit them by bytes as well only if rows contain whole files (``has_files``).

    With a limit of bytes, Spark measures each row, which takes longer than transferring the row. For large records, lower
    ``spark.sql.execution.arrow.maxRecordsPerBatch`` in the target.
    """
    most = 64 << 20 if has_files else _NO_LIMIT
    with in_utc(spark), ExitStack() as settings:
        wishes = {_BATCH_ROWS: _batch_rows(spark), _BATCH_BYTES: most, _UNION: "false"}
        for name, value in wishes.items():
            # Databricks serverless forbids reading or setting some of these settings.
            with suppress(PySparkException):
                settings.enter_context(_set(spark, name, str(value)))
        yield


@contextmanager
def following(spark: SparkSession, say: Callable[[float], None] | None) -> Iterator[None]:
    """Call ``say`` with the share of finished tasks (0 to 1) during the block."""
    if say is None:
        yield
        return
    tracker = status_tracker(spark)
    if tracker is None:
        with _following_server(spark, say):
            yield
        return
    done = threading.Event()

    def poll() -> None:
        while not done.wait(_SECONDS):
            try:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except Py4JError:
                # The session is stopping. The run itself reports this.
                return
            tasks = sum(stage.numTasks for stage in stages if stage)
            if tasks:
                say(sum(stage.numCompletedTasks for stage in stages if stage) / tasks)

    thread = threading.Thread(target=poll, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _following_server(spark: SparkSession, say: Callable[[float], None]) -> Iterator[None]:
    """Call ``say`` as `following` does. A Spark Connect server reports its progress by itself."""

    def on_progress(stages: Iterable[Any] | None, **_: object) -> None:
        stages = list(stages or ())
        tasks = sum(stage.num_tasks for stage in stages)
        if tasks:
            say(sum(stage.num_completed_tasks for stage in stages) / tasks)

    # Spark accepts any callable, but the annotation of its parameter requires a subclass.
    spark.registerProgressHandler(on_progress)  # type: ignore[arg-type]
    try:
        yield
    finally:
        spark.removeProgressHandler(on_progress)  # type: ignore[arg-type]


@contextmanager
def mapped() -> Iterator[None]:
    """Translate Spark's exceptions in the block into a `RewindowError` with a one-line message."""
    try:
        yield
    except (PySparkException, Py4JError, ConnectionRefusedError, ConnectionResetError) as error:
        raise translate(error) from error


def translate(error: BaseException) -> RewindowError:
    """Return the `RewindowError` for an exception of Spark. Returns a `RewindowError` unchanged."""
    if isinstance(error, RewindowError):
        return error
    text = str(error)
    is_lost = isinstance(error, (Py4JNetworkError, ConnectionError))
    if is_lost and find_marked(text) is None:
        return LimitError(
            "spark-jvm-ended",
            "Spark's JVM has ended (killed, or out of memory): run again, and give the target more "
            "memory if it happens twice (spark: {{spark.driver.memory: 4g}})",
        )
    return translate_text(text)


def _batch_rows(spark: SparkSession) -> int:
    with suppress(PySparkException):
        return min(int(spark.conf.get(_BATCH_ROWS, None) or _ROWS), _ROWS)
    return _ROWS


@contextmanager
def _set(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


class Driver(NamedTuple):
    """The data of the command's process that a worker needs: the settings of buckets, and the attempt's heartbeat file."""

    buckets: Mapping[str, Mapping[str, str]]
    heartbeat: str | None


def this_driver() -> Driver:
    """Return the data that the workers of this process need to know of it."""
    return Driver(known(), heartbeat_of_this())


def json_rows(
    column: str,
    import_paths: Iterable[str],
    driver: Driver,
    work: Callable[[], Iterable[Mapping[str, Any]]],
) -> Iterator[pa.RecordBatch]:
    """Call ``work`` in a worker. Yield each mapping that it returns as a row with JSON text, in the column ``column``.

    The project's modules are in ``import_paths``.
    """
    adopt(driver.buckets)
    work_for(driver.heartbeat)
    sys.path[:0] = [path for path in import_paths if path not in sys.path]
    try:
        for row in work():
            yield pa.RecordBatch.from_arrays([pa.array([json.dumps(row)])], names=[column])
    except RewindowError as error:
        # The JVM passes only the text of an error to the driver. The text contains a mark, from which the driver decodes the
        # error.
        raise RuntimeError(mark(error)) from error


_NAMED = "table:"


def named(table: str) -> str:
    """Return the location of a catalog's table, given its name quoted for SQL."""
    return _NAMED + table


def shown(location: str) -> str:
    """Return a location as messages show it."""
    return location.removeprefix(_NAMED)


def open_delta(spark: SparkSession, location: str, version: int | None = None) -> DataFrame:
    """Return the rows of a table, at a version or (None) the newest. ``location`` is a path or a result of `named`."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.table(location.removeprefix(_NAMED)) if location.startswith(_NAMED) else reader.load(location)
