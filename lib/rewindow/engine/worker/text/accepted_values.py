"""The accepted forms of text values: for each type, a pattern and a cast of whole columns.

A value in any other form is bad, even if another reader would accept it. There are few forms, so that no value is read as
something else than its writer meant (R9). docs/guides/text-files.md describes the forms to users.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.text_options import TextOptions, TimePattern
from rewindow.engine.worker.landing.source_types import arrow_type, decimal_of

_DAY_US = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31 in days since 1970."""
_FIRST_CHANGE, _BY_RULE, _DAYS_OF_WEEK = -47_482, 43_099, 7
"""1840-01-01 and 2088-01-01 in days since 1970. No zone changed its offset before the first day. After the second day, all
changes follow rules and are months apart."""


def instants(local_us: npt.NDArray[np.int64], zone: str) -> npt.NDArray[np.int64]:
    """Return local times (microseconds since 1970-01-01 in the zone) as instants (microseconds since 1970 in UTC).

    A local time that a change of the clocks skips is moved later by the skipped duration. A local time that occurs twice
    becomes the earlier instant.
    """
    if zone == "UTC" or not len(local_us):
        return local_us
    first_day, last_day = int(local_us.min()) // _DAY_US - 2, int(local_us.max()) // _DAY_US + 2
    changes, offsets = _offsets(zone, max(first_day, _FIRST_DAY), min(last_day, _LAST_DAY))
    # At the moment of a change, a clock with the old offset and a clock with the new offset show two local times. Local times
    # before the later of the two have the old offset.
    until = changes + np.maximum(offsets[:-1], offsets[1:])
    return local_us - offsets[np.searchsorted(until, local_us, side="right")]


