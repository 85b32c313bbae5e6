"""Durations as text (``"1h30m"``), points in time, and points on a time grid. All results are in milliseconds."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from numbers import Real

from rewindow.errors import ConfigError

LONGEST_MS = 10_000 * 366 * 86_400_000
"""Ten thousand years. With this limit, times and sums of durations fit into a BIGINT of milliseconds."""

_UNIT_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PART = re.compile(r"([0-9]{1,19})(ms|[smhdw])")
_WHOLE = re.compile(rf"-?(?:{_PART.pattern})+")
_MILLISECOND = timedelta(milliseconds=1)


def to_ms(value: str | timedelta) -> int:
    """Return a duration in milliseconds, given as ``"10m"``, ``"1h30m"``, ``"-5s"`` or a `timedelta`; 0 needs no unit.

    Raises `ConfigError` for a number other than 0, because it has no unit; for any other value that is no duration; for a
    `timedelta` that is not a whole number of milliseconds; and for more than 10,000 years.
    """
    # User code may pass any object.
    given: object = value
    if isinstance(given, timedelta):
        if given % _MILLISECOND:
            raise ConfigError(
                "duration-finer-than-millisecond",
                "the duration {given} is finer than a millisecond: round it",
                given=repr(value),
            )
        return _in_range(given // _MILLISECOND, value)
    if _is_number(given):
        if given == 0:
            return 0
        raise ConfigError(
            "duration-without-unit",
            "the duration {given} has no unit: write it like 500ms, 10s, 30m, 1h30m, 2d or 1w",
            given=repr(value),
        )
    text = given.strip() if isinstance(given, str) else ""
    if text == "0":
        return 0
    if not _WHOLE.fullmatch(text):
        raise ConfigError(
            "duration-not-understood",
            "{given} is not a duration: write it like 500ms, 10s, 30m, 1h30m, 2d or 1w",
            given=repr(value),
        )
    total = sum(int(number) * _UNIT_MS[unit] for number, unit in _PART.findall(text))
    return _in_range(-total if text.startswith("-") else total, value)


def time_to_ms(value: str | int | timedelta) -> int:
    """Return a point in time in epoch milliseconds, given as an int of epoch milliseconds or as a duration since 1970.

    Raises `ConfigError` as `to_ms` does.
    """
    return value if type(value) is int else to_ms(value)  # type: ignore[arg-type]  # to_ms refuses other numbers


def in_words(duration_ms: int) -> str:
    """Return a duration as text that `to_ms` can read (``"1h30m"``), or ``"forever"`` for more than 10,000 years."""
    if duration_ms > LONGEST_MS:
        return "forever"
    parts, rest = [], abs(duration_ms)
    for unit, unit_ms in _UNIT_MS.items():
        if unit != "w" and rest >= unit_ms:
            parts.append(f"{rest // unit_ms}{unit}")
            rest %= unit_ms
    return ("-" if duration_ms < 0 else "") + ("".join(parts) or "0s")


def _is_number(value: object) -> bool:
    """Return whether a value is a number. ``bool`` and numpy's ``timedelta64`` are number classes, but do not count here."""
    if isinstance(value, bool) or type(value).__name__ == "timedelta64":
        return False
    return isinstance(value, Real | Decimal)


def _in_range(duration_ms: int, given: object) -> int:
    if abs(duration_ms) > LONGEST_MS:
        raise ConfigError(
            "duration-out-of-range",
            "the duration {given} is out of range: use at most 10,000 years",
            given=repr(given),
        )
    return duration_ms


def at_or_after(now: int, shift: int, interval: int) -> int:
    """Return the first point ``shift + k * interval`` (for an integer k) at or after ``now``."""
    return now + (shift - now) % interval


def strictly_after(now: int, shift: int, interval: int) -> int:
    """Return the first point ``shift + k * interval`` (for an integer k) after ``now``."""
    return now + interval - (now - shift) % interval
