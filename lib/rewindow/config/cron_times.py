"""When a valid cron schedule fires. If both day and weekday are restricted, either of them suffices, as in cron."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo

_WORDS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_MONTHS: Final = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_WEEKDAYS: Final = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_DAYS: Final = 366 * 8
"""A schedule that fires at all fires within so many days: on 29 February, every eighth year at the latest."""


def last_firings(cron: str, before_ms: int, zone: str, count: int) -> list[int]:
    """Return the last ``count`` times (epoch ms) at or before a time at which a schedule fired, newest first.

    Raises `ValueError` for a form that this module does not know.
    """
    minutes, hours, days, months, weekdays = _WORDS.get(cron, cron).split()
    at_minutes, at_hours = _values(minutes, 0, 59, {}), _values(hours, 0, 23, {})
    at_months = _values(months, 1, 12, _MONTHS)
    now = datetime.fromtimestamp(before_ms / 1000, ZoneInfo(zone))

    def firings() -> Iterator[int]:
        for passed in range(_DAYS):
            day = now.date() - timedelta(days=passed)
            if day.month not in at_months or not _is_on(day, days, weekdays):
                continue
            for hour in sorted(at_hours, reverse=True):
                for minute in sorted(at_minutes, reverse=True):
                    local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=ZoneInfo(zone))
                    if (at_ms := round(local.timestamp() * 1000)) <= before_ms:
                        yield at_ms

    return list(islice(firings(), count))


def _is_on(day: date, days: str, weekdays: str) -> bool:
    any_day, any_weekday = days in ("*", "?"), weekdays in ("*", "?")
    of_month = any_day or any(_is_day(day, part) for part in days.split(","))
    of_week = any_weekday or any(_is_weekday(day, part) for part in weekdays.split(","))
    return of_month and of_week if any_day or any_weekday else of_month or of_week


def _is_day(day: date, part: str) -> bool:
    if part.lower() == "l":
        return day.day == calendar.monthrange(day.year, day.month)[1]
    return day.day in _values(part, 1, 31, {})


def _is_weekday(day: date, part: str) -> bool:
    name, _, ordinal = part.partition("#")
    number = day.isoweekday() % 7
    return number in {value % 7 for value in _values(name, 0, 7, _WEEKDAYS)} and (
        not ordinal or (day.day + 6) // 7 == int(ordinal)
    )


def _values(field: str, low: int, high: int, names: dict[str, int]) -> set[int]:
    """Return the numbers that a field stands for."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span in ("*", "?"):
            first, last = low, high
        else:
            begin, _, end = span.partition("-")
            first = _number(begin, names)
            last = _number(end, names) if end else high if step else first
        if last < first:  # such as fri-mon
            found.update(range(first, high + 1, int(step or 1)))
            first = low
        found.update(range(first, last + 1, int(step or 1)))
    return found


def _number(text: str, names: dict[str, int]) -> int:
    return names[text.lower()] if text.lower() in names else int(text)