@cache
def _offsets(zone: str, first_day: int, last_day: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the instants at which a zone's offset changes, and its offsets before the first change and after each one.

    The days are counted since 1970. Instants and offsets are in microseconds.
    """
    from rewindow.storage.zone_data import zone_info  # noqa: PLC0415 - most feeds are in UTC

    info = zone_info(zone)
    changes: list[int] = []
    offsets = [_offset(info, first_day * _DAY_US)]
    days = [
        day
        for day in range(first_day, last_day)
        if first_day == day or _FIRST_CHANGE <= day < _BY_RULE or day % _DAYS_OF_WEEK == 0
    ]
    for day, next_day in pairwise([*days, last_day]):
        start, end = day * _DAY_US, next_day * _DAY_US
        while (after := _offset(info, end)) != offsets[-1]:
            low, high = start, end
            while high - low > 1_000_000:
                middle = (low + high) // 2 // 1_000_000 * 1_000_000
                low, high = (middle, high) if _offset(info, middle) == offsets[-1] else (low, middle)
            changes.append(high)
            offsets.append(_offset(info, high))
            start = high
            if offsets[-1] == after:
                break
    return np.array(changes, np.int64), np.array(offsets, np.int64)


def _offset(info: tzinfo, at_us: int) -> int:
    offset = (_EPOCH + timedelta(microseconds=at_us)).astimezone(info).utcoffset() or timedelta()
    return round(offset.total_seconds() * 1_000_000)


Flags = npt.NDArray[np.bool_]

_WHOLE = r"^-?[0-9]{1,30}$"
_NUMBER = r"^-?([0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_FRACTION = r"^-?([0-9]+(\.[0-9]+)?|\.[0-9]+)$"
_FLAG = r"^(?i:true|false)$"
_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_DAY = _YEAR + "-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
_ZONE = "(Z|[+-](0[0-9]|1[0-8])(:?[0-5][0-9])?)"
_DATE = f"^{_DAY}$"
_TIME = f"^{_DAY}([T ]{_CLOCK}( UTC| ?{_ZONE})?)?$"
_USUAL_TIME = rf"^{_DAY}[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{{1,6}})?Z$"
_HAS_ZONE = "(Z|UTC|:.*[+-][0-9:]+)$"
_UNUSUAL_TIME = r"( UTC| [Z+-].*|\.[0-9]{7,9}.*)$"
_CERTAIN_EXPONENT = r"^[^eE]*$|\.|[eE]-"
"""Matches numbers without an exponent, and numbers whose ``E`` is certainly an exponent. (``1E5`` may be a code.)"""
_LEADING_ZERO = "^-?0[0-9]"
"""Matches numbers with leading zeros, which conversion would lose. ``007`` and ``07`` may be codes."""
_BITS: Mapping[str, int] = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_EXACT: Mapping[str, int] = {"double": 2**53, "float": 2**24}
"""For each floating-point type, the number up to which it represents all whole numbers exactly."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_HOURS = tuple(f"{hour % 12 or 12:02}{'am' if hour < 12 else 'pm'}" for hour in range(24))

_FORMS: Mapping[str, str] = {
    "byte": "whole numbers of 8 bits, like 42",
    "short": "whole numbers of 16 bits, like 42",
    "integer": "whole numbers of 32 bits, like 42",
    "long": "whole numbers of 64 bits, like 42",
    "float": "numbers like 1.5, and whole ones up to 2^24",
    "double": "numbers like 1.5, and whole ones up to 2^53",
    "boolean": "true and false",
    "date": "dates like 2026-01-05",
    "timestamp": "times like 2026-01-05T10:00:00Z",
    "timestamp_ntz": "times like 2026-01-05T10:00:00",
}
"""The accepted forms of a type, in words for messages."""


@dataclass(frozen=True, slots=True)
class Typed:
    """Values of a type, and a mask of the bad texts (None if there are no bad texts). The value of a bad or null text is null."""

    values: pa.Array
    bad: Flags | None = None


def typed(texts: pa.Array, kind: str, column: str, options: TextOptions, zone: str) -> Typed:
    """Return the texts of a column as values of a type, given by Spark's name (``long``, ``decimal(12,2)``, ...)."""
    zone = options.zone or zone
    if kind == "string":
        return Typed(texts)
    if kind == "binary":
        return Typed(texts.cast(pa.binary()))
    if kind in _BITS:
        return _whole(_with_points(texts, options, is_decimal=False), _BITS[kind])
    if kind in {"double", "float"}:
        return _floating(_with_points(texts, options, is_decimal=False), kind, options)
    if kind.startswith("decimal("):
        return _decimal(_with_points(texts, options, is_decimal=True), kind)
    if kind == "boolean":
        return _cast(texts, _FLAG, lambda fit: fit.cast(pa.bool_()), pa.bool_())
    pattern = pattern_of(kind, column, options)
    if pattern is not None:
        return _by_pattern(texts, pattern, kind, zone)
    if kind == "date":
        return _cast(texts, _DATE, lambda fit: fit.cast(pa.date32()), pa.date32())
    stored = pa.timestamp("us", "UTC")
    # Arrow reads the usual form without a conversion. If all texts have this form, one match is enough instead of three.
    if _all(texts, _USUAL_TIME):
        return _converted(texts, lambda fit: fit.cast(stored), stored, None)
    return _cast(texts, _TIME, lambda fit: _times(fit, zone), stored)


def pattern_of(kind: str, column: str, options: TextOptions) -> TimePattern | None:
    """Return the configured pattern of a column of times or dates, which replaces the accepted forms; None if there is none."""
    return options.by_column.get(column) or (options.date if kind == "date" else options.time)


def form_of(kind: str, column: str, options: TextOptions) -> str:
    """Return the accepted forms of a type, in words for messages."""
    if kind in {"date", "timestamp", "timestamp_ntz"} and (pattern := pattern_of(kind, column, options)) is not None:
        return f"{'dates' if kind == 'date' else 'times'} of the form {pattern.pattern}"
    if kind.startswith("decimal("):
        digits, scale = decimal_of(kind)
        signs = f"{'1' + options.thousands + '234' if options.thousands else '42'}{options.decimal}50"
        return f"decimals with {digits - scale} digits before the {options.decimal} and {scale} after it, like {signs}"
    return _FORMS.get(kind, kind)


ALL_KINDS = frozenset({"long", "double", "boolean", "date", "timestamp"})
"""The types that can be inferred. A column without values fits all of them."""


def kinds_of(texts: pa.Array, column: str, options: TextOptions, among: frozenset[str] = ALL_KINDS) -> frozenset[str]:
    """Return those types of ``among`` of which all texts of a column are values."""
    values = texts.drop_null()
    if not len(values) or not among:
        return among
    # The first value alone already excludes most types, so few types are compared with all values.
    sample = values.slice(0, 1)
    if len(values) > 1:
        among = kinds_of(sample, column, options, among)
    return frozenset(kind for kind in among if _fits(values, kind, column, options))


def inferred_kind(kinds: frozenset[str], *, is_filled: bool) -> str:
    """Return the type to choose for a column whose texts fit all types in ``kinds``. ``is_filled``: whether it has values."""
    if not is_filled:
        return "string"
    return next((kind for kind in ("long", "double", "boolean", "date", "timestamp") if kind in kinds), "string")


def _fits(values: pa.Array, kind: str, column: str, options: TextOptions) -> bool:
    if kind in {"long", "double"}:
        numbers = _with_points(values, options, is_decimal=False)
        if pc.any(pc.match_substring_regex(numbers, _LEADING_ZERO)).as_py() or not _all(numbers, _CERTAIN_EXPONENT):
            return False
    return typed(values, kind, column, options, "UTC").bad is None


def _all(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern), skip_nulls=True, min_count=0).as_py())


