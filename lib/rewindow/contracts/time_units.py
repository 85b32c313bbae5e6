"""The units in which systems write times as integers. rewindow's own are milliseconds.

A number of seconds is also a valid number of milliseconds, in January 1970; one of microseconds is in the far future. The
ranges of numbers that are times between 1980 and 2100 do not overlap, so the number tells the unit.
"""

from __future__ import annotations

import re
from typing import Final

MS: Final = "ms"
UNITS: Final = {"s": "seconds", MS: "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

FIRST_MS, LAST_MS = 315_532_800_000, 4_102_444_800_000
"""1980 and 2100: times outside are not judged."""

RANGES: Final = {
    "s": (FIRST_MS // 1_000, LAST_MS // 1_000),
    "us": (FIRST_MS * 1_000, LAST_MS * 1_000),
    "ns": (FIRST_MS * 1_000_000, LAST_MS * 1_000_000),
}
"""Unit -> the numbers ``[first, end)`` that are plausible times in this unit, and implausible milliseconds."""

IS_IN: Final = " is in "
"""Between the number and the unit in the reason of a refused record."""


def unit_of(time: int, near_ms: int) -> str | None:
    """Return the unit in which a number is a plausible time although it is none in milliseconds; None otherwise.

    ``near_ms``, when the record arrived, must be closer to the time in that unit than to the number as milliseconds.
    """
    for unit, (first, end) in RANGES.items():
        if first <= time < end and abs(as_ms(time, unit) - near_ms) < abs(time - near_ms):
            return unit
    return None


def unit_of_text(text: str) -> str | None:
    """Return the unit in which a text is a plausible time as a whole number; None if it is none."""
    if not re.fullmatch(r"\d{1,19}", text):
        return None
    number = int(text)
    return next(
        (unit for unit, (first, end) in {MS: (FIRST_MS, LAST_MS), **RANGES}.items() if first <= number < end), None
    )


def as_ms(time: int, unit: str) -> int:
    """Return a time in a unit as milliseconds."""
    return {"s": time * 1_000, MS: time, "us": time // 1_000, "ns": time // 1_000_000}[unit]


def wrong_unit(what: str, time: int | str, unit: str) -> str:
    """Return the reason for which a record is refused. ``what`` is ``timestamp`` or ``arrived_at``."""
    return f"the {what} {time}{IS_IN}{UNITS[unit]}, not milliseconds"


def unit_in(reason: str) -> str | None:
    """Return the unit that a reason states; None if the reason is another one."""
    return next((unit for unit, name in UNITS.items() if f"{IS_IN}{name}, not milliseconds" in reason), None)
