"""Texts as values, as far as Arrow and Spark read them alike: numbers, times and truth values in usual forms."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.engine.worker.landing.source_types import NotANumberError, UnsuitableError, arrow_type

_WHOLE = r"^-?[0-9]{1,18}$"
_NUMBER = r"^-?[0-9]{1,17}(\.[0-9]{1,17})?$"
_FLAG = r"^(?i:true|false)$"
_DATE = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_LOCAL = rf"^{_DATE}[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?"
_ZONE = r"(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$"
_WORD = r"^[\pL_/@#]"
_NO_WORD = r"^(?i:nan|inf|infinity|true|false|t|t[0-9:].*)$"
"""No number, time or truth value for Spark begins like a word, a path or a handle, except these."""
_BOUNDS = {"byte": 7, "short": 15, "integer": 31}
_NUMBERS = (*_BOUNDS, "long", "double")


def inferred_type(name: str, texts: pa.ChunkedArray) -> str:
    """Return the type that Spark infers for a column of texts. Raises `UnsuitableError` if that is not certain."""
    values = texts.drop_null()
    if len(values) == 0:
        return "string"
    if _all(values, _WHOLE):
        bounds = pc.min_max(values.cast(pa.int64())).as_py()
        return "integer" if -(2**31) <= bounds["min"] <= bounds["max"] < 2**31 else "long"
    for pattern, kind in (
        (_NUMBER, "double"),
        (_FLAG, "boolean"),
        (f"^{_DATE}$", "date"),
        (_LOCAL + "$", "timestamp"),
        (_LOCAL + _ZONE, "timestamp"),
    ):
        if _all(values, pattern):
            typed(name, values.combine_chunks(), kind, "UTC")  # 30 February is no date
            return kind
    if _has_word(values):
        return "string"
    raise UnsuitableError(f"the type of the column {name} is not certain")


def typed(name: str, texts: pa.StringArray, kind: str, zone: str) -> pa.Array:
    """Return texts as values of a type of Spark's.

    Raises `NotANumberError` if one is a word instead of a number, `UnsuitableError` for another unusual form.
    """
    try:
        found = _typed(texts, kind, zone)
    except pa.ArrowException as error:
        raise UnsuitableError(f"the column {name}: {error}") from error
    if found is None:
        is_number = kind in _NUMBERS or kind.startswith("decimal(")
        if is_number and _has_word(texts):
            raise NotANumberError(f"the column {name} has values that are not numbers")
        raise UnsuitableError(f"the column {name} has values that only Spark reads as {kind}")
    return found


def _typed(texts: pa.StringArray, kind: str, zone: str) -> pa.Array | None:
    to = arrow_type(kind)
    if kind == "string":
        return texts
    if kind == "long" and _all(texts, _WHOLE):
        return texts.cast(to)
    if kind in _BOUNDS and _all(texts, _WHOLE):
        numbers, most = texts.cast(to), 2 ** _BOUNDS[kind]
        fits = pc.and_(pc.greater_equal(numbers, -most), pc.less(numbers, most))
        return numbers if pc.all(fits).as_py() is not False else None
    if kind == "double" and _all(texts, _NUMBER):
        return texts.cast(to)
    if kind == "boolean" and _all(texts, _FLAG):
        return pc.equal(pc.utf8_lower(texts), "true")
    if kind == "date" and _all(texts, f"^{_DATE}$"):
        return texts.cast(to)
    if kind.startswith("decimal("):
        digits = rf"^-?[0-9]{{1,{to.precision - to.scale}}}(\.[0-9]{{1,{to.scale}}})?$"
        return texts.cast(to) if 0 < to.scale < to.precision and _all(texts, digits) else None
    if kind == "timestamp" and _all(texts, _LOCAL + _ZONE):
        return texts.cast(to)
    if kind in ("timestamp", "timestamp_ntz") and zone == "UTC" and _all(texts, _LOCAL + "$"):
        return texts.cast(pa.timestamp("us")).cast(to)
    return None


def _has_word(texts: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether a text is certainly no number, time or truth value."""
    is_word = pc.and_(pc.match_substring_regex(texts, _WORD), pc.invert(pc.match_substring_regex(texts, _NO_WORD)))
    return pc.any(is_word).as_py() is True


def _all(texts: pa.Array | pa.ChunkedArray, pattern: str) -> bool:
    """Return whether all texts that are not null match."""
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False