def _cast(texts: pa.Array, pattern: str, cast: Callable[[pa.Array], pa.Array], kind: pa.DataType) -> Typed:
    """Convert the texts that match a pattern. All other texts are bad."""
    fits = pc.match_substring_regex(texts, pattern)
    bad = None if pc.all(fits, min_count=0).as_py() else ~np.asarray(fits.fill_null(True))
    if bad is not None:
        texts = pc.if_else(pa.array(bad), pa.scalar(None, pa.string()), texts)
    return _converted(texts, cast, kind, bad)


def _converted(texts: pa.Array, cast: Callable[[pa.Array], pa.Array], kind: pa.DataType, bad: Flags | None) -> Typed:
    """Convert texts that are null or match the pattern. ``bad`` is the mask of the texts that do not match.

    A text that matches but is not a value of the type (30 February) is marked as bad, too.
    """
    try:
        return Typed(cast(texts), bad)
    except pa.ArrowInvalid:
        values, wrong = _apart(texts, cast, kind)
        return Typed(values, wrong if bad is None else bad | wrong)


def _apart(texts: pa.Array, cast: Callable[[pa.Array], pa.Array], kind: pa.DataType) -> tuple[pa.Array, Flags]:
    """Convert texts, some of which are no values of the type. Return the values, and a mask of these texts.

    The batch is halved again and again, until each such text is alone in a batch.
    """
    try:
        return cast(texts), np.zeros(len(texts), np.bool_)
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return pa.nulls(1, kind), np.ones(1, np.bool_)
    middle = len(texts) // 2
    parts = [_apart(part, cast, kind) for part in (texts.slice(0, middle), texts.slice(middle))]
    return pa.concat_arrays([values for values, _ in parts]), np.concatenate([wrong for _, wrong in parts])


def _and_bad(typed_values: Typed, wrong: Flags) -> Typed:
    """Return ``typed_values`` with the values in the mask ``wrong`` also marked as bad."""
    if not wrong.any():
        return typed_values
    values = pc.if_else(pa.array(wrong), pa.scalar(None, typed_values.values.type), typed_values.values)
    return Typed(values, wrong if typed_values.bad is None else typed_values.bad | wrong)


def _with_points(texts: pa.Array, options: TextOptions, *, is_decimal: bool) -> pa.Array:
    """Rewrite texts of numbers: a decimal point, and no thousands separators.

    A text that does not have the configured form becomes ``bad``, which is not a number.
    """
    decimal, thousands = options.decimal, options.thousands
    if (decimal == "." and not thousands) or (options.is_for_decimals and not is_decimal):
        return texts
    point = "\\" + decimal
    whole = "[0-9]*"
    if thousands:
        group = "\\" + thousands if thousands in ".^$*+?()[]{}|\\" else thousands
        whole = f"([0-9]*|[0-9]{{1,3}}({group}[0-9]{{3}})+)"
    fits = pc.match_substring_regex(texts, f"^-?{whole}({point}[0-9]+)?([eE][+-]?[0-9]+)?$")
    if thousands:
        texts = pc.replace_substring(texts, thousands, "")
    if decimal != ".":
        texts = pc.replace_substring(texts, decimal, ".")
    return pc.if_else(fits, texts, "bad")


def _whole(texts: pa.Array, bits: int) -> Typed:
    numbers = _cast(texts, _WHOLE, lambda fit: fit.cast(pa.int64()), pa.int64())
    if bits == 64 or len(numbers.values) == numbers.values.null_count:
        return numbers
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    wrong = pc.or_(pc.less(numbers.values, least), pc.greater(numbers.values, most)).fill_null(False)
    return _and_bad(numbers, np.asarray(wrong))


def _floating(texts: pa.Array, kind: str, options: TextOptions) -> Typed:
    stored = pa.float64() if kind == "double" else pa.float32()
    numbers = _cast(texts, _NUMBER, lambda fit: fit.cast(stored), stored)
    values = numbers.values.cast(pa.float64())
    if numbers.bad is None:
        return _and_bad(Typed(values), _inexact(texts, values, _EXACT[kind]))
    constants = {"NaN": "nan", **options.constants}
    floats = pa.array([float(constant) for constant in constants.values()], pa.float64())
    constant = pc.index_in(texts, pa.array(list(constants)))
    bad = numbers.bad & np.asarray(constant.is_null())
    values = pc.if_else(pa.array(numbers.bad), floats.take(constant), values)
    return _and_bad(Typed(values, bad if bad.any() else None), _inexact(texts, numbers.values, _EXACT[kind]))


def _inexact(texts: pa.Array, values: pa.Array, most: int) -> Flags:
    """Return a mask of the numbers that the type cannot represent: infinite numbers, and whole numbers beyond ``most``.

    A whole number beyond ``most`` may have been rounded.
    """
    numbers = np.abs(np.asarray(values.fill_null(0.0).cast(pa.float64())))
    wrong: Flags = np.isinf(numbers)
    for row in np.flatnonzero(numbers >= most).tolist():
        text = texts[row].as_py()
        wrong[row] |= text.lstrip("-").isdigit() and abs(int(text)) > most
    return wrong


