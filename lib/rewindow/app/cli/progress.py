"""Progress of a command: logs each step, shows it as a bar on a terminal, and counts commits for the summary."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import structlog
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rewindow.contracts.staged_files import TaskReport
from rewindow.errors import UsageError

FORMATS = ("json", "text")
OPTION = "--log-format"

DECISIONS = ("decide", "commit", "snapshot", "forget", "restage", "republish", "give up")
"""The steps that append to a ledger begin so."""


class Watch:
    """Observer of a command's steps. ``commits`` counts those that committed or published something."""

    def __init__(self, bars: Bars | None = None, console: Console | None = None, log: Any = None) -> None:
        """Create an observer. ``bars`` shows the steps on a terminal, ``console`` takes lines, ``log`` replaces structlog's."""
        self.commits = 0
        self._bars, self._console = bars, console
        self._began = time.monotonic()
        self._log = log or structlog.get_logger()
        self._known: dict[str, Any] = {}
        self._step = ""
        self._has_decided = False

    def __call__(self, step: str) -> None:
        """Record a step that is about to start, with the details that a `contracts.steps.Step` carries."""
        name = str(step)
        self._step = name
        self._has_decided |= name.startswith(DECISIONS)
        self._known = dict(getattr(step, "known", {}))
        self.commits += name in {"decide", "commit"} or name.startswith("publish ")
        self._log.info("step", step=name, **self._known)
        if self._bars:
            self._bars.begin(name, self._known.get("records"))

    def say(self, line: str) -> None:
        """Log a line about what takes time now, or print it if nothing is logged."""
        if self._log.is_enabled_for(logging.INFO):
            self._log.info(line)
        elif self._console:
            self._console.print(line, markup=False)

    def task(self, report: TaskReport) -> None:
        """Log a task that has finished."""
        known = {name: self._known[name] for name in ("job", "branch", "run", "ledger_row") if name in self._known}
        records = sum(report.consumed.values())
        self._log.info(
            "task",
            **known,
            sub_topology=report.sub_topology,
            partition=report.partition,
            records=records,
            rows=report.rows,
        )

    def share(self, done: float) -> None:
        """Show the fraction of the current step that is done, from 0 to 1."""
        if self._bars:
            self._bars.move(done)

    def what_is_kept(self) -> str:
        """Return what an interrupted command leaves, and what to do next."""
        where = f"interrupted at the step {self._step!r}" if self._step else "interrupted before the first step"
        if self._has_decided:
            return f"{where}. What it had committed is kept: the same command again publishes it and continues"
        return f"{where}. Nothing was committed: the same command again starts over, with the same plan if it had one"

    @property
    def seconds(self) -> float:
        """Seconds since the command started."""
        return round(time.monotonic() - self._began, 3)


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
