"""What is wrong with the text of a value of some type, as the end of a sentence that begins with the value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from rewindow.contracts.decimal_texts import (
    BY_COMMAS,
    BY_POINTS,
    DEFAULT_LOCALE,
    UNCERTAIN,
    begins_with_comma,
    beyond_decimal,
    told_decimal,
    told_uncertain,
)
from rewindow.contracts.instants import instant
from rewindow.contracts.time_units import MS, UNITS, as_ms, unit_of_text
from rewindow.engine.worker.csv_files import stated_encoding
from rewindow.engine.worker.double_texts import NUMBER, wrong_text
from rewindow.engine.worker.time_texts import Verdict, judge_text

WHOLE = ("byte", "short", "integer", "long")
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_LOST = "\ufffd"
_WHOLE_DATE = re.compile(r"\s*\+?(\d{4})-(\d{1,2})-(\d{1,2})\s*")
_DATELESS = re.compile(r"\s*T?\d{1,2}(:\d{1,2})+(\.\d*)?\s*")


def wrong_value(value: str, kind: Any, options: Mapping[str, str]) -> str | None:
    """Return what is wrong with a CSV value of a type; None if nothing is, or if unknown."""
    if kind in WHOLE:
        if re.fullmatch(r"\s*[+-]?\d+\s*", value):
            return too_large(int(value), kind)
        return not_whole(value) if NUMBER.fullmatch(value) else "is not a number"
    if kind in {"float", "double"}:
        return wrong_text(value, kind, options)
    if str(kind).startswith("decimal"):
        return _wrong_decimal(value, kind, options.get("locale"))
    if kind == "string" and _LOST in value and stated_encoding(options) is None:
        return (
            "has the character U+FFFD, which stands for characters that were lost. If it belongs there, add "
            "`options: {encoding: UTF-8}` to the source"
        )
    if kind == "boolean":
        return None if value.strip().lower() in {"true", "false"} else "is not true or false"
    return wrong_time(value, kind, options)


def wrong_time(value: str, kind: Any, options: Mapping[str, str]) -> str | None:
    """Return what is wrong with a text of a time or date; None if nothing is, nobody can tell, or the type is another one.

    Spark reads it in the stated form only, or without one in that of ISO 8601.
    """
    is_date, is_time = kind == "date", str(kind).startswith("timestamp")
    if not (is_date or is_time):
        return None
    what, option = ("date", "dateFormat") if is_date else ("time", "timestampFormat")
    form = options.get("timestampntzformat" if kind == "timestamp_ntz" else option.lower())
    if form is not None:
        is_wrong = judge_text(value, form, is_only=True) is Verdict.NONE
        return f"is not a {what} in the form `{option}: {form}`{as_number(value)}" if is_wrong else None
    if is_date and (parts := _WHOLE_DATE.fullmatch(value)):
        return None if _is_day(*map(int, parts.groups())) else "is no day of the calendar"
    if _reads(datetime, value):
        is_time = is_date and ":" in value
        return "is a time, and this column has dates. Write the date alone" if is_time else None
    if is_time and _DATELESS.fullmatch(value):
        return "is a time without a date. If all of its values are, declare the column as STRING under `schema:`"
    if is_time and (number := as_number(value)):
        return f"is not a time{number}"
    example = "dd.MM.yyyy" if is_date else "dd.MM.yyyy HH:mm"
    hint = f'If the file has {what}s in another form, give it to the source, like `options: {{{option}: "{example}"}}`'
    return f"is not a {what}. {hint}"


def as_number(text: str) -> str:
    """Return that a text seems to be a time as a number of some unit, as the end of a sentence; empty if it does not."""
    unit = unit_of_text(text.strip())
    if unit is None:
        return ""
    declared = "" if unit == MS else f" with `units: {{COLUMN: {unit}}}`"
    return (
        f": it seems to be {UNITS[unit]} since 1970 ({instant(as_ms(int(text), unit))}). Write it in the form of other values. "
        f"Only if all files have numbers, the column can be a BIGINT{declared}"
    )


def not_whole(text: str) -> str:
    """Return what is wrong with a number that is no whole one, or not written as one."""
    if not re.fullmatch(r"\s*[+-]?\d+\.0*\s*", text):
        return "is not a whole number"
    return "is not written as a whole number: write it without a point, or declare the column as DOUBLE"


def too_large(value: int, kind: str) -> str | None:
    """Return what is wrong with a whole number of a type; None if it fits."""
    most = 1 << _BITS[kind] - 1
    return None if -most <= value < most else f"does not fit {kind.upper()} of {_BITS[kind]} bits"


def _wrong_decimal(value: str, kind: str, stated: str | None) -> str | None:
    """Return what is wrong with a decimal; None if nothing is, or nobody can tell: locales have symbols of their own."""
    if stated is None and re.search(UNCERTAIN, value):
        return told_uncertain(value)
    locale = stated or DEFAULT_LOCALE
    is_comma = begins_with_comma(locale)
    separator, groups = (".", BY_POINTS) if is_comma else (",", BY_COMMAS)
    if separator in value and re.search(groups, value) is None:
        return told_decimal(locale)
    if locale.lower().replace("_", "-") == DEFAULT_LOCALE.lower():
        is_number = NUMBER.fullmatch(value.replace(",", "")) is not None
    else:
        is_number = any(letter.isdigit() for letter in value) and not any(
            letter.isalpha() for letter in value.replace("E", "")
        )
    number = value.replace(separator, "").replace(",", ".")
    return beyond_decimal(number, kind) if is_number else "is not a number"


def _reads(kind: type[date], value: str) -> bool:
    try:
        kind.fromisoformat(value.strip())
    except ValueError:
        return False
    return True


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True
