"""Decide whether another attempt is alive. This only avoids wasted work: a takeover is always safe.

On this host, the process table shows at once whether the attempt's process exists, so the next call takes over a killed run. On
another host, only the attempt's heartbeat shows it: a file that the process touches every few seconds.
"""

from __future__ import annotations

import os
import platform
import socket
import threading
import time
from contextlib import suppress
from functools import cache
from importlib import metadata
from types import TracebackType
from typing import Self
from uuid import uuid4

import psutil

from rewindow.control.plan.spec import Attempt
from rewindow.storage.atomic_files import modified_s, remove, remove_older, touch

BEAT_SECONDS = 5
SILENT_SECONDS = 60
"""An attempt on another host without a heartbeat for this long counts as dead."""

_WEEK_SECONDS = 7 * 24 * 3600

_BEATING: set[str] = set()
"""The ids of the active attempts of this process. A process may outlive its attempts, as in a notebook."""


def this_attempt() -> Attempt:
    """Return a new attempt of this process."""
    process = psutil.Process()
    versions = {name: _version(name) for name in ("rewindow", "pyspark", "delta-spark", "deltalake", "pyarrow")}
    return Attempt(
        id=uuid4().hex,
        host=socket.gethostname(),
        pid=process.pid,
        pid_started=_started(process),
        versions={**versions, "python": platform.python_version()},
    )


class Heartbeat:
    """Touches the attempt's file below the warehouse while the ``with`` block lasts."""

    def __init__(self, warehouse: str, attempt: Attempt) -> None:
        self._id = attempt.id
        self._file = _heartbeat_file(warehouse, attempt.id)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        """Start beating."""
        touch(self._file)
        _BEATING.add(self._id)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop beating and remove the file."""
        _BEATING.discard(self._id)
        self._stop.set()
        self._thread.join()
        remove(self._file)

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            # A failed beat is harmless: another host may only take over too early.
            with suppress(OSError):
                touch(self._file)


def is_alive(warehouse: str, attempt: Attempt) -> bool:
    """Return whether an attempt's process may still be alive."""
    if attempt.host == socket.gethostname():
        try:
            process = psutil.Process(attempt.pid)
            if attempt.pid == os.getpid() and _started(process) == attempt.pid_started:
                return attempt.id in _BEATING
            # A zombie counts as dead, because in a container its parent may never reap it.
            return process.status() != psutil.STATUS_ZOMBIE and _started(process) == attempt.pid_started
        except psutil.NoSuchProcess:
            return False
    last = modified_s(_heartbeat_file(warehouse, attempt.id))
    return last is not None and time.time() - last < SILENT_SECONDS


def was_killed(warehouse: str, attempt: Attempt) -> bool:
    """Return whether an attempt ended without removing its heartbeat: its process was killed, or its host is gone."""
    return modified_s(_heartbeat_file(warehouse, attempt.id)) is not None and not is_alive(warehouse, attempt)


def remove_abandoned(warehouse: str, keep_ms: int) -> None:
    """Remove the heartbeats of processes that were killed longer ago than ``keep_ms``, and at least a week.

    Nothing else removes these files. As long as one exists, commands report that the process of its unfinished run was killed.
    """
    remove_older(_folder(warehouse), time.time() - max(keep_ms / 1000, _WEEK_SECONDS))


@cache
def _version(name: str) -> str:
    """Return the installed version of a package."""
    # Platforms provide Spark and Delta under other names, so the package may not be found.
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "the platform's"


def _started(process: psutil.Process) -> int:
    return round(process.create_time() * 1000)


def _heartbeat_file(warehouse: str, attempt: str) -> str:
    return f"{_folder(warehouse)}/{attempt}"


def _folder(warehouse: str) -> str:
    return f"{warehouse.rstrip('/')}/rewindow/heartbeats"
