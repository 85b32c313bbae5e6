"""Windows in local time: days, weeks, months, quarters and years of a time zone, and equal parts of its days.

The windows are intervals between *points*. Points are wall times: every sixth hour, every midnight, every Monday, every first of
a month. A window is ``[point, next point)``, so a day has 23, 24 or 25 hours. For missing and repeated wall times see
`zone_table`. A window in which no time passes does not exist, such as 2011-12-30 in Apia.

Hopping windows last several steps of the grid: window ``k`` is ``[point k, point k + n)``. Where points coincide, because the
clock skipped the wall times between them, only one window starts: the last and longest one. So a start identifies a window. No
window starts before 1970 (0): the one that contains 1970 starts there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, NamedTuple

from rewindow.errors import ConfigError, InvariantError
from rewindow.streams.duration import in_words, to_ms
from rewindow.streams.record import Window, make_window
from rewindow.streams.windows.time import GridWindows, grace_of
from rewindow.streams.windows.zone_table import CLOCK_CHANGE_MS, ZoneTable, month_start_ms

_MINUTE: Final = 60_000
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_MONDAY_MS: Final = -3 * _DAY
"""1969-12-29, a Monday."""
_DAYS_OF_400_YEARS: Final = 146_097
_LENGTH = re.compile(r"([1-9][0-9]{0,3})(mo|[mhdwqy])")


class _Unit(NamedTuple):
    """A unit of the calendar: its least and greatest nominal length in ms, and its months; 0 if it has a fixed length."""

    least_ms: int
    most_ms: int
    months: int = 0


_UNITS: Final[Mapping[str, _Unit]] = {
    "m": _Unit(_MINUTE, _MINUTE),
    "h": _Unit(_HOUR, _HOUR),
    "d": _Unit(_DAY, _DAY),
    "w": _Unit(7 * _DAY, 7 * _DAY),
    "mo": _Unit(28 * _DAY, 31 * _DAY, 1),
    "q": _Unit(90 * _DAY, 92 * _DAY, 3),
    "y": _Unit(365 * _DAY, 366 * _DAY, 12),
}
_OF_DAYS: Final = ("m", "h")
"""The units of which several make a step, if they divide a day."""


class Period(NamedTuple):
    """The time between two points (the last one excluded), and the windows that include it, by start."""

    from_ms: int
    until_ms: int
    windows: list[Window]


@dataclass(frozen=True, slots=True)
class CalendarWindows(GridWindows):
    """Windows in the local time of a zone: see the docstring of this module.

    A window starts at every ``step`` units and lasts ``steps`` of these. ``zone_table`` is None until the windows are bound
    (`bound_to`). Windows that are not bound have a definition, but no starts and ends.
    """

    unit: str
    step: int
    steps: int
    zone: str
    offset_ms: int
    grace_ms: int
    zone_table: ZoneTable | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        size: str,
        *,
        zone: str,
        grace: str | timedelta,
        offset: str | timedelta = "0s",
        advance: str | None = None,
    ) -> CalendarWindows:
        """Return windows of a size, which accept late records during the grace period (``"0s"``: no grace period).

        ``size`` is ``"1d"``, ``"1w"`` (from Monday), ``"1mo"``, ``"1q"``, ``"1y"``, or minutes or hours that divide a day, such
        as ``"6h"``. ``zone`` is a name of the IANA database, such as ``"Europe/Berlin"``. ``offset`` moves all starts on the
        clock: ``"1d"`` with ``offset="6h"`` starts at six in the morning, also on days with a clock change. With ``advance``
        the windows overlap: ``of("7d", advance="1d", ...)`` starts a window of seven days at every midnight.

        Raises `ConfigError` for any other size, advance or offset, for a negative grace, and for a zone that is no text. Whether
        the zone exists is checked when the job is planned.
        """
        length, unit = _parsed("size", size)
        step, step_unit = _parsed("advance", size if advance is None else advance)
        if unit != step_unit or length % step:
            raise ConfigError(
                "calendar-advance-invalid",
                "CalendarWindows.of({size}, advance={advance}): the size must be a whole multiple of the advance, in the same "
                'unit, as in of("7d", advance="1d")',
                size=repr(size),
                advance=repr(advance),
            )
        step_ms = step * _UNITS[unit].least_ms
        if step != 1 and (unit not in _OF_DAYS or _DAY % step_ms):
            raise ConfigError(
                "calendar-step-invalid",
                "CalendarWindows.of({size}): windows cannot start every {step}: use minutes or hours that divide a day, or 1d, "
                "1w, 1mo, 1q or 1y. Longer windows overlap, as in {example}",
                size=repr(size),
                step=f"{step}{unit}",
                example=f'of("{length}{unit}", advance="1{unit}")',
            )
        offset_ms = to_ms(offset)
        if not 0 <= offset_ms < step_ms:
            raise ConfigError(
                "calendar-offset-invalid",
                "CalendarWindows.of(offset={offset}): the offset must be 0 or more and less than {limit}",
                offset=repr(offset),
                limit=in_words(step_ms),
            )
        # User code may pass any object.
        given: object = zone
        if not isinstance(given, str) or not given:
            raise ConfigError(
                "calendar-zone-invalid",
                'CalendarWindows.of(zone={zone}): give the name of a time zone, such as "Europe/Berlin"',
                zone=repr(zone),
            )
        return cls(unit, step, length // step, zone, offset_ms, grace_of("CalendarWindows", grace))

    def bound_to(self, zone_table: ZoneTable) -> CalendarWindows:
        """Return the same windows with the clock of their zone."""
        return replace(self, zone_table=zone_table)

    @property
    def size_ms(self) -> int:  # type: ignore[override]  # a property instead of a field
        """An upper bound of the time from a window's start to its end. It depends on the unit alone, not on the zone."""
        return self.steps * self.step * _UNITS[self.unit].most_ms + CLOCK_CHANGE_MS

    @property
    def closes_after_ms(self) -> int:
        """See `GridWindows`. An upper bound: a window closes at its own end plus the grace period."""
        return self.size_ms + self.grace_ms

    @property
    def final_after_end_ms(self) -> int:
        """See `Windows`."""
        return self.grace_ms

    @property
    def needed_retention_ms(self) -> int:
        """See `Windows`."""
        return self.closes_after_ms

    @property
    def holds_ms(self) -> int:
        """See `Windows`."""
        return self.closes_after_ms

    @property
    def months(self) -> int:
        """The months from one point to the next; 0 if all points have the same distance on the clock."""
        return _UNITS[self.unit].months

    @property
    def step_ms(self) -> int:
        """The distance of points on the clock. It has no meaning if it is given in `months`."""
        return self.step * _UNITS[self.unit].least_ms

    @property
    def first_wall_ms(self) -> int:
        """The wall time of the point with the number 0."""
        return (_MONDAY_MS if self.unit == "w" else 0) + self.offset_ms

    @property
    def length(self) -> str:
        """The size as it is given to `of`."""
        return f"{self.steps * self.step}{self.unit}"

    @property
    def shown(self) -> str:
        """Size and zone for users, with advance and offset if they are not the usual ones."""
        advance = f", every {self.step}{self.unit}" if self.steps > 1 else ""
        offset = f", offset {in_words(self.offset_ms)}" if self.offset_ms else ""
        return f"{self.length} in {self.zone}{advance}{offset}"

    def starts(self, timestamp: int) -> list[int]:
        """See `GridWindows`."""
        return [window.start_ms for window in self.windows(timestamp)]

    def windows(self, timestamp: int) -> list[Window]:
        """Return the windows that include a timestamp (0 or more), by start."""
        return self.period(timestamp).windows

    def period(self, timestamp: int) -> Period:
        """Return the time around a timestamp (0 or more) that belongs to the same windows."""
        last = self._last_point_at(timestamp)
        # Where points coincide, the last one replaces the others.
        starts = {max(0, self._point(index)): index for index in range(last - self.steps + 1, last + 1)}
        windows = [make_window((start, self._point(index + self.steps), False)) for start, index in starts.items()]
        return Period(max(0, self._point(last)), self._point(last + 1), windows)

    def window(self, start_ms: int) -> Window:
        """See `GridWindows`. If no window starts at this time, return the interval up to the end of the last one before it."""
        return make_window((start_ms, self.end_of(start_ms), False))

    def end_of(self, start_ms: int) -> int:
        """Return the end of the window that starts at a time or, if none does, of the last one that starts before it."""
        return self._point(self._last_point_at(start_ms) + self.steps)

    @property
    def durations(self) -> Mapping[str, int]:
        """See `Windows`. Size and advance are upper bounds."""
        advance_ms = self.step * _UNITS[self.unit].most_ms + CLOCK_CHANGE_MS
        return {"longest": self.size_ms, "advance": advance_ms, "grace": self.grace_ms}

    def in_words(self) -> str:
        """See `Windows`."""
        offset, grace = in_words(self.offset_ms), in_words(self.grace_ms)
        return f"size={self.length}, zone={self.zone}, offset={offset}, advance={self.step}{self.unit}, grace={grace}"

    def __str__(self) -> str:
        """Return the text for `explain`, which is part of the fingerprint."""
        return self.in_words()

    @property
    def clock(self) -> ZoneTable:
        """The clock of the zone. Raises `InvariantError` for windows that are not bound."""
        if self.zone_table is None:
            raise InvariantError(
                "calendar-windows-not-bound",
                "the windows of {length} have no clock of the zone {zone}",
                length=self.length,
                zone=self.zone,
            )
        return self.zone_table

    def _last_point_at(self, time_ms: int) -> int:
        """Return the number of the last point at or before an instant."""
        clock, wall_of = self.clock, self._wall_of
        wall_ms = clock.wall_ms(time_ms)
        since_ms = wall_ms - self.first_wall_ms
        if self.months:
            # An estimate by the mean length of a month, which is corrected below.
            index = since_ms * 4800 // (_DAYS_OF_400_YEARS * _DAY * self.months)
            while wall_of(index) > wall_ms:
                index -= 1
        else:
            index = since_ms // self.step_ms
        # While the clock shows times again, it may be behind points that it has passed already.
        while clock.instant_ms(wall_of(index + 1)) <= time_ms:
            index += 1
        return index

    def _point(self, index: int) -> int:
        return self.clock.instant_ms(self._wall_of(index))

    def _wall_of(self, index: int) -> int:
        if self.months:
            return month_start_ms(index * self.months) + self.first_wall_ms
        return index * self.step_ms + self.first_wall_ms


def _parsed(name: str, length: object) -> tuple[int, str]:
    """Return number and unit of a length. Raises `ConfigError` for any other text."""
    found = _LENGTH.fullmatch(length) if isinstance(length, str) else None
    if found is None:
        raise ConfigError(
            "calendar-length-not-understood",
            "CalendarWindows.of({name}={given}): give a number and a unit: m (minutes), h, d, w, mo, q or y, as in 6h, 1d or 1mo",
            name=name,
            given=repr(length),
        )
    return int(found[1]), found[2]
