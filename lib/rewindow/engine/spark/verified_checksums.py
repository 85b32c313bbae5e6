"""What Spark has read for a stage is believed when the bytes of its files are what was written.

Spark knows page checksums and not the CRC-32 that a landed file's name states. The frame that was computed knows which
files it read, those that were pruned left out. They are compared when it is done, so damage that came meanwhile is seen
too; and when it failed, because then damage may be the reason and has the better error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from rewindow.contracts.staged_files import named_checksum
from rewindow.contracts.tasks import SubTopologyWork
from rewindow.engine.worker.checksums import UNREADABLE, check_bytes, unreadable
from rewindow.errors import StorageError

_AT_ONCE = 4
"""How many files are read at once: neither reading nor the checksum holds Python's lock."""

_ESCAPED = "file:///"
"""How a path of this machine begins that Spark has made a URI of. Delta's begin with ``file:/``, and escape nothing."""


@contextmanager
def verified(frame: DataFrame, work: SubTopologyWork) -> Iterator[None]:
    """Compute a stage's frame inside the block. What it read of logs is checked when the block ends, well or not.

    Raises `StorageError` (74) as the partition-local reader does, if a file's name states another CRC-32 than its bytes have.
    A file whose name states none is left to Spark. Without logs that Spark reads there is nothing to check.
    """
    try:
        yield
    except Exception:
        with suppress(PySparkException, Py4JError, OSError):  # Spark may be gone, or never have found the files
            _check(work, _read_by(frame, work))
        raise
    files = _read_by(frame, work)
    if not files and _has_landed_rows(work):
        message = (
            "Spark does not say which files of the logs it has read, so their bytes cannot be checked. Nothing was "
            "committed: let tasks open the files (`source: auto` in the target), or land a new generation"
        )
        raise StorageError(message)
    _check(work, files)


def _read_by(frame: DataFrame, work: SubTopologyWork) -> list[str]:
    """Return the files of a frame, by name: those of the plan that was run. A frame is planned once."""
    if not work.tables:
        return []
    return sorted(map(_plain, frame.inputFiles()))


def _plain(path: str) -> str:
    """Return a path of this machine as it is opened here; another URI as it is."""
    return unquote(path.removeprefix("file://")) if path.startswith(_ESCAPED) else path.removeprefix("file:")


def _check(work: SubTopologyWork, files: Sequence[str]) -> None:
    stated = [path for path in files if named_checksum(path) is not None]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for path, drift in zip(stated, pool.map(_drift_of, stated), strict=True):
            if drift is not None:
                pool.shutdown(wait=False, cancel_futures=True)
                raise unreadable(_topic_of(work, path), path, drift) from drift


def _drift_of(path: str) -> Exception | None:
    try:
        check_bytes(path)
    except UNREADABLE as error:
        return error
    return None


def _topic_of(work: SubTopologyWork, path: str) -> str:
    """Return whose file it is."""
    within = [topic for topic, table in work.tables.items() if f"{table.location.rstrip('/')}/" in path]
    return (within or list(work.tables))[0]


def _has_landed_rows(work: SubTopologyWork) -> bool:
    """Return whether rows were asked of a log that `land` wrote."""
    return any(
        work.tables[topic].source_offsets is None and log.spans
        for task in work.tasks
        for topic, log in task.logs.items()
        if topic in work.tables
    )
