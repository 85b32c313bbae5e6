"""The windows of a key whose results are not final, for `why --missing` without a window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rewindow.app.why.facts import OpenFacts
from rewindow.app.why.waiting import Holding
from rewindow.app.why.windows import all_sliding_starts, sessions
from rewindow.contracts.instants import instant
from rewindow.report.text import counted
from rewindow.streams.record import Window
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import GridWindows, Windows

_MOST_NAMED = 5
"""So many open windows are named."""


def open_windows(
    windows: Windows | None, times: Iterable[int], held: Holding, known: Sequence[Window] | None = None
) -> list[Window]:
    """Return the windows that a key's records make and that the clock has not closed, oldest first, given the records' times.

    ``known``: the sessions that they made, if a replay has told.
    """
    newest_first = sorted(set(times), reverse=True)
    made: Iterable[Window]
    if held.buffered is not None:
        made = [window for window in held.buffered if window is not None]
    elif isinstance(windows, SessionWindows):
        made = sessions(newest_first, windows.gap_ms) if known is None else known
    elif isinstance(windows, SlidingWindows):
        made = _sliding(windows.size_ms, newest_first, held)
    elif isinstance(windows, GridWindows):
        made = _on_grid(windows, newest_first, held)
    else:
        made = []
    return sorted(window for window in made if held.is_open(window))


def _sliding(size_ms: int, newest_first: Sequence[int], held: Holding) -> list[Window]:
    """Return the windows of the records that an open window may begin after or end with."""
    recent = [time for time in newest_first if held.is_open(Window(time + 1, time + 1 + size_ms))]
    return [Window(start, start + size_ms) for start in all_sliding_starts(recent, size_ms)]


def _on_grid(windows: GridWindows, newest_first: Sequence[int], held: Holding) -> set[Window]:
    """Return the windows of the newest records, up to a record that has no open window: earlier records have none either."""
    found: set[Window] = set()
    for time in newest_first:
        own = [windows.window(start) for start in windows.starts(time)]
        if own and not held.is_open(own[-1]):
            break
        found.update(own)
    return found


def open_headline(found: Sequence[OpenFacts]) -> str:
    """Return until when the windows of a key are open."""
    if len(found) == 1:
        return f"the window from {instant(found[0].start_ms)} is open until {instant(found[0].closes_at_ms)}"
    return f"{len(found):,} windows of the key are open, the first of them until {instant(found[0].closes_at_ms)}"


def open_sentences(found: Sequence[OpenFacts]) -> Iterator[str]:
    """Yield until when each of several windows is open, and how many records it has."""
    for one in found[:_MOST_NAMED] if len(found) > 1 else ():
        until = f"is open until {instant(one.closes_at_ms)}"
        yield f"The window from {instant(one.start_ms)} {until}, and has {counted(one.records, 'record')} so far"
    if len(found) > _MOST_NAMED:
        yield f"{len(found) - _MOST_NAMED:,} more windows close later"
