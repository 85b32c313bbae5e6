"""What a scheduler does after each exit code (README, "Exit codes")."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

DIFFERENT = 1
LIMIT = 71


class Next(Enum):
    """What to do when a command has ended."""

    DONE = "done"
    RETRY = "retry"
    RETRY_ONCE = "retry once"
    FAIL = "fail at once"


_STOPS = {
    1: "a comparison found a difference",
    2: "the command was not understood",
    65: "a record or a function failed",
    66: "a source is gone, or no longer what was landed",
    70: "an invariant of the ledger or of determinism is broken",
    76: "topology, configuration or a store's schema do not fit the checkpoint",
    77: "access was refused",
    78: "the configuration or the machine is not usable as it stands",
}
_RETRIES = {
    74: "reading or writing failed",
    75: "another attempt is live, or an earlier landing is missing",
    130: "it was interrupted",
    137: "it was killed",
    143: "it was told to stop",
}


def what_next(code: int | None, *, limits_before: int = 0, accepts: Collection[int] = ()) -> Next:
    """Return what to do after an exit code, as the operating system gives it (negative: a signal); None: nobody knows it.

    ``limits_before`` says how often this task has ended with 71. ``accepts``: codes that are results here, such as
    the 1 of `diff`.
    """
    if code == 0 or code in accepts:
        return Next.DONE
    if code in _STOPS:
        return Next.FAIL
    if code == LIMIT:
        return Next.FAIL if limits_before else Next.RETRY_ONCE
    return Next.RETRY  # a signal, or what nobody knows: a retry is always safe


def meaning(code: int | None) -> str:
    """Return an exit code in words."""
    if code is None:
        return "its process is gone, and nobody knows how it ended"
    plain = 128 - code if code < 0 else code
    if plain == LIMIT:
        return "exit code 71: a limit of memory, disk or a buffer was passed"
    known = _STOPS.get(plain) or _RETRIES.get(plain) or "its outcome is unknown; a retry is safe"
    return f"exit code {plain}: {known}"
