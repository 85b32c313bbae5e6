"""Windows in local time by brute force: Python's ``zoneinfo`` with the data of the package ``tzdata``, and lists of windows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import tzdata

from rewindow import CalendarWindows

SECOND, HOUR, DAY = 1_000, 3_600_000, 86_400_000
Interval = tuple[int, int]
Instant = Callable[[datetime], int]
"""Returns the instant (epoch ms) of a wall time."""


class Shape(NamedTuple):
    """The arguments of `CalendarWindows.of`."""

    size: str
    advance: str | None = None
    offset: str = "0s"

    def windows(self, zone: str, grace: str = "0s") -> CalendarWindows:
        return CalendarWindows.of(self.size, advance=self.advance, offset=self.offset, zone=zone, grace=grace)


PARTS_OF_DAYS = [Shape("30m"), Shape("60m", "30m", "10m"), Shape("6h"), Shape("6h", None, "90m"), Shape("24h", "6h")]
DAYS_OR_MORE = [
    *(Shape(size) for size in ("1d", "1w", "1mo", "1q", "1y")),
    *(Shape(*given) for given in (("1d", None, "150m"), ("1w", None, "1d"), ("1mo", None, "6h"), ("1y", None, "27d"))),
    *(Shape(*given) for given in (("7d", "1d"), ("2d", "1d", "2h"), ("3mo", "1mo"))),
]


def year(number: int) -> datetime:
    """Return the first wall time of a year."""
    return datetime(number, 1, 1)  # noqa: DTZ001


@cache
def clock_of(zone: str) -> ZoneInfo:
    with files(tzdata).joinpath("zoneinfo", *zone.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=zone)


def ms_of(time: datetime) -> int:
    """Return the ms from 1970 to a UTC time or to a wall time."""
    return (time.replace(tzinfo=None) - year(1970)) // timedelta(milliseconds=1)


def offset_ms(zone: str, time_ms: int) -> int:
    """Return the difference of local time to UTC at an instant."""
    time = datetime.fromtimestamp(time_ms // SECOND, UTC).astimezone(clock_of(zone))
    return ms_of(time) - time_ms // SECOND * SECOND


@cache
def instant_of(zone: str, wall: datetime) -> int:
    """Return the first instant at which the clock of a zone shows a wall time or, if it never does, a later one."""
    own = wall.replace(tzinfo=clock_of(zone))  # fold 0: the earlier one of two instants
    time = own.astimezone(UTC)
    if time.astimezone(clock_of(zone)).replace(tzinfo=None) == wall:
        return ms_of(time)
    # In a gap, fold 1 is an instant before the change, and fold 0 is one after it.
    before, after = ms_of(own.replace(fold=1).astimezone(UTC)), ms_of(time)
    return change_between(zone, before, after)


def change_between(zone: str, before_ms: int, after_ms: int) -> int:
    """Return the instant of the only change of a clock in ``(before, after]``."""
    old = offset_ms(zone, before_ms)
    assert old != offset_ms(zone, after_ms)
    while after_ms - before_ms > SECOND:
        middle = (before_ms + after_ms) // (2 * SECOND) * SECOND
        before_ms, after_ms = (middle, after_ms) if offset_ms(zone, middle) == old else (before_ms, middle)
    return after_ms


def changes_in(zone: str, first: datetime, last: datetime) -> list[int]:
    """Return the instants of all clock changes between two times."""
    days = range(ms_of(first), ms_of(last) + 1, DAY)
    changed = [(one, other) for one, other in pairwise(days) if offset_ms(zone, one) != offset_ms(zone, other)]
    return [change_between(zone, *between) for between in changed]


def walls(windows: CalendarWindows, first: datetime, last: datetime) -> Iterator[datetime]:
    """Yield the wall times of the points of windows from one time to another one, and of some before and after."""
    shift = timedelta(milliseconds=windows.offset_ms)
    if windows.unit in ("mo", "q", "y"):
        months = {"mo": 1, "q": 3, "y": 12}[windows.unit]
        for month in range(first.year * 12 - 12, last.year * 12 + 25, months):
            yield datetime(month // 12, month % 12 + 1, 1) + shift  # noqa: DTZ001
        return
    more = timedelta(days=2 if windows.unit in ("m", "h") else 16)
    time, last = datetime(first.year, first.month, first.day) - more, last + more  # noqa: DTZ001
    if windows.unit == "w":
        time -= timedelta(days=time.weekday())
    name = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}[windows.unit]
    while time <= last:
        yield time + shift
        time += timedelta(**{name: windows.step})


class Naive:
    """All windows between two wall times, as a list."""

    def __init__(self, windows: CalendarWindows, instant: Instant, first: datetime, last: datetime) -> None:
        self.points = [instant(wall) for wall in walls(windows, first, last)]
        ends: dict[int, int] = {}
        for start, end in zip(self.points, self.points[windows.steps :], strict=False):
            if max(start, 0) < end:
                ends[max(start, 0)] = max(end, ends.get(max(start, 0), 0))
        self.starts, self.ends = sorted(ends), [ends[start] for start in sorted(ends)]
        assert self.ends == sorted(self.ends)
        # Before the first and after the last of these instants, windows are missing from the list.
        self.first, self.last = max(0, self.points[windows.steps]), self.points[-windows.steps - 1] - 1

    def at(self, time_ms: int) -> list[Interval]:
        """Return the windows that contain an instant, by start."""
        there = slice(bisect_right(self.ends, time_ms), bisect_right(self.starts, time_ms))
        return list(zip(self.starts[there], self.ends[there], strict=True))

    def known(self, times: Iterable[int]) -> list[int]:
        """Return those of the instants whose windows are all in the list, ordered."""
        return sorted({time for time in times if self.first <= time <= self.last})


def around(times: Iterable[int]) -> list[int]:
    """Return instants with those one millisecond earlier and later."""
    return [time + by for time in times for by in (-1, 0, 1)]
