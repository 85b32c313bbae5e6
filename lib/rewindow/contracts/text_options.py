"""The options of text files: what a source's ``options:`` may contain, and what it means.

Until 0.4, Spark's name of an option is accepted if an option here has the same meaning. Any other option is refused by name.
rewindow reads text by its own rules (docs/guides/text-files.md), and would otherwise silently ignore the option.

Times have patterns such as ``dd.MM.yyyy HH:mm``. A pattern has only the parts in `_PARTS`, each at most once.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rewindow.contracts.ingest import SourceSpec

CSV, JSON = "csv", "json"
TEXT_FORMATS = (CSV, JSON)
_OTHERWISE = "For anything else, write Parquet or Delta with any tool, and land that"
_GROUPS = frozenset({"", ".", ",", "'", "\u2019", " ", "\u00a0", "\u202f"})
"""What may separate groups of digits in a number: nothing, punctuation, and blanks of any width."""
_LOCALES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("en-us", "en-gb"), (".", ",")),
    **dict.fromkeys(("de-de", "es-es", "it-it", "nl-nl", "pt-br"), (",", ".")),
    "fr-fr": (",", "\u202f"),
}
"""Maps each value of Spark's option ``locale`` to the decimal separator and the separator between groups of digits."""


@dataclass(frozen=True, slots=True)
class TextOptions:
    """The format of a source's text files."""

    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    encoding: str = "utf-8"
    null: str = ""
    decimal: str = "."
    thousands: str = ""
    is_for_decimals: bool = False
    """Whether ``decimal`` and ``thousands`` apply only to DECIMAL columns, as with Spark's ``locale``."""
    time: TimePattern | None = None
    """The pattern of all TIMESTAMP columns."""
    date: TimePattern | None = None
    """The pattern of all DATE columns."""
    by_column: Mapping[str, TimePattern] = field(default_factory=dict)
    zone: str | None = None
    skip_rows: int = 0
    is_multiple: bool = False
    """Whether a record may continue in the next line (``lines: multiple``)."""
    infer: bool = True
    constants: Mapping[str, str] = field(default_factory=dict)
    """Maps each special text in a DOUBLE column to its value: ``nan``, ``inf`` or ``-inf``."""

    @property
    def is_utf_8(self) -> bool:
        """Whether the files are in UTF-8, which needs no conversion."""
        return self.encoding == "utf-8"

    @property
    def is_divisible(self) -> bool:
        """Whether a reader can find the beginning of a line without reading the file before it."""
        return not self.is_multiple and not self.skip_rows and _keeps_ascii(self.encoding)


_Apply = Callable[[TextOptions, Any], TextOptions]


def _date_format(found: TextOptions, value: Any) -> TextOptions:
    pattern = _pattern(value)
    if pattern.has_time:
        raise ValueError(f"the pattern {value!r} for dates contains a time of day")
    return replace(found, date=pattern)


def _encoding(value: Any) -> str:
    try:
        name = codecs.lookup(str(value)).name
        "".encode(name)
    except (LookupError, UnicodeError) as error:
        raise ValueError(
            f"{value} is not an encoding that Python knows, such as ISO-8859-1, cp1252 or UTF-16"
        ) from error
    return "utf-8" if name == "utf-8-sig" else name


def _flag(value: Any) -> bool:
    text = str(value).lower()
    if text not in {"true", "false"}:
        raise ValueError(f"{value} is neither true nor false")
    return text == "true"


def _lines(value: Any) -> bool:
    if str(value) not in {"single", "multiple"}:
        raise ValueError(f"{value} is neither single nor multiple")
    return str(value) == "multiple"


def _pattern(value: Any) -> TimePattern:
    return _time_pattern(str(value))


def _set(name: str, convert: Callable[[Any], Any]) -> _Apply:
    return lambda found, value: replace(found, **{name: convert(value)})


