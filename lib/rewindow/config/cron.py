"""Cron schedules: five fields, looked at when they are read, so that a scheduler has nothing to refuse."""

from __future__ import annotations

import re
from typing import Final

_WORD = re.compile(r"@(?:hourly|daily|weekly|monthly|yearly)")
_CRON = re.compile(r"(?:[A-Za-z0-9*/,#?L-]+ +){4}[A-Za-z0-9*/,#?L-]+")
_NUMBER = re.compile(r"(?<![/#\d])\d+")
"""Of a minute, an hour, ...: not of a step (``*/15``), nor of the second Monday (``1#2``)."""

_STEP_0 = re.compile(r"/0+(?!\d)")
_FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ("l",)),
    ("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    ("weekday", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
_LONGEST: Final = {"2": 29, "feb": 29} | dict.fromkeys(("4", "apr", "6", "jun", "9", "sep", "11", "nov"), 30)
"""Months without a 31st, as they are written."""


def valid_cron(text: str) -> str:
    """Return a cron schedule as it is. Raises `ValueError` that says what of it is wrong, and how it is written."""
    if _WORD.fullmatch(text):
        return text
    if not _CRON.fullmatch(text):
        raise ValueError(f'{text!r} is no cron schedule: write five fields in quotes, like "10 * * * *", or "@daily"')
    for field, (name, low, high, words) in zip(text.split(), _FIELDS, strict=True):
        for number in _NUMBER.findall(field):
            if not low <= int(number) <= high:
                raise ValueError(f"{text!r} is no cron schedule: the {name} {number} is not in {low} to {high}")
        for word in re.findall(r"[A-Za-z]+", field):
            if word.lower() not in words:
                raise ValueError(f"{text!r} is no cron schedule: {word!r} is no {name}")
        if _STEP_0.search(field):
            raise ValueError(f"{text!r} is no cron schedule: the {name} has a step of 0")
    _, _, day, month, weekday = text.split()
    longest = max(_LONGEST.get(one.lower().lstrip("0"), 31) for one in month.split(","))
    if weekday == "*" and all(one.isdigit() and int(one) > longest for one in day.split(",")):
        raise ValueError(f"{text!r} would never run: the month {month} has no day {day}")
    return text
