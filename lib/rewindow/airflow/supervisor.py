"""Run one command and end it when the process that started this one has ended, however that happened.

A script that uses only the standard library: `python supervisor.py COMMAND ...`, the leader of its own process group, whose
standard input is a pipe that its parent keeps open. The kernel closes the pipe when the parent ends, also by SIGKILL.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

STOP_SECONDS = 20
_PR_SET_PDEATHSIG = 1


def run(command: list[str]) -> int:
    """Run a command to its end and return its exit code, as a shell does: 128 plus the signal's number."""
    # A handler and not SIG_IGN, which the command would inherit. Signals to the group are meant for the command.
    signal.signal(signal.SIGTERM, _ignore)
    signal.signal(signal.SIGINT, _ignore)
    try:
        child = subprocess.Popen(  # noqa: S603 - a list, no shell
            command,
            stdin=subprocess.DEVNULL,
            preexec_fn=_end_with_supervisor,  # noqa: PLW1509 - there is no other thread yet
        )
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        return 78
    threading.Thread(target=_end_with_parent, daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing is ever written, so this returns when the parent has ended
    os.killpg(0, signal.SIGTERM)
    time.sleep(STOP_SECONDS)
    os.killpg(0, signal.SIGKILL)


def _end_with_supervisor() -> None:
    """Ask Linux to kill the command if the supervisor is killed. Elsewhere the command then goes on, and the ledger fences it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _ignore(number: int, frame: object) -> None:
    del number, frame


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
