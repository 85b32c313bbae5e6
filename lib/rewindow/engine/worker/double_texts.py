"""Texts of floating-point numbers: which are none, and which no DOUBLE or FLOAT holds, so that parsers make them infinite."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rewindow.contracts.decimal_texts import AGAIN

USUAL = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"
"""The pattern of a number, also for Spark."""
OF_JAVA = r"[0-9.][dDfF]\s*$|0[xX]"
"""What Java, and so Spark, takes for a number besides: ``7D`` and ``7F`` are 7, and ``0x1p3`` is 8. They may well be codes."""
NUMBER = re.compile(USUAL + r"|[+-]?(NaN|Inf|Infinity)")
CONSTANTS_OPTION = "allowNonNumericNumbers"
"""Spark's option for NaN and Infinity, which are not JSON: by default Spark takes them, rewindow does not."""
INFINITIES: Mapping[str, str] = {"positiveinf": "Inf", "negativeinf": "-Inf"}
"""Spark's options that state how a csv file writes infinite numbers, and their defaults."""
_CODE = ". If such values are codes, declare the column as STRING under `schema:`"
_COMMA_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+")
_FIRST_BEYOND: Mapping[str, int] = {"float": 2**128 - 2**103, "double": 2**1024 - 2**970}
"""The least number that is rounded to infinity."""


def takes_infinity(source_format: str, options: Mapping[str, str]) -> bool:
    """Return whether a source states that its files have infinite numbers. The names of ``options`` are in lower case."""
    if source_format == "csv":
        return not INFINITIES.keys().isdisjoint(options)
    return options.get(CONSTANTS_OPTION.lower(), "false").lower() == "true"


def infinities(options: Mapping[str, str]) -> list[str]:
    """Return the texts of infinity in a csv file. The names of ``options`` are in lower case."""
    return [options.get(name, default) for name, default in INFINITIES.items()]


def wrong_text(text: str, kind: str, options: Mapping[str, str]) -> str | None:
    """Return what is wrong with a csv text of a DOUBLE or FLOAT, as the end of a sentence; None if nothing is."""
    has_infinity = takes_infinity("csv", options)
    if text == options.get("nanvalue") or (has_infinity and text in infinities(options)):
        return None
    if NUMBER.fullmatch(text):
        if not is_beyond(float(text), kind):
            return None
        fix = "" if has_infinity else ". If the files mean infinity, state how, like `options: {positiveInf: Inf}`"
        return f"is beyond the numbers of {kind.upper()}{fix}"
    if not _COMMA_NUMBER.fullmatch(text.strip()):
        return f"is not a number{_CODE if re.search(OF_JAVA, text) else ''}"
    return (
        "is not a number. If commas begin the fractions of all files, declare the column as DECIMAL(12,2), add "
        f"`options: {{locale: de-DE}}` to the source, {AGAIN}"
    )


def is_beyond(number: float, kind: str) -> bool:
    """Return whether a type holds a number only as infinity, or not at all."""
    return abs(number) >= _FIRST_BEYOND[kind]
