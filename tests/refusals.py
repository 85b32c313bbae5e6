"""What a user may rely on in an error: its code and its facts. The wording is on docs/reference/messages.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import pytest

from rewindow.errors import RewindowError


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
            shown = {name: caught.value.facts.get(name) for name in self.facts}
            assert (caught.value.code, shown) == (self.code, self.facts), str(caught.value)
        return is_caught


class containing(str):  # noqa: N801 - it reads like a word of the assertion
    """A fact that contains this text."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Compare with a fact."""
        return str(self) in str(other)

    __hash__ = str.__hash__
