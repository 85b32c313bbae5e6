"""A command that outlives the worker which started it, and can be found again by a retry of the task.

What is known of it is plain data (`Started`): Airflow's task state store keeps it. Two of them at once do no harm, they
waste one's work: the ledger decides, not this.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import psutil

from rewindow.airflow import supervisor

RUNNING, ENDED, GONE = "running", "ended", "gone"
_STOP_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Started:
    """Where a command runs, and the folder that has its output: what a later worker needs to find it again."""

    host: str
    pid: int
    born: float
    """When the process began, in seconds: a pid alone is used again."""
    folder: str

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary that `json` can write."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild what `as_json` made."""
        return cls(data["host"], data["pid"], data["born"], data["folder"])


def start(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, folder: str | None = None, cwd: str | None = None
) -> Started:
    """Start a command in a session of its own, in the folder ``cwd`` if it is there.

    ``env`` is added to this process's; ``folder`` is where the folder of its output is made.
    """
    own = tempfile.mkdtemp(prefix="rewindow-", dir=folder)
    launched = subprocess.run(  # noqa: S603 - a list of arguments, no shell
        [sys.executable, "-I", supervisor.__file__, own, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
        cwd=cwd if cwd and Path(cwd).is_dir() else None,
        start_new_session=True,
        env={**os.environ, **(env or {})},
    )
    pid = int(launched.stdout)
    try:
        born = psutil.Process(pid).create_time()
    except psutil.Error:  # it has ended already
        born = 0.0
    return Started(socket.gethostname(), pid, born, own)


def state_of(started: Started) -> str:
    """Return whether a command is running, has ended with a known code, or is gone without one (also: to another host)."""
    if exit_code(started) is not None:
        return ENDED
    if not _is_alive(started):
        return ENDED if exit_code(started) is not None else GONE  # it may have ended between the two looks
    return RUNNING


def exit_code(started: Started) -> int | None:
    """Return the exit code, negative for a signal; None while there is none."""
    try:
        return int((Path(started.folder) / supervisor.EXIT).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def wait(started: Started, say: Callable[[str], None], *, poll_s: float = 1.0) -> int | None:
    """Wait for the end; what the command says on stderr goes on line by line. None: it is gone and left no exit code."""
    log, seen, rest = Path(started.folder) / supervisor.LOG, 0, b""
    while True:
        state = state_of(started)
        with suppress(OSError), log.open("rb") as file:
            file.seek(seen)
            more = file.read()
            seen += len(more)
            *lines, rest = (rest + more).split(b"\n")
            for line in lines:
                say(line.decode(errors="replace").rstrip())
        if state != RUNNING:
            if rest:
                say(rest.decode(errors="replace"))
            return exit_code(started)
        time.sleep(poll_s)


def output(started: Started) -> str:
    """Return what the command printed."""
    try:
        return (Path(started.folder) / supervisor.OUT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def stop(started: Started) -> None:
    """End the command and all that it started: first asked, after a while killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not _is_alive(started):
            return
        with suppress(ProcessLookupError):
            os.killpg(os.getpgid(started.pid), number)
        deadline = time.monotonic() + _STOP_SECONDS
        while _is_alive(started) and time.monotonic() < deadline:
            time.sleep(0.1)


def forget(started: Started) -> None:
    """Remove its folder."""
    shutil.rmtree(started.folder, ignore_errors=True)


def _is_alive(started: Started) -> bool:
    if started.host != socket.gethostname():
        return False
    try:
        process = psutil.Process(started.pid)
        return process.create_time() == started.born and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
