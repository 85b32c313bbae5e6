"""Keeps one command: its output and its exit code go to files, so that whoever comes later can read them.

Run as a script, with the standard library only: `python gc.py FOLDER COMMAND ...`. It outlives the Airflow worker that
started it. It ignores SIGTERM, which the command gets too, so that the exit code is still written.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

OUT, LOG, EXIT = "out", "log", "exit"


def keep(folder: Path, command: list[str]) -> int:
    """Run a command to its end; return its exit code, which stands in the folder's file ``exit`` by then."""
    signal.signal(signal.SIGTERM, _not_now)  # a function: what is ignored would be ignored by the command too
    signal.signal(signal.SIGINT, _not_now)
    with (folder / OUT).open("wb") as out, (folder / LOG).open("wb") as log:
        try:
            code = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log)  # noqa: S603 - a list, no shell
        except OSError as error:
            log.write(f"{command[0]} cannot be started: {error.strerror}\n".encode())
            code = 78
    unfinished = folder / f"{EXIT}.unfinished"
    unfinished.write_text(str(code), encoding="ascii")
    unfinished.rename(folder / EXIT)
    return code


def _not_now(number: int, frame: object) -> None:
    del number, frame


def launch(folder: Path, command: list[str]) -> int:
    """Keep a command in a process that is nobody's child; return its pid."""
    pid = os.fork()
    if pid == 0:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        keep(folder, command)
        os._exit(0)
    return pid


if __name__ == "__main__":
    sys.stdout.write(f"{launch(Path(sys.argv[1]), sys.argv[2:])}\n")
