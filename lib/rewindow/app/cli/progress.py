"""Progress of a command on a terminal, as a bar for each step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rewindow.app.command_log import command_log
from rewindow.app.watch import Watch

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


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
        yield Watch(console=None if is_quiet else console, log=command_log())
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Watch(Bars(progress), progress.console, command_log())
