"""Report everything that is wrong with a feed's sources at once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rewindow.errors import RewindowError


def raise_all(feed: str, problems: Sequence[RewindowError]) -> None:
    """Raise the only problem, or all of them as one error of the first one's class. Without problems, do nothing."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        lines = "\n".join(f"- {problem}" for problem in problems)
        message = f"feed {feed} has {len(problems)} problems:\n{lines}"
        raise type(problems[0])(message) from problems[0]
