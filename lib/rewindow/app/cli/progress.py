"""Progress of a command on a terminal, as a bar for each step, and its log (`--log-format`)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import structlog
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rewindow.app.watch import Watch
from rewindow.errors import UsageError

FORMATS = ("json", "text")
OPTION = "--log-format"


class Bars:
    """A line that shows the current step; for a sub-topology a bar over its records, with the estimated time left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._total = 0.0

    def begin(self, name: str, records: int | None) -> None:
        """Show the next step. ``records`` is the number of offsets it will read, if known."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._total = float(records or 0)
        shown = f"{name}, {records:,} records" if records else name
        self._task = self._progress.add_task(shown, total=self._total or None)

    def move(self, share: float) -> None:
        """Move the bar of the current step."""
        if self._task is not None:
            total = self._total or 1.0
            self._progress.update(self._task, total=total, completed=share * total)


@contextmanager
def watched(console: Console, *, is_quiet: bool) -> Iterator[Watch]:
    """Yield an observer of a command's steps; it shows bars if the console is a terminal."""
    if is_quiet or not console.is_terminal:
        yield Watch(console=None if is_quiet else console)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Watch(Bars(progress), progress.console)


def take_log_format(arguments: Sequence[str]) -> list[str]:
    """Configure logging from ``--log-format``, which may stand anywhere, and return the other arguments.

    Raises `UsageError` (2) for an unknown format.
    """
    rest: list[str] = []
    wanted: str | None = None
    words = iter(arguments)
    for word in words:
        if word == OPTION:
            wanted = next(words, "")
        elif word.startswith(f"{OPTION}="):
            wanted = word.partition("=")[2]
        else:
            rest.append(word)
    _configure(wanted if wanted in FORMATS else None)
    if wanted is not None and wanted not in FORMATS:
        message = f"unknown {OPTION} {wanted!r}: use {' or '.join(FORMATS)}"
        raise UsageError(message)
    return rest


def log_failure(message: str, code: int) -> None:
    """Log the failure of a command."""
    structlog.get_logger().error("failed", exit_code=code, error=message)


def log_summary(summary: dict[str, Any]) -> None:
    """Log the summary of a run."""
    structlog.get_logger().info("summary", **summary)


def _configure(wanted: str | None) -> None:
    """Configure structlog. Without a format it logs nothing."""
    renderer: Any = (
        structlog.processors.JSONRenderer(sort_keys=True)
        if wanted == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso"), renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO if wanted else logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
