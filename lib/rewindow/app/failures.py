"""What went wrong, in the words of a `RewindowError`, whatever was raised."""

from __future__ import annotations

from rewindow.errors import ConfigError, InvariantError, LimitError, RewindowError, failed_io


def as_rewindow_error(error: Exception | SystemExit, *, debug: str = "run with --debug") -> RewindowError:
    """Return the error that a user sees, whose class decides the exit code. A `RewindowError` is returned as it is.

    ``debug``: how to get the stack trace of a bug.
    """
    if isinstance(error, RewindowError):
        return error
    if isinstance(error, MemoryError):
        return LimitError(
            f"out of memory ({error}): give the process more, then run the command again, which finishes what this one began. "
            "A run takes less with `limits: {store_memory: ..}` in the job's file, a landing with `landing: {memory: ..}` in "
            "the feed's"
        )
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        message = f"{error.strerror or error}{where}. Check that the warehouse in conf/targets exists, is writable and has space"
        return failed_io(error, message)
    if isinstance(error, SystemExit):
        return ConfigError(f"the job's code ended the process (SystemExit: {error}): remove the call of exit()")
    first = (str(error).strip().splitlines() or [""])[0]
    return InvariantError(f"{type(error).__name__}: {first}. This is a bug in rewindow: {debug} and report it")
