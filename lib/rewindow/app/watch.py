"""The observer of a command's steps. It logs each step, shows it, and counts commits for the summary."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rewindow.app.command_log import command_log
from rewindow.errors import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from rewindow.contracts.staged_files import TaskReport

_PUBLISH = "publish "
"""The beginning of the names of steps that publish a commit. The target and the number of the commit follow."""


class Watch:
    """An observer of a command's steps. ``commits`` counts the steps that committed or published something.

    ``has_decided``: whether a step began that appends a decision to a ledger. ``lagged`` names the targets to which the command
    published before it appended to a ledger. An earlier, interrupted command had committed runs without publishing them to
    these targets.
    """

    def __init__(self, bars: Bars | None = None, console: Console | None = None, log: Any = None) -> None:
        """Create an observer. ``bars`` shows the steps on a terminal, ``console`` prints lines, ``log`` logs steps and tasks."""
        self.commits = 0
        self.lagged: list[str] = []
        self._bars, self._console = bars, console
        self._began = time.monotonic()
        self._log = log
        self._known: dict[str, Any] = {}
        self._step = ""
        self.has_decided = False

    def __call__(self, step: str) -> None:
        """Record a step that is about to start. If it is a `control.ledger_steps.Step`, record its details, too."""
        name = str(step)
        self._step = name
        self.has_decided |= getattr(step, "decides", False)
        self._known = dict(getattr(step, "known", {}))
        self.commits += name in {"decide", "commit"} or name.startswith(_PUBLISH)
        if name.startswith(_PUBLISH) and not self.has_decided:
            target = name.split()[1]
            self.lagged += [] if target in self.lagged else [target]
        if self._log:
            self._log.info("step", step=name, **self._known)
        if self._bars:
            self._bars.begin(name, self._known.get("records"))

    def say(self, line: str) -> None:
        """Log a line about something that takes a while; if nothing is logged, print the line."""
        if self._log and self._log.is_enabled_for(logging.INFO):
            self._log.info(line)
        elif self._console:
            self._console.print(visible(line))

    def task(self, report: TaskReport) -> None:
        """Log a task that has finished."""
        if not self._log:
            return
        of_step = {name: self._known[name] for name in ("job", "branch", "run", "ledger_row") if name in self._known}
        records = sum(report.consumed.values())
        self._log.info(
            "task",
            **of_step,
            sub_topology=report.sub_topology,
            partition=report.partition,
            records=records,
            rows=report.rows,
            **({"spilled": list(report.spilled)} if report.spilled else {}),
        )

    def share(self, done: float) -> None:
        """Show the fraction of the current step that is done, from 0 to 1."""
        if self._bars:
            self._bars.move(done)

    def what_is_kept(self, *, before: bool = False) -> str:
        """Return a text that says which results of an interrupted command are kept, and what to do next.

        ``before``: whether the command had committed something before this object began to observe steps.
        """
        where = f"interrupted at the step {self._step!r}" if self._step else "interrupted before the first step"
        if self.has_decided or before:
            return f"{where}. What it had committed is kept: the same command again publishes it and continues"
        return f"{where}. Nothing was committed: the same command again starts over, with the same plan if it had one"

    @property
    def seconds(self) -> float:
        """Seconds since the command started."""
        return round(time.monotonic() - self._began, 3)


class Bars:
    """A line that shows the current step.

    For a sub-topology, it shows a bar over the records and the estimated remaining time.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._total = 0.0

    def begin(self, name: str, records: int | None) -> None:
        """Show the next step. ``records``: the number of offsets that the step will read; None if unknown."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._total = float(records or 0)
        shown = f"{name}, {records:,} records" if records else name
        self._task = self._progress.add_task(shown, total=self._total or None)

    def move(self, share: float) -> None:
        """Move the bar of the current step. ``share``: the fraction that is done, from 0 to 1."""
        if self._task is not None:
            total = self._total or 1.0
            self._progress.update(self._task, total=total, completed=share * total)


@contextmanager
def watched(console: Console, *, is_quiet: bool) -> Iterator[Watch]:
    """Yield an observer of a command's steps. It shows bars if the console is a terminal."""
    if is_quiet or not console.is_terminal:
        yield Watch(console=None if is_quiet else console, log=command_log())
        return
    from rich.progress import (  # noqa: PLC0415 - only a terminal shows bars
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Watch(Bars(progress), progress.console, command_log())
