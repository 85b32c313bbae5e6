"""Decide whether another attempt is alive. This only avoids wasted work, because a takeover is always safe.

On this host, the process table shows at once whether the attempt's process exists, so the next call takes over a killed run. On
any host, the attempt's heartbeat shows whether the attempt makes progress. The heartbeat is a file that the process touches
every few seconds. The process stops touching it when nothing has progressed for a configured time (`storage.progress`). Then
another attempt takes over. If the first attempt wakes up, the ledger refuses its commit.
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
from rewindow.storage.locations import check_inside, is_uri
from rewindow.storage.progress import BEAT_SECONDS, execute_for, modified_s, remove, remove_older, seconds_since, touch

SILENT_SECONDS = 60
"""An attempt whose last heartbeat is older than this counts as dead."""
STALLED_MS = 1_800_000
"""After this time without progress, an attempt stops its heartbeat, unless `storage.progress` says otherwise."""

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
    """The heartbeat of an attempt. Within the ``with`` block, a file below the warehouse is touched while there is progress."""

    def __init__(self, warehouse: str, attempt: Attempt, stalled_ms: int = STALLED_MS) -> None:
        """``stalled_ms``: after this time without any progress, the file is no longer touched."""
        self._id, self._stalled_s = attempt.id, stalled_ms / 1000
        self._file = _heartbeat_file(warehouse, attempt.id)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        """Start beating."""
        touch(self._file)
        execute_for(self._file)
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
        execute_for(None)
        remove(self._file)

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            # A missed heartbeat is harmless. At worst, another process takes over too early.
            with suppress(OSError):
                if seconds_since() < self._stalled_s:
                    touch(self._file)


def is_alive(warehouse: str, attempt: Attempt) -> bool:
    """Return whether an attempt's process may still be alive and make progress."""
    is_here = attempt.host == socket.gethostname()
    if is_here and not _exists(attempt):
        return False
    last = modified_s(_heartbeat_file(warehouse, attempt.id))
    return is_here if last is None else time.time() - last < SILENT_SECONDS


def _exists(attempt: Attempt) -> bool:
    """Return whether the process of an attempt on this host exists and still executes the attempt."""
    try:
        process = psutil.Process(attempt.pid)
        if attempt.pid == os.getpid() and _started(process) == attempt.pid_started:
            return attempt.id in _BEATING
        # A zombie counts as dead, because in a container its parent may never reap it.
        return process.status() != psutil.STATUS_ZOMBIE and _started(process) == attempt.pid_started
    except psutil.NoSuchProcess:
        return False


def was_killed(warehouse: str, attempt: Attempt) -> bool:
    """Return whether an attempt left its heartbeat file behind: its process was killed or hangs, or its host is gone."""
    return modified_s(_heartbeat_file(warehouse, attempt.id)) is not None and not is_alive(warehouse, attempt)


def remove_abandoned(warehouse: str, keep_ms: int) -> None:
    """Remove the heartbeat files of processes that were killed more than ``keep_ms`` ago, but at least a week ago.

    Nothing else removes these files. As long as such a file exists, commands report that the process of the unfinished run was
    killed.
    """
    remove_older(_folder(warehouse), time.time() - max(keep_ms / 1000, _WEEK_SECONDS))


@cache
def _version(name: str) -> str:
    """Return the installed version of a package."""
    # Platforms may provide Spark and Delta under other package names, so the package may not be found.
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "the platform's"


def _started(process: psutil.Process) -> int:
    return round(process.create_time() * 1000)


def _heartbeat_file(warehouse: str, attempt: str) -> str:
    return f"{_folder(warehouse)}/{attempt}"


def _folder(warehouse: str) -> str:
    folder = f"{warehouse.rstrip('/')}/rewindow/heartbeats"
    # `remove_abandoned` removes every old file in the folder.
    if not is_uri(warehouse):
        check_inside(warehouse, [folder])
    return folder
