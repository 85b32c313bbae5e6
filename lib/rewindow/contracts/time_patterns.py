"""Patterns of times in text files, such as ``dd.MM.yyyy HH:mm``: each part once, and nothing else is accepted. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_PARTS: Mapping[str, tuple[str, str]] = {
    "yyyy": ("year", "[0-9]{4}"),
    "yy": ("short_year", "[0-9]{2}"),
    "MM": ("month", "[0-9]{2}"),
    "M": ("month", "[0-9]{1,2}"),
    "MMM": ("month_name", "[A-Za-z]{3}"),
    "dd": ("day", "[0-9]{2}"),
    "d": ("day", "[0-9]{1,2}"),
    "HH": ("hour", "[0-9]{2}"),
    "H": ("hour", "[0-9]{1,2}"),
    "hh": ("half_hour", "[0-9]{2}"),
    "h": ("half_hour", "[0-9]{1,2}"),
    "a": ("half", "[AaPp][Mm]"),
    "mm": ("minute", "[0-9]{2}"),
    "ss": ("second", "[0-9]{2}"),
    **{"S" * digits: ("fraction", f"[0-9]{{{digits}}}") for digits in range(1, 10)},
    "XXX": ("offset", "Z|[+-][0-9]{2}:[0-9]{2}"),
}
"""Letters of a pattern: the part that they stand for, and its form."""
_ONE_OF = (("year", "short_year"), ("month", "month_name"), ("hour", "half_hour"))
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


@dataclass(frozen=True, slots=True)
class TimePattern:
    """A pattern as a regular expression, with a named group for each of its parts."""

    pattern: str
    regex: str
    parts: frozenset[str]

    @property
    def has_time(self) -> bool:
        """Whether the pattern has a time of day. Without one, it is a pattern of dates."""
        return not self.parts.isdisjoint({"hour", "half_hour"})


def time_pattern(pattern: str) -> TimePattern:
    """Return a pattern. Raises `ValueError` for letters that are no part, and for a part that is missing or occurs twice."""
    found: list[str] = []
    parts: list[str] = []
    end = 0
    follows = is_open_before = False
    for token in _TOKEN.finditer(pattern):
        if token.start() != end:
            break
        end = token.end()
        if token[2] is None:
            literal = token[0] if token[1] is None else token[1].replace("''", "'") or "'"
            found.append(re.escape(literal))
            follows = False
            continue
        part, form = _PARTS.get(token[0], ("", ""))
        if not part:
            letters = ", ".join(letters for letters in _PARTS if len(letters) < 5)
            raise ValueError(f"{token[0]} in the pattern {pattern!r} is no part of a time: use {letters}")
        if part in parts:
            raise ValueError(f"the pattern {pattern!r} has the {part.replace('_', ' ')} twice")
        is_open = form.endswith("{1,2}")
        if follows and (is_open or is_open_before):
            raise ValueError(
                f"in the pattern {pattern!r}, nothing divides {token[0]} from what is before it: use two letters"
            )
        is_open_before, follows = is_open, True
        parts.append(part)
        found.append(f"(?P<{part}>{form})")
    if end != len(pattern):
        raise ValueError(f"the pattern {pattern!r} has a quote without its end")
    _check(pattern, frozenset(parts))
    return TimePattern(pattern, "^" + "".join(found) + "$", frozenset(parts))


def _check(pattern: str, parts: frozenset[str]) -> None:
    for one, other in _ONE_OF:
        if one in parts and other in parts:
            raise ValueError(f"the pattern {pattern!r} has the {one} twice")
    months = "MM is the month, mm the minute"
    needs = [
        (parts & {"year", "short_year"}, "a year (yyyy)"),
        (parts & {"month", "month_name"}, f"a month (MM; {months})"),
        ("day" in parts, "a day (dd)"),
        (("half_hour" in parts) == ("half" in parts), "both hh and a, or HH"),
        ("minute" not in parts or parts & {"hour", "half_hour"}, f"hours (HH) before minutes ({months})"),
        ("second" not in parts or "minute" in parts, "minutes (mm) before seconds"),
        ("fraction" not in parts or "second" in parts, "seconds (ss) before their fraction"),
        ("offset" not in parts or parts & {"hour", "half_hour"}, "hours (HH) beside an offset"),
    ]
    for has, what in needs:
        if not has:
            raise ValueError(f"the pattern {pattern!r} needs {what}")
