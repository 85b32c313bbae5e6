"""The command lines of tasks, as lists of arguments that no shell interprets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from rewindow.errors import UsageError, unrendered

_WITHOUT_TARGET: Final = ("check",)
"""Commands that use no table. They have no option ``--target``."""


def land(feed: str, until: str | None = None) -> list[str]:
    """Return the arguments of `land FEED`, optionally up to a time."""
    return ["land", feed, *_option("--until", until)]


def run(
    job: str,
    *,
    through: str | None = None,
    until: str | None = None,
    lands: bool = False,
    branch: str | None = None,
    options: Sequence[str] = (),
) -> list[str]:
    """Return the arguments of `run JOB`, optionally up to an event time or an arrival time. ``lands``: land the feed first.

    ``options`` are options without a value, such as ``--replan``.
    """
    bounds = [*_option("--through", through), *_option("--until", until), *_option("--branch", branch)]
    return ["run", job, *(["--land"] if lands else []), *bounds, *options]


def command_line(arguments: Sequence[str], *, project: str, target: str, executable: Sequence[str] = ()) -> list[str]:
    """Return the whole command line. By default, it runs rewindow with the Python of this process.

    Raises `UsageError` (2) for an argument with an unrendered template or a NUL.
    """
    # With -P, Python does not import modules from the worker's current folder.
    line = [*(executable or (sys.executable, "-P", "-m", "rewindow")), *arguments]
    for argument in (*line, project, target):
        if "{{" in argument or "\0" in argument:
            raise unrendered(f"argument {argument!r}")
    where = [] if arguments[0] in _WITHOUT_TARGET else ["--target", target]
    return [*line, "--project", project, *where, "--json", "--log-format", "text"]


def several(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return an argument that must be a list as a tuple.

    Raises `UsageError` (2) for a string, which would become its letters.
    """
    if isinstance(given, str):
        raise UsageError(
            "argument-not-list",
            '{argument}={given!r} is a string, but must be a list: write {argument}=["{given}"]',
            argument=name,
            given=given,
        )
    return tuple(given)


def _option(name: str, value: str | None) -> list[str]:
    return [name, value] if value else []
