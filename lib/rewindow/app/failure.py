"""The message and the exit code of whatever ended a command, for people, logs and telemetry."""

from __future__ import annotations

from typing import NamedTuple

from rewindow.errors import ConfigError, LimitError, RewindowError, StoppedError, failed_io


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
    message, code = _described(error)
    return Failure(message, code, type(error).__name__)


def _described(error: BaseException) -> tuple[str, int]:
    if isinstance(error, RewindowError):
        return str(error), error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return "interrupted. Nothing was committed: run the command again", StoppedError.exit_code
    if isinstance(error, MemoryError):
        message = (
            f"out of memory ({error}): give the process more, then run the command again, which finishes what this one began. "
            "A run takes less with `limits: {store_memory: ..}` in the job's file, a landing with `landing: {memory: ..}` in "
            "the feed's"
        )
        return message, LimitError.exit_code
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        message = f"{error.strerror or error}{where}. Check that the warehouse in conf/targets exists, is writable and has space"
        return message, failed_io(error, message).exit_code
    if isinstance(error, SystemExit):
        return (
            f"the job's code ended the process (SystemExit: {error}): remove the call of exit()",
            ConfigError.exit_code,
        )
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}. This is a bug in rewindow: run with --debug and report it", 70
