"""Whether a text of a source is a valid time, as far as that can be told without Spark. It serves messages, not landings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from enum import Enum

_FIELDS: Mapping[str, tuple[str, str]] = {
    "yyyy": ("year", r"\d{4}"),
    "uuuu": ("year", r"\d{4}"),
    "MM": ("month", r"\d{2}"),
    "M": ("month", r"\d{1,2}"),
    "dd": ("day", r"\d{2}"),
    "d": ("day", r"\d{1,2}"),
    "HH": ("hour", r"\d{2}"),
    "H": ("hour", r"\d{1,2}"),
    "mm": ("minute", r"\d{2}"),
    "m": ("minute", r"\d{1,2}"),
    "ss": ("second", r"\d{2}"),
    "s": ("second", r"\d{1,2}"),
}
_PARTS = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']")
_ISO = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[ T](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
)
_LIKE_ISO = re.compile(r"\s*[+-]?\d{4,6}(-\d.*)?\s*", re.DOTALL)
"""Forms that Spark may still read."""


class Verdict(Enum):
    """What a text is: a time, none, or one that only Spark can judge."""

    TIME = "time"
    NONE = "none"
    UNSURE = "unsure"


def judge_text(text: str, form: str | None, *, is_only: bool = False) -> Verdict:
    """Return whether a text is a time, in a form of Java (``dd.MM.yyyy HH:mm``) or in that of ISO 8601.

    ``is_only``: only in the form, if there is one.
    """
    pattern = None if form is None else _pattern(form)
    if form is not None and pattern is None:
        return Verdict.UNSURE
    if is_only and pattern is not None:
        found = pattern.fullmatch(text)
        return Verdict.TIME if found and _exists(found) else Verdict.NONE
    for known in (pattern, _ISO):
        if known is not None and (found := known.fullmatch(text)):
            return Verdict.TIME if _exists(found) else Verdict.NONE
    return Verdict.UNSURE if _LIKE_ISO.fullmatch(text) else Verdict.NONE


def _pattern(form: str) -> re.Pattern[str] | None:
    """Return the pattern of a form; None if it has other parts than numbers and signs."""
    parts, at = [], 0
    names: set[str] = set()
    while at < len(form):
        found = _PARTS.match(form, at)
        if found is None or found[0] in "[]{}#":
            return None
        at = found.end()
        if found[2] is None:
            parts.append(re.escape(found[1] if found[0].startswith("'") else found[0]))
            continue
        if found[0][0] == "S":
            parts.append(rf"\d{{{len(found[0])}}}")
            continue
        name, digits = _FIELDS.get(found[0], ("", ""))
        if not name or name in names:
            return None
        names.add(name)
        parts.append(f"(?P<{name}>{digits})")
    return re.compile("".join(parts)) if {"year", "month", "day"} <= names else None


def _exists(found: re.Match[str]) -> bool:
    given = {name: int(digits) for name, digits in found.groupdict().items() if digits is not None}
    try:
        datetime(**{"hour": 0, **given})  # type: ignore[arg-type]  # noqa: DTZ001 - any zone will do
    except ValueError:
        return False
    return True
