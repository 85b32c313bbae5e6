"""What a user may rely on in a message: its code and its facts. The wording is on docs/reference/messages.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, TypeVar

import pytest

from rewindow.errors import RewindowError


class Coded(Protocol):
    """An error or another message, with its code and the facts that it shows."""

    @property
    def code(self) -> str: ...

    @property
    def facts(self) -> Mapping[str, object]: ...


Said = TypeVar("Said", bound=Coded)


def refused(code: str, /, **facts: object) -> Refusal:
    """Expect a `RewindowError` with this code and, among others, these facts, in a ``with`` block."""
    return Refusal(code, facts)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The code and some facts of an error. A table of cases may hold it: it can be used more than once."""

    code: str
    facts: dict[str, object]
    _open: list[Any] = field(default_factory=list, compare=False, repr=False)

    def __enter__(self) -> pytest.ExceptionInfo[RewindowError]:
        """Return what is known of the error once the block has ended."""
        raises = pytest.raises(RewindowError)
        caught = raises.__enter__()
        self._open.append((raises, caught))
        return caught

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Check the error."""
        raises, caught = self._open.pop()
        is_caught = bool(raises.__exit__(kind, error, trace))
        if is_caught:
            self.check(caught.value)
        return is_caught

    def check(self, error: Coded) -> None:
        """Check an error that a command has told."""
        shown = {name: error.facts.get(name) for name in self.facts}
        # The expected facts stand first, because `containing` compares.
        assert (self.code, self.facts) == (error.code, shown), error


def told(messages: Iterable[Said], code: str, /, **facts: object) -> Said:
    """Return the only one of the messages with this code, after a check that it shows, among others, these facts."""
    messages = list(messages)
    (message,) = [one for one in messages if one.code == code] or pytest.fail(f"{code} is not among {messages}")
    assert facts == {name: message.facts.get(name) for name in facts}, message
    return message


def fixes(error: Coded | str) -> list[str]:
    """Return the commands that a message names, without `rewindow`."""
    return re.findall(r"`rewindow ([^`]*)`", str(getattr(error, "message", error)))


class containing(str):  # noqa: N801 - it reads like a word of the assertion
    """A fact that contains this text."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Compare with a fact."""
        return str(self) in str(other)

    __hash__ = str.__hash__
