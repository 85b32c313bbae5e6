"""Run a command as a child of this process. The command never outlives this process.

No state of the command is stored, neither in files nor in Airflow. A retry starts the command again, and the ledger decides
what is left to do. If the process of an unfinished run has ended, the new command takes the run over. If that process is alive,
the new command exits with 75.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

from rewindow.airflow import supervisor
from rewindow.errors import visible_lines, without_secrets


class Command:
    """A running command in a separate process group. It ends with the ``with`` block at the latest.

    ``env`` extends this process's environment. If a value is None, the variable is removed. ``cwd`` is the command's working
    folder, if it exists. The output goes to temporary files without names in ``folder``. Raises `OSError` if no process can be
    started.
    """

    def __init__(
        self,
        line: Sequence[str],
        *,
        env: Mapping[str, str | None] | None = None,
        folder: str | None = None,
        cwd: str | None = None,
    ) -> None:
        self._out, self._log = (tempfile.TemporaryFile(dir=folder, buffering=0) for _ in range(2))  # noqa: SIM115 - `_close`
        try:
            self._child = subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
                [sys.executable, "-I", supervisor.__file__, *line],
                stdin=subprocess.PIPE,  # tells the supervisor when this process has ended
                stdout=self._out,
                stderr=self._log,
                cwd=cwd if cwd and Path(cwd).is_dir() else None,
                start_new_session=True,
                env={name: value for name, value in {**os.environ, **(env or {})}.items() if value is not None},
            )
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        """Return the command."""
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the command and the remaining processes of its group."""
        self.stop()
        # As long as the leader of the group is not reaped, no other group can have the same number.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGTERM)
        self._child.communicate()
        self._close()

    def wait(self, say: Callable[[str], None], *, poll_s: float = 1.0) -> int:
        """Wait until the command ends, passing its stderr to ``say`` line by line, and return its exit code."""
        length, rest = 0, b""
        while True:
            code = self._code()
            more = _content(self._log, length)
            length += len(more)
            *lines, rest = (rest + more).split(b"\n")
            for line in lines:
                say(_shown(line))
            if code is not None:
                if rest:
                    say(_shown(rest))
                return code
            time.sleep(poll_s)

    def result(self) -> dict[str, Any]:
        """Return the last JSON object that is a line of the output; an empty mapping if there is none."""
        for line in reversed(_content(self._out).decode(errors="replace").splitlines()):
            try:
                printed = json.loads(line)
            except ValueError:
                continue
            if isinstance(printed, dict):
                return printed
        return {}

    def stop(self) -> None:
        """Terminate the command and its group. If they do not end in time, kill them."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._code() is not None:
                return
            os.killpg(self._child.pid, number)
            deadline = time.monotonic() + supervisor.STOP_SECONDS
            while self._code() is None and time.monotonic() < deadline:
                time.sleep(0.1)

    def _code(self) -> int | None:
        """Return the exit code; negative for a signal; None while the command runs."""
        if self._child.returncode is not None:
            return self._child.returncode
        # With WNOWAIT, the process is not reaped yet, because a signal handler may interrupt this method.
        ended = os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def _close(self) -> None:
        for file in (self._out, self._log):
            file.close()


def _shown(line: bytes) -> str:
    """Return a line of the command in a form that is safe in Airflow's log. The job's code can print anything."""
    return visible_lines(without_secrets(line.decode(errors="replace").rstrip()))


def _content(file: IO[bytes], start: int = 0) -> bytes:
    """Return a file's content from ``start`` on, without moving the position at which the command writes."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size - start, start)
