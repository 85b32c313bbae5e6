"""Durations as text (``"1h30m"``), and points on a time grid. All results are in milliseconds."""

from __future__ import annotations

import re
from datetime import timedelta

from rewindow.errors import ConfigError

_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = re.compile(r"(\d+)(ms|[smhdw])")
_WHOLE = re.compile(r"-?(?:\d+(?:ms|[smhdw]))+")


def to_ms(value: str | int | timedelta) -> int:
    """Return a duration in milliseconds, given as ``"10m"``, ``"1h30m"``, ``"-5s"``, a `timedelta`, or an int of milliseconds.

    Raises `ConfigError` for anything else, and for a `timedelta` finer than a millisecond.
    """
    if isinstance(value, timedelta):
        if value.microseconds % 1000:
            message = f"the duration {value!r} is finer than a millisecond: round it"
            raise ConfigError(message)
        return value // timedelta(milliseconds=1)
    if isinstance(value, int):
        return value
    given: object = value  # user code may pass anything
    text = given.strip() if isinstance(given, str) else ""
    if text == "0":
        return 0
    if not _WHOLE.fullmatch(text):
        message = f"{value!r} is not a duration: write it like 500ms, 10s, 30m, 1h30m, 2d or 1w"
        raise ConfigError(message)
    total = sum(int(number) * _UNIT_MS[unit] for number, unit in _PART.findall(text))
    return -total if text.startswith("-") else total


def at_or_after(now: int, shift: int, interval: int) -> int:
    """Return the first point ``shift + k * interval`` (for an integer k) at or after ``now``."""
    return now + (shift - now) % interval


def strictly_after(now: int, shift: int, interval: int) -> int:
    """Return the first point ``shift + k * interval`` (for an integer k) after ``now``."""
    return now + interval - (now - shift) % interval
