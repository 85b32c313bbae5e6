"""What went wrong, in the words of a `RewindowError`, whatever was raised: for people, logs, notebooks and telemetry."""

from __future__ import annotations

from typing import NamedTuple

from rewindow.errors import ConfigError, InvariantError, LimitError, RewindowError, StoppedError, failed_io


class Failure(NamedTuple):
    """Why a command failed: a message with the fix, the exit code, and the name of the error's class."""

    message: str
    exit_code: int
    kind: str

    @property
    def was_interrupted(self) -> bool:
        """Whether a person stopped the command."""
        return self.exit_code == StoppedError.exit_code


def failure_of(error: BaseException) -> Failure:
    """Return what to say of an error. An unknown one is a bug of rewindow (70)."""
    known = as_rewindow_error(error)
    return Failure(str(known), known.exit_code, type(error).__name__)


def as_rewindow_error(error: BaseException, *, debug: str = "run with --debug") -> RewindowError:
    """Return the error that a user sees, whose class decides the exit code. A `RewindowError` is returned as it is.

    ``debug``: how to get the stack trace of a bug.
    """
    if isinstance(error, RewindowError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return StoppedError("CODE", "interrupted. Nothing was committed: run the command again")
    if isinstance(error, MemoryError):
        return LimitError(
            "CODE",
            "out of memory ({error}): give the process more, then run the command again, which "
            "finishes what this one began. A run takes less with `limits: {{store_memory: ..}}` in "
            "the job's file, a landing with `landing: {{memory: ..}}` in the feed's",
            error=error,
        )
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return failed_io(
            error,
            "CODE",
            "{reason}{where}. Check that the warehouse in conf/targets exists, is writable and has space",
            reason=error.strerror or error,
            where=where,
        )
    if isinstance(error, SystemExit):
        return ConfigError(
            "CODE", "the job's code ended the process (SystemExit: {error}): remove the call of exit()", error=error
        )
    first = (str(error).strip().splitlines() or [""])[0]
    return InvariantError(
        "CODE",
        "{__name__}: {first}. This is a bug in rewindow: {debug} and report it",
        __name__=type(error).__name__,
        first=first,
        debug=debug,
    )