def _decimal(texts: pa.Array, kind: str) -> Typed:
    stored = arrow_type(kind)
    return _cast(texts, _FRACTION, lambda fit: _trimmed(fit, decimal_of(kind)[1]).cast(stored), stored)


def _trimmed(texts: pa.Array, scale: int) -> pa.Array:
    """Return texts of decimals. A fraction with more digits than the scale loses its trailing zeros."""
    is_longer = pc.match_substring_regex(texts, rf"\.[0-9]{{{scale + 1}}}")
    if not pc.any(is_longer, min_count=0).as_py():
        return texts
    shorter = pc.replace_substring_regex(texts, r"(\.[0-9]*?)0+$", r"\1")
    return pc.if_else(is_longer, pc.replace_substring_regex(shorter, r"\.$", ""), texts)


def _times(texts: pa.Array, zone: str) -> pa.Array:
    """Return times in the accepted forms as instants."""
    if pc.any(unusual := pc.match_substring_regex(texts, _UNUSUAL_TIME), min_count=0).as_py():
        usual = pc.replace_substring_regex(texts, r" ?UTC$| Z$", "Z")
        usual = pc.replace_substring_regex(usual, r" ([+-][0-9:]+)$", r"\1")
        # Digits after the microseconds are cut off.
        usual = pc.replace_substring_regex(usual, r"(\.[0-9]{6})[0-9]{1,3}", r"\1")
        texts = pc.if_else(unusual, usual, texts)
    has_zone = pc.match_substring_regex(texts, _HAS_ZONE)
    some, every = pc.any(has_zone, min_count=0).as_py(), pc.all(has_zone, min_count=0).as_py()
    if every:
        return texts.cast(pa.timestamp("us", "UTC"))
    if not some:
        return _local(texts, zone)
    nothing = pa.scalar(None, pa.string())
    zoned = pc.if_else(has_zone, texts, nothing).cast(pa.timestamp("us", "UTC"))
    return pc.coalesce(zoned, _local(pc.if_else(has_zone, nothing, texts), zone))


def _local(texts: pa.Array, zone: str) -> pa.Array:
    local = texts.cast(pa.timestamp("us")).cast(pa.int64())
    mask = np.asarray(local.is_null()) if local.null_count else None
    micros = instants(np.asarray(local.fill_null(0)), zone)
    return pa.array(micros, pa.int64(), mask=mask).cast(pa.timestamp("us", "UTC"))


def _by_pattern(texts: pa.Array, pattern: TimePattern, kind: str, zone: str) -> Typed:
    # Dates have no time of day, and times have one.
    fits = (kind == "date") != pattern.has_time
    usual = _usual_form(texts, pattern) if fits else pa.nulls(len(texts), pa.string())
    converted = typed(usual, kind, "", TextOptions(zone=zone), zone)
    unlike = np.asarray(pc.and_(texts.is_valid(), usual.is_null()))
    return _and_bad(converted, unlike)


def _usual_form(texts: pa.Array, pattern: TimePattern) -> pa.Array:
    """Return times or dates in the form 2026-01-05T10:00:00Z; null where a text is null or does not match the pattern."""
    fields = pc.extract_regex(texts, pattern.regex)

    def part(name: str, width: int = 2) -> pa.Array:
        return pc.utf8_lpad(pc.struct_field(fields, name), width, "0")

    def numbered(names: pa.Array, all_names: Sequence[str], first: int) -> pa.Array:
        numbers = pc.add(pc.index_in(pc.utf8_lower(names), pa.array(all_names)), first)
        return pc.utf8_lpad(numbers.cast(pa.string()), 2, "0")

    def hour() -> pa.Array:
        if has("hour"):
            return part("hour")
        return numbered(pc.binary_join_element_wise(part("half_hour"), part("half"), ""), _HOURS, 0)

    has = pattern.parts.__contains__
    year = part("year", 4) if has("year") else pc.binary_join_element_wise("20", part("short_year"), "")
    month = numbered(part("month_name"), _MONTHS, 1) if has("month_name") else part("month")
    day = pc.binary_join_element_wise(year, month, part("day"), "-")
    if not pattern.has_time:
        return day
    clock = pc.binary_join_element_wise(
        hour(), *(part(name) if has(name) else "00" for name in ("minute", "second")), ":"
    )
    if has("fraction"):
        clock = pc.binary_join_element_wise(clock, part("fraction", 1), ".")
    time = pc.binary_join_element_wise(day, clock, "T")
    return pc.binary_join_element_wise(time, part("offset", 1), "") if has("offset") else time
