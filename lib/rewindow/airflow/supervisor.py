"""Supervise one command: write its output and exit code to files, so that a later process can read them.

A script that uses only the standard library: `python supervisor.py FOLDER COMMAND ...`. It outlives the Airflow worker that
started it. It ignores SIGTERM, which the command receives too, so that it can still write the exit code.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

OUT, LOG, EXIT = "out", "log", "exit"


def supervise(folder: Path, command: list[str]) -> int:
    """Run a command to its end, write its exit code to the folder's file ``exit``, and return it."""
    signal.signal(signal.SIGTERM, _ignore)  # not SIG_IGN, which the command would inherit
    signal.signal(signal.SIGINT, _ignore)
    with (folder / OUT).open("wb") as out, (folder / LOG).open("wb") as log:
        try:
            code = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log)  # noqa: S603 - a list, no shell
        except OSError as error:
            log.write(f"cannot start {command[0]}: {error.strerror}\n".encode())
            code = 78
    unfinished = folder / f"{EXIT}.unfinished"
    unfinished.write_text(str(code), encoding="ascii")
    unfinished.rename(folder / EXIT)
    return code


def _ignore(number: int, frame: object) -> None:
    del number, frame


def launch(folder: Path, command: list[str]) -> int:
    """Supervise a command in a detached process and return its pid."""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        supervise(folder, command)
        os._exit(0)
    return pid


if __name__ == "__main__":
    sys.stdout.write(f"{launch(Path(sys.argv[1]), sys.argv[2:])}\n")
