"""Run one command, and stop it when the process that started this script has ended for any reason, including SIGKILL.

This script uses only the standard library: `python supervisor.py COMMAND ...`. It is the leader of its own process group. Its
standard input is a pipe that the parent keeps open. When the parent ends, the kernel closes the pipe, and the script's read of
the pipe returns.
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
    """Run a command to its end and return its exit code: after a signal, 128 plus the signal's number, as in a shell."""
    # Signals to the group are meant for the command, so this process ignores them with a handler. The command would inherit
    # SIG_IGN, but does not inherit a handler.
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
    """Make Linux kill the command if this script is killed.

    On other systems the command continues, and the ledger fences it.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _ignore(number: int, frame: object) -> None:
    del number, frame


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
