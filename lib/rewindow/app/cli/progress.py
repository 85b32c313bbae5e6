"""Following a command while it works: each step is a line of the log, a bar on a terminal, and counted for the summary."""

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


class Watch:
    """What a command tells its steps to. ``commits`` counts those that made something true or visible."""

    def __init__(self, bars: Bars | None = None) -> None:
        """``bars``: where steps are shown, on a terminal only."""
        self.commits = 0
        self._bars = bars
        self._began = time.monotonic()
        self._log = structlog.get_logger()
        self._known: dict[str, Any] = {}

    def __call__(self, step: str) -> None:
        """Take note of a step that is about to be done. A step that knows more says it (`machine.Step`)."""
        name = str(step)
        self._known = dict(getattr(step, "known", {}))
        self.commits += name in {"decide", "commit"} or name.startswith("publish ")
        self._log.info("step", step=name, **self._known)
        if self._bars:
            self._bars.begin(name, self._known.get("records"))

    def task(self, report: TaskReport) -> None:
        """Take note of a task that is done."""
        known = {name: self._known[name] for name in ("job", "branch", "run", "run_id") if name in self._known}
        records, rows = sum(report.consumed.values()), sum(file.rows for file in report.files)
        self._log.info(
            "task", **known, sub_topology=report.sub_topology, partition=report.partition, records=records, rows=rows
        )

    def share(self, done: float) -> None:
        """Take note of how much of the present step's records is done, from 0 to 1."""
        if self._bars:
            self._bars.move(done)

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return round(time.monotonic() - self._began, 3)


class Bars:
    """A line with the present step; for a sub-topology a bar over its records, with the time that is left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._total = 0.0

    def begin(self, name: str, records: int | None) -> None:
        """Show the next step; ``records``: how many offsets it is to take, if that is known."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._total = float(records or 0)
        shown = f"{name}, {records:,} records" if records else name
        self._task = self._progress.add_task(shown, total=self._total or None)

    def move(self, share: float) -> None:
        """Move the bar of the present step."""
        if self._task is not None and self._total:
            self._progress.update(self._task, completed=share * self._total)


@contextmanager
def watched(console: Console, *, is_quiet: bool) -> Iterator[Watch]:
    """Give what follows a command; it shows bars while the console is a terminal."""
    if is_quiet or not console.is_terminal:
        yield Watch()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Watch(Bars(progress))


def take_log_format(arguments: Sequence[str]) -> list[str]:
    """Set up the log as ``--log-format`` says, wherever it stands; return the other arguments.

    Raises `UsageError` (2) for a format that there is not.
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
        message = f"{OPTION} {wanted!r} is none: use {' or '.join(FORMATS)}"
        raise UsageError(message)
    return rest


def log_failure(message: str, code: int) -> None:
    """Write the line of a command that failed."""
    structlog.get_logger().error("failed", exit_code=code, error=message)


def log_summary(summary: dict[str, Any]) -> None:
    """Write the line of a run that is done."""
    structlog.get_logger().info("summary", **summary)


def _configure(wanted: str | None) -> None:
    """Without a format nothing is logged: what people want to see is printed."""
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
