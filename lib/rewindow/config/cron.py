"""Cron schedules of five fields, validated when the configuration is read, before a scheduler sees them."""

from __future__ import annotations

import re
from typing import Final

_WORD = re.compile(r"@(?:hourly|daily|weekly|monthly|yearly)")
_CRON = re.compile(r"(?:[A-Za-z0-9*/,#?L-]+ +){4}[A-Za-z0-9*/,#?L-]+")
_NUMBER = re.compile(r"(?<![/#\d])\d+")
"""A value of a field, but not a step (``*/15``) or an ordinal (``1#2``, the second Monday)."""

_STEP_0 = re.compile(r"/0+(?!\d)")
_FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ("l",)),
    ("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    ("weekday", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
_LONGEST: Final = {"2": 29, "feb": 29} | dict.fromkeys(("4", "apr", "6", "jun", "9", "sep", "11", "nov"), 30)
"""Days of the months that have no 31st, by number and by name."""


def valid_cron(text: str) -> str:
    """Return a valid cron schedule unchanged. Raises `ValueError`, which names the wrong field, for an invalid one."""
    if _WORD.fullmatch(text):
        return text
    if not _CRON.fullmatch(text):
        raise ValueError(
            f'{text!r} is not a cron schedule: write five fields in quotes, like "10 * * * *", or "@daily"'
        )
    for field, (name, low, high, words) in zip(text.split(), _FIELDS, strict=True):
        for number in _NUMBER.findall(field):
            if not low <= int(number) <= high:
                raise ValueError(
                    f"{text!r} is not a cron schedule: {name} {number} is not in the range {low} to {high}"
                )
        for word in re.findall(r"[A-Za-z]+", field):
            if word.lower() not in words:
                raise ValueError(f"{text!r} is not a cron schedule: {word!r} is not a valid {name}")
        if _STEP_0.search(field):
            raise ValueError(f"{text!r} is not a cron schedule: the {name} has a step of 0")
    _, _, day, month, weekday = text.split()
    longest = max(_LONGEST.get(part.lower().lstrip("0"), 31) for part in month.split(","))
    if weekday == "*" and all(part.isdigit() and int(part) > longest for part in day.split(",")):
        raise ValueError(f"{text!r} would never run: month {month} has no day {day}")
    return text
