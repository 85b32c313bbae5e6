"""Whether another attempt still lives. Thrift only: taking over is always safe, it just wastes the other's work.

On this host the process table says so at once, so a run that was killed is taken over by the next call. Of another host
only the heartbeat is seen: a file that its process touches every few seconds.
"""

from __future__ import annotations

import os
import platform
import socket
import threading
import time
from importlib import metadata
from pathlib import Path
from types import TracebackType
from uuid import uuid4

import psutil

from rewindow.plan.spec import Attempt

BEAT_SECONDS = 5
SILENT_SECONDS = 60
"""An attempt of another host that has been silent for so long is taken for dead."""


def this_attempt() -> Attempt:
    """Return a new attempt of this process."""
    process = psutil.Process()
    versions = {name: metadata.version(name) for name in ("rewindow", "pyspark", "delta-spark", "deltalake", "pyarrow")}
    return Attempt(
        id=uuid4().hex,
        host=socket.gethostname(),
        pid=process.pid,
        pid_started=round(process.create_time() * 1000),
        versions={**versions, "python": platform.python_version()},
    )


class Heartbeat:
    """Touches the attempt's file below the warehouse while the ``with`` block lasts."""

    def __init__(self, warehouse: str, attempt: Attempt) -> None:
        self._file = _heartbeat_file(warehouse, attempt.id)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        """Start beating."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.touch()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop beating; the file goes."""
        self._stop.set()
        self._thread.join()
        self._file.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            os.utime(self._file)


def is_alive(warehouse: str, attempt: Attempt) -> bool:
    """Return whether an attempt's process lives, as far as can be known from here."""
    if attempt.host == socket.gethostname():
        try:
            started = psutil.Process(attempt.pid).create_time()
        except psutil.NoSuchProcess:
            return False
        return round(started * 1000) == attempt.pid_started
    try:
        silent = time.time() - _heartbeat_file(warehouse, attempt.id).stat().st_mtime
    except FileNotFoundError:
        return False
    return silent < SILENT_SECONDS


def _heartbeat_file(warehouse: str, attempt: str) -> Path:
    return Path(warehouse) / "rewindow" / "heartbeats" / attempt
