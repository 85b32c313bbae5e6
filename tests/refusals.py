"""What a user may rely on in an error: its code and its facts. The wording is on docs/reference/messages.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rewindow.errors import RewindowError


@contextmanager
def refused(code: str, /, **facts: object) -> Iterator[pytest.ExceptionInfo[RewindowError]]:
    """Expect a `RewindowError` with this code and, among others, these facts."""
    with pytest.raises(RewindowError) as caught:
        yield caught
    shown = {name: caught.value.facts.get(name) for name in facts}
    assert (caught.value.code, shown) == (code, facts), str(caught.value)
