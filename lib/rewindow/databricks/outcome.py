"""How a job run ended, as one of rewindow's exit codes.

The wheel task ends a failed command with a line that says its code (`ended`), and Databricks keeps that line as the
task's error: so a data error stays a data error on its way through the platform.
"""

from __future__ import annotations

import re
from typing import Final

ACTIVE: Final = frozenset(["BLOCKED", "PENDING", "QUEUED", "RUNNING", "TERMINATING", "WAITING", "WAITING_FOR_RETRY"])
"""Life cycle states in which a run has not ended."""

UNKNOWN_CODE: Final = 74
"""Of a run that failed and does not say how: a retry is safe, so one is asked for."""

_CODES: Final = {
    "SUCCESS": 0,
    "SUCCESS_WITH_FAILURES": UNKNOWN_CODE,  # a failed task of ours never counts as done
    "CANCELED": 143,
    "UPSTREAM_CANCELED": 143,
    "TIMEDOUT": 75,
    "MAXIMUM_CONCURRENT_RUNS_REACHED": 75,
    "SKIPPED": 75,
    "DISABLED": 78,
}
_ENDED = re.compile(r"rewindow ended with (\d{1,3}):")


def ended(code: int, message: str) -> str:
    """Return the line that a task ends with, from which `exit_code` reads the code again."""
    return f"rewindow ended with {code}: {message}"


def is_active(life_cycle: str) -> bool:
    """Return whether a run in this state will still change by itself."""
    return life_cycle in ACTIVE


def exit_code(life_cycle: str, result: str | None, error: str | None = None) -> int:
    """Return the exit code of a run that has ended. ``error``: what its first failed task said."""
    word = result or life_cycle
    if word in {"FAILED", "UPSTREAM_FAILED", "INTERNAL_ERROR", "SUCCESS_WITH_FAILURES"}:
        said = _ENDED.search(error or "")
        return int(said[1]) if said and int(said[1]) else UNKNOWN_CODE
    return _CODES.get(word, UNKNOWN_CODE)
