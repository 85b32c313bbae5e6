"""Command output: tables and sentences for people, or one JSON object."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import indent
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rewindow.app.command_log import command_log
from rewindow.app.result_lines import landed_lines, readable
from rewindow.errors import StoppedError, visible, visible_lines, without_secrets

if TYPE_CHECKING:
    from rewindow.app.failures import Failure
    from rewindow.app.watch import Watch


class Printer:
    """A printer of results (to stdout), and of progress and errors (to stderr)."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._has_decided = False
        width = None if sys.stdout.isatty() else 160
        self._out = Console(file=sys.stdout, highlight=False, emoji=False, markup=False, soft_wrap=True, width=width)
        self._err = Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)

    def say(self, line: str) -> None:
        """Print one line. Unprintable characters in the line, including line breaks, are escaped."""
        self._out.print(visible(line))

    def message(self, text: str) -> None:
        """Print a text that contains messages, with the line breaks of the text.

        Line breaks in the facts of a message are already escaped.
        """
        self._out.print(visible_lines(text))

    def note(self, text: str) -> None:
        """Print a text that contains messages to stderr."""
        self._err.print(visible_lines(text))

    def table(self, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Print rows as a table."""
        self._out.print(as_table(title, rows))

    def result(self, value: Any, lines: Iterable[str]) -> None:
        """Print a result: as a JSON object, or as lines for people."""
        if self.as_json:
            self.json(value)
            return
        for line in lines:
            self.message(line)

    def listed(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Print rows as a table. With ``--json``, print an object that has the rows under ``name``."""
        if self.as_json:
            self.json({name: list(rows)})
        else:
            self.table("", [readable(row) for row in rows])

    def landed(self, feed: str, report: Any) -> None:
        """Print the result of `land`."""
        if not self.as_json:
            for sentence in report.warnings:
                self.note(f"warning: {sentence}")
        self.result(report.as_json(), landed_lines(feed, report))

    def failed(self, failure: Failure, error: BaseException | None = None) -> None:
        """Print why a command failed. If ``error`` is given, print its stack trace, too."""
        if log := command_log():
            log.error("failed", exit_code=failure.exit_code, error=failure.message, code=failure.code)
        if error is not None:
            # Each line of the stack trace is indented, so that none looks like a line that the command prints.
            sys.stderr.write(indent(visible_lines(without_secrets("".join(traceback.format_exception(error)))), "  "))
        if self.as_json:
            self.json({"error": failure.message, "exit_code": failure.exit_code, "code": failure.code})
        else:
            # After a message of several lines, the exit code gets its own line, because the last line may be a command to copy.
            space = "\n" if "\n" in failure.message else " "
            self.note(f"rewindow: {failure.message}{space}[{failure.code}]")

    @contextmanager
    def progress(self) -> Iterator[Watch]:
        """Yield an observer that logs a command's steps if logging is on, and shows them on a terminal.

        After Ctrl-C, raises `StoppedError` (130), whose message says what the command has done so far.
        """
        from rewindow.app.watch import watched

        with watched(self._err, is_quiet=self.as_json) as watch:
            try:
                yield watch
            except KeyboardInterrupt as error:
                raise StoppedError(
                    "progress-interrupted", "{progress}", progress=watch.what_is_kept(before=self._has_decided)
                ) from error
            self._has_decided |= watch.has_decided

    def json(self, value: Any) -> None:
        """Print one JSON object."""
        # JSON escapes all unprintable characters except DEL.
        sys.stdout.write(json.dumps(value, sort_keys=True).replace("\x7f", "\\u007f") + "\n")


def as_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return rows as a table. Columns of numbers are aligned right."""
    table = Table(title=Text(visible(title)) if title else None, title_justify="left", show_edge=False, pad_edge=False)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        is_number = all(isinstance(row.get(name), int | float | None) for row in rows)
        table.add_column(Text(visible(name)), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_value_as_it_is(row.get(name)) for name in names))
    return table


def _value_as_it_is(value: Any) -> Text:
    """Return a value as text without markup. In a plain string, rich would interpret ``[red]``."""
    return Text("" if value is None else visible(value))