def _time_format(found: TextOptions, value: Any) -> TextOptions:
    if isinstance(value, Mapping):
        return replace(found, by_column={str(column): _pattern(one) for column, one in value.items()})
    pattern = _pattern(value)
    return replace(found, time=pattern) if pattern.has_time else replace(found, date=pattern)


_OF_BOTH: Mapping[str, tuple[str, _Apply]] = {
    "encoding": ("encoding", _set("encoding", _encoding)),
    "lines": ("lines", _set("is_multiple", _lines)),
    "time_format": ("time_format", _time_format),
    "zone": ("zone", _set("zone", str)),
    "charset": ("encoding", _set("encoding", _encoding)),
    "multiLine": ("lines", _set("is_multiple", _flag)),
    "timestampFormat": ("time_format", _set("time", _pattern)),
    "dateFormat": ("date_format", _date_format),
    "timeZone": ("zone", _set("zone", str)),
}
"""Maps each option name that both formats accept to the option that it means, and to the function that sets its value."""


def _constants(found: TextOptions, more: Mapping[str, str]) -> TextOptions:
    return replace(found, constants={**found.constants, **more})


def _decimal(value: Any) -> str:
    if str(value) not in {".", ","}:
        raise ValueError(f"{value!r} cannot separate a fraction: use . or ,")
    return str(value)


def _locale(found: TextOptions, value: Any) -> TextOptions:
    signs = _LOCALES.get(str(value).replace("_", "-").lower())
    if signs is None:
        raise ValueError(f"{value} is not known. Write `decimal:` and `thousands:` instead")
    return replace(found, decimal=signs[0], thousands=signs[1], is_for_decimals=True)


def _rows(value: Any) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{value} is not a number of lines")
    return int(text)


def _sign(value: Any) -> str:
    text = str(value).replace("\\t", "\t")
    if len(text) != 1 or not text.isascii() or text in "\r\n\0":
        raise ValueError(f"{value!r} is not one ASCII character. {_OTHERWISE}")
    return text


def _sign_or_none(value: Any) -> str:
    return "" if str(value) == "" else _sign(value)


def _thousands(value: Any) -> str:
    if str(value) not in _GROUPS:
        raise ValueError(f"{value!r} cannot separate groups of digits: use . or , or ' or a blank")
    return str(value)


_OF_CSV: Mapping[str, tuple[str, _Apply]] = {
    "header": ("header", _set("header", _flag)),
    "delimiter": ("delimiter", _set("delimiter", _sign)),
    "quote": ("quote", _set("quote", _sign_or_none)),
    "escape": ("escape", _set("escape", _sign_or_none)),
    "null": ("null", _set("null", str)),
    "decimal": ("decimal", _set("decimal", _decimal)),
    "thousands": ("thousands", _set("thousands", _thousands)),
    "skip_rows": ("skip_rows", _set("skip_rows", _rows)),
    "infer": ("infer", _set("infer", _flag)),
    **_OF_BOTH,
    "sep": ("delimiter", _set("delimiter", _sign)),
    "locale": ("decimal", _locale),
    "nullValue": ("null", _set("null", str)),
    "inferSchema": ("infer", _set("infer", _flag)),
    "positiveInf": ("positiveInf", lambda found, value: _constants(found, {str(value): "inf", "-Inf": "-inf"})),
    "negativeInf": ("negativeInf", lambda found, value: _constants(found, {str(value): "-inf", "Inf": "inf"})),
    "nanValue": ("nanValue", lambda found, value: _constants(found, {str(value): "nan"})),
}
_OF_JSON: Mapping[str, tuple[str, _Apply]] = {
    **_OF_BOTH,
    "allowNonNumericNumbers": (
        "allowNonNumericNumbers",
        lambda found, value: _constants(
            found, {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"} if _flag(value) else {}
        ),
    ),
}
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
    "XX": ("offset", "Z|[+-][0-9]{4}"),
    "XXX": ("offset", "Z|[+-][0-9]{2}:[0-9]{2}"),
}
"""Maps each group of letters in a pattern to the part of a time that it means, and to the regular expression of its text."""
_ONE_OF = (("year", "short_year"), ("month", "month_name"), ("hour", "half_hour"))
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


