"""Run a command that outlives the worker that started it, so that a retry of the task can find it again.

Airflow's task state store keeps a `Started` value that identifies it. Two such commands at once only waste work, because
the ledger decides which of them commits.
"""

from __future__ import annotations

import json
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
    """A running command: its host, process, and the folder of its output."""

    host: str
    pid: int
    born: float
    """Start time of the process in seconds, because pids are reused."""
    folder: str

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the value of a JSON form."""
        return cls(data["host"], data["pid"], data["born"], data["folder"])


def start(
    command: Sequence[str],
    *,
    env: Mapping[str, str | None] | None = None,
    folder: str | None = None,
    cwd: str | None = None,
) -> Started:
    """Start a command in a new session, in the folder ``cwd`` if it exists.

    ``env`` extends this process's environment; a variable that is None is removed. The folder of the output is created in
    ``folder``. Raises `OSError`, `ValueError` or `subprocess.SubprocessError` if the command cannot be started.
    """
    own = tempfile.mkdtemp(prefix="rewindow-", dir=folder)
    try:
        launched = subprocess.run(  # noqa: S603 - a list of arguments, no shell
            [sys.executable, "-I", supervisor.__file__, own, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=True,
            cwd=cwd if cwd and Path(cwd).is_dir() else None,
            start_new_session=True,
            env={name: value for name, value in {**os.environ, **(env or {})}.items() if value is not None},
        )
        pid = int(launched.stdout)
    except Exception:
        shutil.rmtree(own, ignore_errors=True)  # nobody will know of it
        raise
    try:
        born = psutil.Process(pid).create_time()
    except psutil.Error:  # it has already ended
        born = 0.0
    return Started(socket.gethostname(), pid, born, own)


def state_of(started: Started) -> str:
    """Return `RUNNING`, `ENDED` (the exit code is known), or `GONE` (without an exit code, or on another host)."""
    if exit_code(started) is not None:
        return ENDED
    if not _is_alive(started):
        return ENDED if exit_code(started) is not None else GONE  # it may have ended between the two checks
    return RUNNING


def exit_code(started: Started) -> int | None:
    """Return the exit code, negative for a signal; None if there is none yet."""
    try:
        return int((Path(started.folder) / supervisor.EXIT).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def wait(started: Started, say: Callable[[str], None], *, poll_s: float = 1.0) -> int | None:
    """Wait until the command ends, passing its stderr to ``say`` line by line.

    Return the exit code, or None if the process disappeared without one.
    """
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
    """Return what the command printed to stdout."""
    try:
        return (Path(started.folder) / supervisor.OUT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def result(started: Started) -> dict[str, Any]:
    """Return the JSON that the command printed: its last line that is an object; empty without one."""
    for line in reversed(output(started).splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}


def stop(started: Started) -> None:
    """Terminate the command and its children, and kill them if they do not end in time."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not _is_alive(started):
            return
        with suppress(ProcessLookupError):
            os.killpg(os.getpgid(started.pid), number)
        deadline = time.monotonic() + _STOP_SECONDS
        while _is_alive(started) and time.monotonic() < deadline:
            time.sleep(0.1)


def forget(started: Started) -> None:
    """Remove the folder of a command's output."""
    shutil.rmtree(started.folder, ignore_errors=True)


def _is_alive(started: Started) -> bool:
    if started.host != socket.gethostname():
        return False
    try:
        process = psutil.Process(started.pid)
        return process.create_time() == started.born and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
