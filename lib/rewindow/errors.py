"""The errors that users see, each with its exit code.

The exit codes are part of the interface: schedulers decide by them whether to retry (docs/reference/exit-codes.md).
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from string import Formatter
from typing import Any, Self

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that control a terminal, end a line, reorder the text around them, or cannot be written as UTF-8."""


def visible(text: object) -> str:
    """Return a text in which unprintable characters are replaced by escapes, as in a Python literal.

    So data in the text cannot control a terminal, end a line, or reorder the text around it.
    """
    return _UNPRINTABLE.sub(lambda character: character[0].encode("unicode_escape").decode(), str(text))


def visible_lines(text: object) -> str:
    """Return several lines, each as `visible` returns it, with blanks instead of tabs."""
    return "\n".join(visible(line.expandtabs(4)) for line in str(text).split("\n"))


_USERINFO = re.compile(
    r"(?i)\b(?!(?:abfss?|wasbs?)://[^\s:@/]*@)"  # in these addresses, the part before the @ is the container
    r"([a-z][a-z0-9+.-]*://)(?:[^\s/?#]*@|[^\s/?#:@]+:(?!\d+[/?#])\S*@)"
    r"|(?<!\S)[^\s/:@]+:[^\s/@]+@(?=[\w.-]+:\d)"  # telemetry clients show an address without its scheme
)
_PARAMETER = re.compile(
    r"(?i)([?&;#][^\s=&;?#]*(?:passw|pwd|secret|token|key|sig|credential|auth)[^\s=&;?#]*=)[^\s&;#'\"`)]+"
)


def without_secrets(text: str) -> str:
    """Return a text whose addresses contain neither a user with password nor secret parameters.

    All messages pass through it.
    """
    return _PARAMETER.sub(r"\1***", _USERINFO.sub(r"\1***@", text))


