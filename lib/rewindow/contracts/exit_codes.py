"""Exit codes, and what a scheduler does after each of them (docs/reference/exit-codes.md)."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

DIFFERENT = 1
LIMIT = 71
ON_HOLD = 79


class Next(Enum):
    """The next step of a scheduler after a command has ended."""

    DONE = "done"
    RETRY = "retry"
    RETRY_ONCE = "retry once"
    FAIL = "fail at once"


_STOPS = {
    1: "a comparison found a difference, `status` found something wrong, or `why` found no such row",
    2: "the command line is invalid",
    65: "a record or a user function failed, rows of a source table were changed, or a run does not meet an expectation",
    66: "a source is missing or has changed since it was landed",
    70: "an invariant of the ledger or of determinism is broken",
    76: "the topology, configuration or a store's schema is incompatible with the checkpoint",
    77: "access was denied",
    78: "the configuration or the machine is not usable",
    79: "a run is committed and on hold: its rows are not published until somebody accepts it",
}
_RETRIES = {
    74: "a read or write failed",
    75: "another attempt is live, or an earlier landing is missing",
    129: "the terminal of the command was closed",
    130: "the command was interrupted",
    134: "native code aborted the command, usually for lack of memory",
    137: "the command was killed",
    143: "the command was terminated",
}
CODES = (0, *sorted({*_STOPS, *_RETRIES, LIMIT}))
"""Every exit code that a command has by design, also when a signal ends it."""


def what_next(code: int | None, *, limits_before: int = 0, accepts: Collection[int] = ()) -> Next:
    """Return what to do after an exit code. ``code`` is negative for a signal, None if unknown.

    ``limits_before``: how many earlier tries of the task ended with 71 (Airflow tasks pass 1 for any retry). ``accepts``:
    non-zero codes that count as success, such as 1 of `diff`.
    """
    if code == 0 or code in accepts:
        return Next.DONE
    if code in _STOPS:
        return Next.FAIL
    if code == LIMIT:
        return Next.FAIL if limits_before else Next.RETRY_ONCE
    return Next.RETRY  # a signal or an unknown code: a retry is always safe


def meaning(code: int | None) -> str:
    """Return an exit code in words."""
    if code is None:
        return "the command's process has disappeared, and its exit code is unknown"
    shell_code = 128 - code if code < 0 else code
    if shell_code == LIMIT:
        return "exit code 71: a limit of memory, disk or a buffer was exceeded"
    known = _STOPS.get(shell_code) or _RETRIES.get(shell_code) or "the outcome is unknown; a retry is safe"
    return f"exit code {shell_code}: {known}"
