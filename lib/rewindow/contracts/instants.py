"""Points in time: the form that people read and type, and the units in which systems write them as integers.

Every time that rewindow shows is in UTC and says so. Integers of rewindow are milliseconds. Integers of other systems may have
other units. Read as milliseconds, a number of seconds is in January 1970, and a number of microseconds in the far future. For
times between 1980 and 2100, the numbers in different units do not overlap, so a number shows its unit.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

END_OF_TIME_MS = 2**62
"""From this time (epoch ms) on, a value means no time at all, such as the end of an unlimited window."""
MILLISECONDS: Final = "ms"
UNITS: Final = {"s": "seconds", MILLISECONDS: "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS = len("2026-01-05 10:00:00")
_FIRST_MS, _LAST_MS = 315_532_800_000, 4_102_444_800_000
"""1980 and 2100. The unit of times outside this range is not checked."""
RANGES: Final = {
    "s": (_FIRST_MS // 1_000, _LAST_MS // 1_000),
    "us": (_FIRST_MS * 1_000, _LAST_MS * 1_000),
    "ns": (_FIRST_MS * 1_000_000, _LAST_MS * 1_000_000),
}
"""Maps each unit to the range ``[first, end)`` of numbers that are plausible times in this unit and implausible as
milliseconds."""


def instant(time_ms: int | None, unknown: str = "-") -> str:
    """Return a time (epoch ms) like ``2026-01-05 10:00:00Z``, with milliseconds if there are any.

    ``unknown`` is the result for None and for negative times.
    """
    if time_ms is None or time_ms < 0:
        return unknown
    if time_ms >= END_OF_TIME_MS:
        return "the end of time"
    try:
        text = str(_EPOCH + timedelta(milliseconds=time_ms))
    except OverflowError:  # after the year 9999
        return f"{time_ms} ms"
    whole, milliseconds = text[:_SECONDS], time_ms % 1000
    return f"{whole}.{milliseconds:03}Z" if milliseconds else f"{whole}Z"


def to_the_second(time_ms: int | None, unknown: str = "-") -> str:
    """Return a time as `instant`, without its milliseconds."""
    return instant(None if time_ms is None else time_ms // 1000 * 1000, unknown)


def as_argument(time_ms: int) -> str:
    """Return a time as an argument of a command line: `instant` without a blank."""
    return instant(time_ms).replace(" ", "T")


def unit_of(time: int, near_ms: int) -> str | None:
    """Return the unit in which a number is a plausible time, if it is not plausible as milliseconds; otherwise None.

    ``near_ms`` is the arrival of the record (epoch ms). A unit is plausible only if the number, read in this unit, is closer to
    the arrival than the number read as milliseconds.
    """
    for unit, (first, end) in RANGES.items():
        if first <= time < end and abs(as_ms(time, unit) - near_ms) < abs(time - near_ms):
            return unit
    return None


def as_ms(time: int, unit: str) -> int:
    """Return a time in a unit as milliseconds."""
    return {"s": time * 1_000, MILLISECONDS: time, "us": time // 1_000, "ns": time // 1_000_000}[unit]
