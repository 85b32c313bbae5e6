"""Verify the checksums of the files that Spark read for a sub-topology.

Spark verifies page checksums, but not the CRC-32 in the name of a landed file. The computed frame knows which files it
read, without pruned ones. They are verified after the computation, which also detects concurrent corruption; and after a
failure, because corruption may be its cause and has the better error message.
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
"""How many files to read concurrently. Neither reading nor the checksum holds the GIL."""

_ESCAPED = "file:///"
"""The prefix of local paths that Spark converted to URIs. Delta's paths start with ``file:/`` and are not escaped."""


@contextmanager
def verified(frame: DataFrame, work: SubTopologyWork) -> Iterator[None]:
    """Verify the log files that a frame read, when the block that computes it ends or raises.

    Raises `StorageError` (74), as the partition-local reader does, if a file differs from the CRC-32 in its name. Files
    without one are not checked, nor are sub-topologies without logs that Spark reads.
    """
    try:
        yield
    except Exception:
        with suppress(PySparkException, Py4JError, OSError):  # Spark may have ended, or never have listed the files
            _check(work, _read_by(frame, work))
        raise
    files = _read_by(frame, work)
    if not files and _has_landed_rows(work):
        message = (
            "Spark does not report which log files it read, so their checksums cannot be verified. Nothing was "
            "committed. Let tasks open the files (`source: auto` in the target), or land a new generation"
        )
        raise StorageError(message)
    _check(work, files)


def _read_by(frame: DataFrame, work: SubTopologyWork) -> list[str]:
    """Return the files that a frame read, ordered by name. Spark plans a frame once, so they are those of the run."""
    if not work.tables:
        return []
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
    """Return whether any log that `land` wrote has rows to read."""
    return any(
        work.tables[topic].source_offsets is None and log.spans
        for task in work.tasks
        for topic, log in task.logs.items()
        if topic in work.tables
    )
