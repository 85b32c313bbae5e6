"""Every error a user can meet, each with its exit code and with the fix in its message.

The codes are part of the interface: a scheduler decides by them whether to retry (README, "Exit codes").
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager


class RewindowError(Exception):
    """What went wrong, where (record, table, version) and what to do next. Never a stack trace of Java's."""

    exit_code = 1


class UsageError(RewindowError):
    """An argument that cannot be understood (2)."""

    exit_code = 2


class DataError(RewindowError):
    """A record or a user's function that the policy does not allow to pass (65)."""

    exit_code = 65


class EmissionError(DataError):
    """A value that does not fit where it was sent (65). It names its own record: others were handled since."""


class SourceError(RewindowError):
    """A source or a feed that is gone, or no longer what the landings were made from (66)."""

    exit_code = 66


class InvariantError(RewindowError):
    """The ledger or determinism is broken; nothing was written, and no retry helps (70)."""

    exit_code = 70


class LimitError(RewindowError):
    """A named limit was passed: memory, disk, a buffer's bound (71)."""

    exit_code = 71


class StorageError(RewindowError):
    """Reading or writing failed, or stored bytes are not what was written (74)."""

    exit_code = 74


class NotNowError(RewindowError):
    """Another attempt is live, this one was fenced, or an earlier landing is missing (75)."""

    exit_code = 75


class CheckpointError(RewindowError):
    """The topology, the configuration or a store's schema does not fit the checkpoint (76)."""

    exit_code = 76


class AccessError(RewindowError):
    """The operating system or the catalog refused (77)."""

    exit_code = 77


class ConfigError(RewindowError):
    """The configuration, the topology or the machine is not usable as it stands (78)."""

    exit_code = 78


class TopologyError(ConfigError):
    """A topology that cannot work: an unknown parent, a name used twice, a cycle."""


_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def failed_io(error: BaseException, message: str) -> RewindowError:
    """Return what a failed read or write is to a scheduler: a full disk (71), a refusal (77), anything else (74)."""
    number = getattr(error, "errno", None)
    kind = LimitError if number in _FULL else AccessError if number in _REFUSED else StorageError
    return kind(message)


@contextmanager
def naming(**names: str) -> Iterator[None]:
    """Fill in the names in commands that messages from below show: ``naming(FEED="orders")`` for ``land FEED``."""
    try:
        yield
    except RewindowError as error:
        text = str(error)
        for word, name in names.items():
            for command in _COMMANDS:
                text = text.replace(f"rewindow {command} {word}", f"rewindow {command} {name}")
        error.args = (text,)
        raise


_COMMANDS = ("land", "run", "republish", "gc")
