"""The command lines that tasks run: lists of arguments, never a shell's text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from rewindow.errors import UsageError

_WITHOUT_TARGET: Final = ("check",)
"""Commands that look at no table."""


def land(feed: str, until: str | None = None) -> list[str]:
    """Return `land FEED`, up to a time if there is one."""
    return ["land", feed, *_option("--until", until)]


def run(
    job: str, *, through: str | None = None, until: str | None = None, lands: bool = False, branch: str | None = None
) -> list[str]:
    """Return `run JOB`, up to a time of events or of arrival; ``lands``: it lands the feed before, up to the same time."""
    flags = ["--land"] if lands else []
    return [
        "run",
        job,
        *flags,
        *_option("--through", through),
        *_option("--until", until),
        *_option("--branch", branch),
    ]


def command_line(arguments: Sequence[str], *, project: str, target: str, executable: Sequence[str] = ()) -> list[str]:
    """Return the whole command line. Without an ``executable`` it is this Python's rewindow.

    (``-P``: modules do not come from the folder that the worker happens to be in.)

    Raises `UsageError` (2) for an argument that no shell and no scheduler should pass on: a template that was not filled.
    """
    line = [*(executable or (sys.executable, "-P", "-m", "rewindow")), *arguments]
    for argument in (*line, project, target):
        if "{{" in argument or "\0" in argument:
            message = f"the argument {argument!r} still has a template in it: the scheduler did not fill it in"
            raise UsageError(message)
    where = [] if arguments[0] in _WITHOUT_TARGET else ["--target", target]
    return [*line, "--project", project, *where, "--json"]


def several(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return an argument's texts. Raises `UsageError` (2) for one text, whose letters would be taken for them."""
    if isinstance(given, str):
        raise UsageError(f'{name}={given!r} is one text, and a list is wanted: write {name}=["{given}"]')
    return tuple(given)


def _option(name: str, value: str | None) -> list[str]:
    return [name, value] if value else []
