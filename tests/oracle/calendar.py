"""Windows in local time, with the calendar of Python's datetime and zoneinfo."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from rewindow.streams.record import Window

_DAY = 86_400_000
_LONGEST = {"m": 60_000, "h": 3_600_000, "d": _DAY, "w": 7 * _DAY, "mo": 31 * _DAY, "q": 92 * _DAY, "y": 366 * _DAY}
_MONTHS = {"mo": 1, "q": 3, "y": 12}


def longest(windows: Mapping[str, Any]) -> int:
    """Return an upper bound of the windows' size."""
    return int(windows["steps"] * windows["step"] * _LONGEST[windows["unit"]] + 3 * 3_600_000)


def calendar_windows(windows: Mapping[str, Any], timestamp: int) -> list[Window]:
    """Return the windows that contain a time, by start."""
    zone = ZoneInfo(windows["zone"])
    steps: int = windows["steps"]
    shown = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp)).astimezone(zone).replace(tzinfo=None)
    point = _plus(windows, _floor(windows, shown), -steps - 1)
    found: dict[int, int] = {}
    while (start := _instant(point, zone)) <= timestamp:
        end = _instant(_plus(windows, point, steps), zone)
        if end > timestamp:
            # Where the clock skips points, the last one counts.
            found[max(0, start)] = end
        point = _plus(windows, point, 1)
    return [Window(start, end) for start, end in found.items()]


def _floor(windows: Mapping[str, Any], time: datetime) -> datetime:
    day = time.replace(hour=0, minute=0, second=0, microsecond=0)
    match windows["unit"]:
        case "m" | "h":
            step = timedelta(milliseconds=windows["step"] * _LONGEST[windows["unit"]])
            return day + (time - day) // step * step
        case "d":
            return day
        case "w":
            return day - timedelta(days=day.weekday())
    months = _MONTHS[windows["unit"]]
    return day.replace(day=1, month=(day.month - 1) // months * months + 1)


def _plus(windows: Mapping[str, Any], point: datetime, count: int) -> datetime:
    unit, step = windows["unit"], windows["step"]
    if unit not in _MONTHS:
        return point + count * step * timedelta(milliseconds=_LONGEST[unit])
    year, month = divmod(point.year * 12 + point.month - 1 + count * step * _MONTHS[unit], 12)
    return point.replace(year=year, month=month + 1)


def _instant(point: datetime, zone: ZoneInfo) -> int:
    """Return the instant of a local time: the first one after a gap, the earlier one of two."""
    first, second = (point.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return round(first.timestamp() * 1000)
    if first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == point:
        return round(first.timestamp() * 1000)
    # In a gap, the two readings lie on both sides of the change: search for the first instant after it.
    low, high = sorted(round(one.timestamp() * 1000) for one in (first, second))
    before = _offset(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(middle, zone) == before else (low, middle)
    return high


def _offset(time: int, zone: ZoneInfo) -> timedelta | None:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time)).astimezone(zone).utcoffset()
