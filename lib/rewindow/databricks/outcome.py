"""Map the outcome of a job run to one of rewindow's exit codes.

The wheel task fails with a line that contains the exit code (`ended`). Databricks keeps that line as the task's error, so
the exit code survives the way through the platform.
"""

from __future__ import annotations

import re
from typing import Final

ACTIVE: Final = frozenset(["BLOCKED", "PENDING", "QUEUED", "RUNNING", "TERMINATING", "WAITING", "WAITING_FOR_RETRY"])
"""Life cycle states in which a run has not ended."""

UNKNOWN_CODE: Final = 74
"""The code of a run that failed for an unknown reason. It asks for a retry, which is always safe."""

_CODES: Final = {
    "SUCCESS": 0,
    "SUCCESS_WITH_FAILURES": UNKNOWN_CODE,  # a failed task never counts as done
    "CANCELED": 143,
    "UPSTREAM_CANCELED": 143,
    "TIMEDOUT": 75,
    "MAXIMUM_CONCURRENT_RUNS_REACHED": 75,
    "SKIPPED": 75,
    "DISABLED": 78,
}
_ENDED = re.compile(r"rewindow ended with (\d{1,3}):")


def ended(code: int, message: str) -> str:
    """Return the line that a task fails with, in which `exit_code` finds the code."""
    return f"rewindow ended with {code}: {message}"


def is_active(life_cycle: str) -> bool:
    """Return whether a run in this state has not ended."""
    return life_cycle in ACTIVE


def exit_code(life_cycle: str, result: str | None, error: str | None = None) -> int:
    """Return the exit code of a run that has ended. ``error`` is the error of its first failed task."""
    word = result or life_cycle
    if word in {"FAILED", "UPSTREAM_FAILED", "INTERNAL_ERROR", "SUCCESS_WITH_FAILURES"}:
        match = _ENDED.search(error or "")
        return int(match[1]) if match and int(match[1]) else UNKNOWN_CODE
    return _CODES.get(word, UNKNOWN_CODE)