def text_options(source_format: str, given: Mapping[str, Any]) -> TextOptions:
    """Return the options of a csv or json source. Raises `ValueError`, which says what to do, for a wrong option."""
    known = _OF_CSV if source_format == CSV else _OF_JSON
    found = TextOptions()
    lower = {name.lower(): name for name in known}
    seen: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() not in lower:
            raise ValueError(_refused(source_format, name))
        option, apply = known[lower[name.lower()]]
        if option in seen:
            raise ValueError(f"{seen[option]} and {name} are two names of one option: remove one of them")
        seen[option] = name
        try:
            found = apply(found, value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    if found.escape and found.escape == found.quote:  # this is how Spark says that quotes are doubled
        found = replace(found, escape="")
    if found.delimiter in {found.quote, found.escape}:
        raise ValueError("delimiter, quote and escape must be different characters")
    if found.thousands == found.decimal:
        raise ValueError("decimal and thousands must be different characters")
    return found


@dataclass(frozen=True, slots=True)
class TimePattern:
    """A pattern of times, and its regular expression with a named group for each part."""

    pattern: str
    regex: str
    parts: frozenset[str]

    @property
    def has_time(self) -> bool:
        """Whether the pattern has a time of day. A pattern without a time of day is for dates."""
        return not self.parts.isdisjoint({"hour", "half_hour"})


def other_form(source: SourceSpec, column: str) -> str:
    """Return the beginning of a message: advice for times in another form. ``""`` if the source is not a text file."""
    if source.format not in TEXT_FORMATS:
        return ""
    options = text_options(source.format, source.options)
    pattern = options.by_column.get(column) or options.time
    if pattern is not None:
        return f"Times of {column} have the form {pattern.pattern!r} of `time_format`. "
    option = '`options: {time_format: "dd.MM.yyyy HH:mm"}`'
    return f"If {column} has times in another form than 2026-01-05T10:00:00Z, give it to the source, like {option}. "


def _refused(source_format: str, name: str) -> str:
    other = _OF_JSON if source_format == CSV else _OF_CSV
    if name.lower() in {one.lower() for one in other}:
        return f"{name} is an option of {JSON if source_format == CSV else CSV} files: remove it"
    known = _OF_CSV if source_format == CSV else _OF_JSON
    own = dict.fromkeys(option for option, _ in known.values() if option in known)
    return f"{name} is not an option of {source_format} files. The options are {', '.join(own)}. {_OTHERWISE}"


def _keeps_ascii(encoding: str) -> bool:
    """Return whether in an encoding each byte below 128 is its ASCII character, whatever bytes precede it."""
    if encoding.startswith(("iso2022", "hz", "utf-7")):
        return False
    try:
        return bytes(range(128)).decode(encoding) == "".join(map(chr, range(128)))
    except UnicodeError:
        return False


def _time_pattern(pattern: str) -> TimePattern:
    """Parse a pattern. Raises `ValueError` for unknown letters, and for a part that is missing or occurs twice."""
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
            raise ValueError(f"{token[0]} in the pattern {pattern!r} is not a part of a time: use {letters}")
        if part in parts:
            raise ValueError(f"the pattern {pattern!r} has the {part.replace('_', ' ')} twice")
        is_open = form.endswith("{1,2}")
        if follows and (is_open or is_open_before):
            raise ValueError(
                f"in the pattern {pattern!r}, {token[0]} follows another part without a separator: use two letters"
            )
        is_open_before, follows = is_open, True
        parts.append(part)
        found.append(f"(?P<{part}>{form})")
    if end != len(pattern):
        raise ValueError(f"the pattern {pattern!r} has an opening quote without a closing one")
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