class Lines(str):
    """Several lines as one fact of a message. In other facts, line breaks are escaped, because they are data."""

    __slots__ = ()

    def __new__(cls, lines: Iterable[str]) -> Self:
        """Join lines. If the first or last one is empty, the text begins or ends with a line break."""
        return super().__new__(cls, "\n".join(map(visible, lines)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies and unpickling restore the lines."""
        return type(self), (self.split("\n"),)


class _VisibleFacts(Formatter):
    """Fills facts into a wording. Line breaks stay only if they come from the wording, from `Lines` or from messages."""

    def format_field(self, value: Any, format_spec: str) -> str:
        text = format(value, format_spec)
        return text if isinstance(value, Lines | Message) else visible(text)


def _filled(wording: str, facts: Mapping[str, object]) -> str:
    return without_secrets(_VisibleFacts().vformat(wording, (), facts))


class RewindowError(Exception):
    """Base class. A message says what went wrong, where (record, table, version) and how to fix it.

    ``code`` names the message for scripts, alert rules and tests, and on the page of messages (docs/reference/messages.md). The
    code does not change when the wording does. ``facts`` are the values that are filled into the wording. The class decides the
    exit code. ``line`` is the line of the user's code that is at fault (``file:line``), if it is known. `str` of the error ends
    with this line.
    """

    exit_code = 1
    line: str | None = None

    def __init__(self, code: str, wording: str, /, **facts: object) -> None:
        """Fill the facts into the wording, a template of `str.format`. Unprintable characters in facts are escaped."""
        super().__init__(_filled(wording, facts))
        self.code = code
        self.facts = facts

    @classmethod
    def restored(cls, code: str, message: str, facts: Mapping[str, object]) -> Self:
        """Return an error that was raised elsewhere, for example in a worker, from its code, message and facts."""
        error = cls(code, "{message}", message=Lines(message.split("\n")))
        error.facts = dict(facts)
        return error

    @property
    def message(self) -> str:
        """The message without the line of the user's code."""
        return super().__str__()

    def __str__(self) -> str:
        """Return the message, followed by the line of the user's code if it is known."""
        return f"{self.message} ({self.line})" if self.line else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies and unpickling restore the error from its finished message, without its wording."""
        return _restored, (type(self), self.code, self.message, self.facts, self.line)

    def at_line(self, line: str | None) -> Self:
        """Set the line of the user's code that is at fault, if the error has none yet. Return the error."""
        self.line = self.line or line
        return self

    def surrounded(self, before: str = "", after: str = "") -> Self:
        """Add text that only a caller knows, such as the file or another fix, before and after the message.

        Return the error.
        """
        self.args = (without_secrets(f"{visible_lines(before)}{self.message}{visible_lines(after)}"),)
        return self


def _restored(
    kind: type[RewindowError], code: str, message: str, facts: Mapping[str, object], line: str | None
) -> RewindowError:
    return kind.restored(code, message, facts).at_line(line)


class Message(str):
    """A sentence that a command prints without failing. Like an error, it has a code, and facts that fill its wording."""

    __slots__ = ("code", "facts")
    code: str
    facts: Mapping[str, object]

    def __new__(cls, code: str, wording: str, /, **facts: object) -> Self:
        """Fill the facts into the wording, a template of `str.format`."""
        message = super().__new__(cls, _filled(wording, facts))
        message.code, message.facts = code, facts
        return message

    @classmethod
    def restored(cls, code: str, text: str, facts: Mapping[str, object]) -> Self:
        """Return a message from its code, text and facts."""
        message = cls(code, "{message}", message=Lines(text.split("\n")))
        message.facts = facts
        return message

    @classmethod
    def of(cls, error: RewindowError) -> Self:
        """Return the text of an error as a message with the error's code and facts."""
        return cls.restored(error.code, str(error), error.facts)

    def followed(self, after: str) -> Self:
        """Return the message with text appended that only a caller knows. Code and facts stay the same."""
        return self.restored(self.code, f"{self}{after}", self.facts)

    def __getnewargs_ex__(self) -> tuple[tuple[str, str], dict[str, str]]:
        """Make copies and unpickling restore the text. Code and facts are restored afterwards, as attributes."""
        return (self.code, "{message}"), {"message": Lines(self.split("\n"))}


class FindingMessage(Message):
    """What is wrong with a feed or a job, as `rewindow status` says it."""

    __slots__ = ()


class VerdictMessage(Message):
    """A sentence of the verdict with which a report begins."""

    __slots__ = ()


class HintMessage(Message):
    """Why a run has no rows, is slow, or writes JSON text."""

    __slots__ = ()


class ReasonMessage(Message):
    """A reason: why nothing is run or landed, what a job waits for, why a key has no row, or what `why` says about a row."""

    __slots__ = ()


class WarningMessage(Message):
    """A probable mistake of the user that shows in the landed data."""

    __slots__ = ()


class NothingFoundError(RewindowError):
    """There is nothing to show, although the question is valid: `why` for a row that does not exist (1)."""

    exit_code = 1


class UsageError(RewindowError):
    """An invalid argument (2)."""

    exit_code = 2


class DataError(RewindowError):
    """A bad record or a failing user function, under the error policy `fail` (65)."""

    exit_code = 65


class EmissionError(DataError):
    """A value that does not fit the sink to which it was forwarded (65). The message already names the record."""


class ExpectationError(DataError):
    """A run whose rows do not meet an expectation with `on_fail: fail` (65). Nothing was committed."""


class SourceError(RewindowError):
    """A source or feed that is missing, or has changed since it was landed (66)."""

    exit_code = 66


class LandedFileError(SourceError):
    """A landed file is gone or has changed (66). The fact ``file`` is the file's name below the folder of its source."""


class LandedRunError(SourceError):
    """A feed has landed a run of a job, and the job has removed this run since (66). The fact ``job`` is the name of the job."""


class InvariantError(RewindowError):
    """A broken invariant of the ledger or of determinism (70). Nothing was written, and a retry cannot help."""

    exit_code = 70


class LimitError(RewindowError):
    """An exceeded limit: memory, disk, rows, or the size of a buffer (71)."""

    exit_code = 71


class StorageError(RewindowError):
    """A failed read or write, or stored bytes that do not match their checksum (74)."""

    exit_code = 74


class DamagedFileError(StorageError):
    """A file of a table that is gone, or whose bytes are not what was written (74). The storage itself works."""


class NotNowError(RewindowError):
    """A temporary conflict: another attempt is live, this one was fenced, or an earlier landing is missing (75)."""

    exit_code = 75


class CheckpointError(RewindowError):
    """A topology, configuration or store schema that is incompatible with the checkpoint (76)."""

    exit_code = 76


class AccessError(RewindowError):
    """Access denied by the operating system, the object store or the catalog (77)."""

    exit_code = 77


class ConfigError(RewindowError):
    """An unusable configuration, topology or machine (78)."""

    exit_code = 78


class TopologyError(ConfigError):
    """An invalid topology: an unknown parent, a duplicate name, a cycle (78)."""


class StoppedError(RewindowError):
    """The command was interrupted with Ctrl-C (130)."""

    exit_code = 130


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
OF_PROCESS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
"""The process cannot get more file handles, memory, threads or processes from the operating system."""
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


_NATIVE = re.compile(r"\(os error (\d+)\)|\bcode: (\d+), kind: ")
"""Matches the operating system's error number in texts of delta-rs, whose exceptions have no field for the number."""
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_BACKTRACE = re.compile(r"\n\s*0: ")
_ARROWS = re.compile(r"\s*\u21b3\s*")


def one_line(error: object) -> str:
    """Return the text of an error as one line, without the colours, arrows and backtraces that delta-rs adds."""
    text = _BACKTRACE.split(_ESCAPES.sub("", str(error)))[0]
    return " ".join(_ARROWS.sub(": ", text).split())


def os_error(error: BaseException | None) -> int | None:
    """Return the operating system's error number of a failed read or write; None without one, as for damaged content."""
    native = _NATIVE.search(str(error))
    return int(native[1] or native[2]) if native else getattr(error, "errno", None)


def unreadable(path: str, error: Exception) -> RewindowError | None:
    """Return the error for a file that the operating system failed to read (71, 74, 77); None if it is damaged or missing."""
    number = os_error(error)
    if number in (None, errno.ENOENT, errno.ENOTDIR):
        return None
    if number in _REFUSED:
        return AccessError(
            "read-not-permitted",
            "{path} cannot be read: {reason}. Grant this user read access to it, then run again",
            path=path,
            reason=one_line(error),
        )
    return failed_io(
        error,
        "read-failed",
        "{path} cannot be read: {reason}. Run again. If it happens again, look for what is wrong with the machine, its limits or "
        "its disk: nothing is known to be wrong with the data",
        path=path,
        reason=one_line(error),
    )


def failed_io(error: BaseException | None, code: str, wording: str, /, **facts: object) -> RewindowError:
    """Return the error for a failed read or write: a full disk or another limit (71), access denied (77), anything else (74)."""
    return _kind_of_io(error)(code, wording, **facts)


def _kind_of_io(error: BaseException | None) -> type[LimitError | AccessError | StorageError]:
    number = os_error(error)
    return LimitError if number in (*_FULL, *OF_PROCESS) else AccessError if number in _REFUSED else StorageError


def check_utf8(name: str, what: str, kind: type[RewindowError] = UsageError) -> None:
    """Raise an error of class ``kind`` if a name is not UTF-8. Tables, Spark and JSON cannot contain it.

    ``what``: the thing that has the name.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        raise not_utf8(name, what, kind) from None


def not_utf8(name: str, what: str, kind: type[RewindowError]) -> RewindowError:
    """Return the error for a name that is not UTF-8; see `check_utf8`."""
    return kind(
        "name-not-utf8",
        "the {what} {name} is not UTF-8: rename it. If it is UTF-8, the locale is another one: set LC_ALL=C.UTF-8",
        what=what,
        name=name,
    )


def unrendered(given: str) -> UsageError:
    """Return the error for an argument or parameter whose template the scheduler did not render. ``given``: its name."""
    return UsageError(
        "template-unrendered",
        "the {given} contains an unrendered template, which the scheduler should have replaced",
        given=given,
    )


def missing_function(module: str, function: str) -> ConfigError:
    """Return the error for a module without the function that should build the topology."""
    return ConfigError(
        "topology-function-missing",
        "{module} has no function {function!r}: fix `topology:` or the module",
        module=module,
        function=function,
    )


def not_committed(what: str, attempts: int, failure: BaseException | None) -> RewindowError:
    """Return the error for a commit of which every attempt failed. It has the class of the last failure.

    ``what`` is the table or ledger row that was to be committed.
    """
    why = f": {one_line(failure)}" if failure else ""
    kind = type(failure) if isinstance(failure, RewindowError) else _kind_of_io(failure)
    return kind(
        "not-committed",
        "{what} could not be committed in {attempts} attempts{why}. Fix the cause, then run again",
        what=what,
        attempts=attempts,
        why=why,
    )


@contextmanager
def naming(**names: str) -> Iterator[None]:
    """Fill names into the commands that error messages suggest.

    ``naming(FEED="orders")`` turns ``rewindow land FEED`` into ``rewindow land orders``.
    """
    try:
        yield
    except RewindowError as error:
        text = error.message
        for word, name in names.items():
            for command in _COMMANDS:
                text = text.replace(f"rewindow {command} {word}", f"rewindow {command} {name}")
        error.args = (text,)
        raise


_COMMANDS = ("land", "run", "republish", "gc")
