"""Find the window or session that contains the time that the user named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewindow.app.why.output import Output, Row
from rewindow.contracts.instants import as_argument, instant
from rewindow.errors import Lines, ReasonMessage, UsageError
from rewindow.streams.record import Window
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import GridWindows

_MOST_NAMED = 5
"""If several windows contain a time, a message lists at most this many."""


@dataclass(frozen=True)
class AskedTime:
    """The time that the user named to select a window. ``words``: the words of the key on the command line."""

    output: Output
    words: Sequence[str]
    time_ms: int
    is_missing: bool = False

    def start(self, rows: Iterable[Row]) -> int:
        """Return the start of the window that contains the time, given the key's rows.

        Windows that are not on a grid are known only from rows. If no row has a window with this time, the time itself is
        returned. Raises `UsageError` (2) if no window or several windows can contain the time, or if the table has no windows.
        """
        if not self.output.is_windowed:
            raise UsageError("table-without-windows", "{table} has no windows: omit --window", table=self.output.table)
        windows = self.output.windows
        first, last = (column.name for column in self.output.key_columns[-2:])
        bounds = list(dict.fromkeys((row[first], row[last]) for row in rows))
        if any(start == self.time_ms for start, _ in bounds):
            return self.time_ms
        if isinstance(windows, GridWindows):
            return self._of_grid(windows, {start for start, _ in bounds})
        is_closed = isinstance(windows, SessionWindows | SlidingWindows)  # these windows contain their end
        around = [start for start, end in bounds if start <= self.time_ms < end + is_closed]
        if isinstance(windows, SessionWindows):
            around = around[-1:]  # a session is written again when it grows, so its last row has its bounds
        return self.only(around)

    def only(self, starts: Iterable[int]) -> int:
        """Return the start that the user means.

        This is the time itself if ``starts`` is empty or contains it, and otherwise the only one of ``starts``. Raises
        `UsageError` (2) if there are several others.
        """
        known_starts = sorted(set(starts))
        if len(known_starts) > 1 and self.time_ms not in known_starts:
            raise self._several(known_starts)
        return known_starts[0] if len(known_starts) == 1 else self.time_ms

    def where(self, start_ms: int) -> str:
        """Return the end of a sentence that says which window is meant."""
        if not isinstance(self.output.windows, GridWindows):
            return f" in a window that contains {instant(self.time_ms)}"
        which = "" if start_ms == self.time_ms else f", which contains {instant(self.time_ms)}"
        return f" in the window from {instant(start_ms)}{which}"

    def command(self, start_ms: int) -> str:
        """Return the words of the command that selects the window with this start."""
        return f"{self.output.key_words(self.words)} --window {as_argument(start_ms)}"

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
        raise self._several([start for start in starts if start in known] or starts, len(starts))

    def _several(self, starts: Sequence[int], count: int = 0) -> UsageError:
        """Return the error for a time that is in ``count`` windows. ``starts`` are the starts of the windows that it lists."""
        more = " --missing" if self.is_missing else ""
        listed = Lines(["", *(f"  rewindow why {self.command(start)}{more}" for start in starts[-_MOST_NAMED:])])
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


def told_sessions(made: Sequence[Window], making: str, time_ms: int) -> ReasonMessage:
    """Return a sentence that lists the sessions nearest to a time. ``making`` says, in words, which records form them."""
    near = sorted(made, key=lambda one: max(one.start_ms - time_ms, time_ms - one.end_ms))[:_MOST_NAMED]
    named = ", ".join(f"{instant(session.start_ms)} to {instant(session.end_ms)}" for session in sorted(near))
    more = "" if len(near) == len(made) else f" {len(made):,}, the nearest ones"
    which, are = ("session", "is") if len(made) == 1 else ("sessions", f"are{more}")
    return ReasonMessage(
        "key-sessions", "The {which} that {making} {are} {named}", which=which, making=making, are=are, named=named
    )


def sessions(times: Iterable[int], gap_ms: int) -> list[Window]:
    """Return the sessions that records with these times form, oldest first."""
    made: list[Window] = []
    for time in sorted(times):
        if made and time - made[-1].end_ms <= gap_ms:
            made[-1] = Window(made[-1].start_ms, time, is_session=True)
        else:
            made.append(Window(time, time, is_session=True))
    return made
