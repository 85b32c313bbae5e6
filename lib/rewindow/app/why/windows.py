"""The window that `why --window TIME` asks for: the one that contains a time, if there is only one."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rewindow.app.why.output import Output, Row
from rewindow.contracts.instants import as_argument, instant
from rewindow.control.health.phrases import command_words
from rewindow.errors import UsageError
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.record import Window
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import GridWindows, Windows

_MOST_NAMED = 5
"""So many windows are named of those that contain a time."""


@dataclass(frozen=True)
class AskedTime:
    """A time of which the window is asked for, with the words of the command that asks."""

    output: Output
    words: Sequence[str]
    time_ms: int
    is_missing: bool = False

    def start(self, rows: Iterable[Row]) -> int:
        """Return the start of the window that contains the time, given the key's rows.

        Without a grid, windows are known only from rows: the time itself is returned if no row's window contains it. Raises
        `UsageError` (2) if no window or several can contain it, and if the table has no windows.
        """
        if not self.output.is_windowed:
            raise UsageError("table-without-windows", "{table} has no windows: omit --window", table=self.output.table)
        windows = windows_of(self.output)
        first, last = (column.name for column in self.output.key_columns[-2:])
        bounds = list(dict.fromkeys((row[first], row[last]) for row in rows))
        if any(start == self.time_ms for start, _ in bounds):
            return self.time_ms
        if isinstance(windows, GridWindows):
            return self._of_grid(windows, {start for start, _ in bounds})
        is_closed = isinstance(windows, SessionWindows | SlidingWindows)  # their ends belong to them
        around = [start for start, end in bounds if start <= self.time_ms < end + is_closed]
        if isinstance(windows, SessionWindows):
            around = around[-1:]  # a session was written anew whenever it grew
        return self.only(around)

    def only(self, starts: Iterable[int]) -> int:
        """Return the only one of some starts, or the time itself if there are none. Raises `UsageError` (2) for several."""
        found = sorted(set(starts))
        if len(found) > 1 and self.time_ms not in found:
            raise self._several(found)
        return found[0] if len(found) == 1 else self.time_ms

    def where(self, start_ms: int) -> str:
        """Return the window that was looked for, as the end of a sentence."""
        if not isinstance(windows_of(self.output), GridWindows):
            return f" in a window that contains {instant(self.time_ms)}"
        which = "" if start_ms == self.time_ms else f", which contains {instant(self.time_ms)}"
        return f" in the window from {instant(start_ms)}{which}"

    def command(self, start_ms: int) -> str:
        """Return the words of the command that asks for the window with a start."""
        return f"{key_words(self.output, self.words)} --window {as_argument(start_ms)}"

    def _of_grid(self, windows: GridWindows, known: set[int]) -> int:
        starts = windows.starts(self.time_ms) if self.time_ms >= 0 else ()
        if not starts:
            if self.time_ms < 0:
                raise UsageError(
                    "window-before-1970",
                    "--window: no window of {table} contains a time before 1970",
                    table=self.output.table,
                )
            raise UsageError(
                "window-not-found",
                "--window {time}: no window of {table} contains this time",
                time=as_argument(self.time_ms),
                table=self.output.table,
            )
        if len(starts) == 1 or self.time_ms in starts:
            return starts[0] if len(starts) == 1 else self.time_ms
        raise self._several([one for one in starts if one in known] or starts, len(starts))

    def _several(self, starts: Sequence[int], count: int = 0) -> UsageError:
        """Return the refusal of a time that several windows contain. ``starts``: those to name, of ``count``."""
        more = " --missing" if self.is_missing else ""
        listed = "".join(f"\n  rewindow why {self.command(one)}{more}" for one in starts[-_MOST_NAMED:])
        named = min(len(starts), _MOST_NAMED)
        which = "" if named == (count or len(starts)) else f", such as these {named}" if named > 1 else ", such as"
        return UsageError(
            "window-ambiguous",
            "{given} is not the start of a window of {table}, and {count} windows contain it: ask "
            "for one of them by its start{which}:{listed}",
            given=instant(self.time_ms),
            table=self.output.table,
            count=count or len(starts),
            which=which,
            listed=listed,
        )


def key_words(output: Output, words: Sequence[str]) -> str:
    """Return the words of a command that name a key of an output on its branch."""
    return f"{command_words(output.table, output.branch.name)} {shlex.join(words)}"


def start_column(output: Output) -> str | None:
    """Return the column with the start of a key's window; None for keys without windows."""
    return output.key_columns[-2].name if output.is_windowed else None


def of_window(output: Output, rows: Sequence[Row], start_ms: int | None) -> Sequence[Row]:
    """Return the rows of the window that starts at a time, or all."""
    column = start_column(output)
    return rows if start_ms is None else [row for row in rows if row[column or ""] == start_ms]


def windows_of(output: Output) -> Windows | None:
    """Return the windows of an output's keys, as the code declares them; None if it makes them in another way."""
    node = windowed_node(output)
    return None if node is None else getattr(node.supplier, "windows", None)


def windowed_node(output: Output) -> ProcessorNode | None:
    """Return the node that makes the windows of an output's keys; None if the code makes them in another way."""
    nodes = (node for node in output.layout.topology.above(output.layout.sink) if isinstance(node, ProcessorNode))
    return next((node for node in nodes if isinstance(getattr(node.supplier, "windows", None), Windows)), None)


def told_sessions(found: Sequence[Window], making: str, time_ms: int) -> str:
    """Return the sentence for the sessions that records make, as ``making`` says. It names those nearest to the time."""
    near = sorted(found, key=lambda one: max(one.start_ms - time_ms, time_ms - one.end_ms))[:_MOST_NAMED]
    named = ", ".join(f"{instant(one.start_ms)} to {instant(one.end_ms)}" for one in sorted(near))
    if len(found) == 1:
        return f"The session that {making} is {named}"
    more = "" if len(near) == len(found) else f" {len(found):,}, the nearest ones"
    return f"The sessions that {making} are{more} {named}"


def sessions(times: Iterable[int], gap_ms: int) -> list[Window]:
    """Return the sessions of a key's records, oldest first, given the records' times."""
    found: list[Window] = []
    for time in sorted(times):
        if found and time - found[-1].end_ms <= gap_ms:
            found[-1] = Window(found[-1].start_ms, time, is_session=True)
        else:
            found.append(Window(time, time, is_session=True))
    return found


def sliding_starts(times: Iterable[int], time_ms: int, size_ms: int) -> list[int]:
    """Return the starts of the sliding windows that contain a time."""
    return [one for one in all_sliding_starts(times, size_ms) if one <= time_ms <= one + size_ms]


def all_sliding_starts(times: Iterable[int], size_ms: int) -> list[int]:
    """Return the starts of the sliding windows of some records: each ends with a record, or begins right after one."""
    known = sorted(set(times))
    starts = {max(one - size_ms, 0) for one in known}
    starts |= {one + 1 for one, following in pairwise(known) if following <= one + 1 + size_ms}
    return sorted(starts)
