"""Translate any exception into a `RewindowError`, for people, logs, notebooks and telemetry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rewindow.errors import (
    OF_PROCESS,
    ConfigError,
    InvariantError,
    LimitError,
    RewindowError,
    StoppedError,
    failed_io,
    not_utf8,
    one_line,
    os_error,
)


class Failure(NamedTuple):
    """The failure of a command: message with advice, exit code, name of the error's class, code of the error, and facts."""

    message: str
    exit_code: int
    kind: str
    code: str
    facts: Mapping[str, object]

    @property
    def was_interrupted(self) -> bool:
        """Whether a person stopped the command."""
        return self.exit_code == StoppedError.exit_code


def failure_of(error: BaseException) -> Failure:
    """Return why a command failed with an error. An error of an unknown class is a bug of rewindow (70)."""
    shown = as_rewindow_error(error)
    return Failure(str(shown), shown.exit_code, type(error).__name__, shown.code, shown.facts)


def as_rewindow_error(error: BaseException, *, debug: str = "run with --debug") -> RewindowError:
    """Return the error that a user sees. Its class decides the exit code. A `RewindowError` is returned unchanged.

    ``debug`` says, in words, how to get the stack trace of a bug.
    """
    if isinstance(error, RewindowError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return StoppedError(
            "command-interrupted", "interrupted. Anything that was committed is kept: run the command again"
        )
    if isinstance(error, MemoryError):
        return LimitError(
            "process-out-of-memory",
            "out of memory ({reason}): give the process more, then run the command again, which completes this one. A "
            "run takes less with `limits: {{store_memory: ..}}` in the job's file, a landing with `landing: {{memory: "
            "..}}` in the feed's file",
            reason=str(error),
        )
    if _is_of_process(error):
        return LimitError(
            "process-limit-reached",
            "{reason}. The process probably has too little memory, or too few file handles or threads: raise its "
            "limits (see ulimit), then run the command again, which completes this one",
            reason=one_line(f"{type(error).__name__}: {error}"),
        )
    if isinstance(error, OSError):
        return failed_io(
            error,
            "warehouse-not-usable",
            "{reason}{where}. Check that the warehouse in conf/targets exists, is writable and has space",
            reason=error.strerror or str(error),
            where=f" ({error.filename})" if error.filename else "",
        )
    if isinstance(error, UnicodeEncodeError) and "/" in error.object:  # for example, the value of TMPDIR
        return not_utf8(error.object, "path", ConfigError)
    first = (str(error).strip().splitlines() or [""])[0]
    return InvariantError(
        "rewindow-bug",
        "{error}: {reason}. This is a bug in rewindow: {fix} and report it",
        error=type(error).__name__,
        reason=first,
        fix=debug,
    )


def _is_of_process(error: BaseException) -> bool:
    """Return whether an error shows that the process could not get more memory, file handles or threads.

    In such a process, native code panics, libraries end the process, and modules cannot be loaded. Errors of the job's own code
    are handled elsewhere.
    """
    is_no_thread = isinstance(error, RuntimeError) and "can't start new thread" in str(error)
    return (
        not isinstance(error, Exception)
        or isinstance(error, ImportError)
        or is_no_thread
        or os_error(error) in OF_PROCESS
    )
