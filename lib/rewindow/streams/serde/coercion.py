"""Exact coercion of values to column types, the same for tables, checkpoints and tests.

A value that does not have the class of its column is refused. Nothing is rounded, truncated or reinterpreted. There is one
exception: an integer in a ``double`` column becomes a float, up to 2^53, because these integers are exact as floats. A decimal
gets the column's scale, and -0.0 becomes 0.0. Stores coerce values when they are put, so a run reads the same values as after a
restart.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from functools import cache
from typing import Any

from rewindow.errors import DataError

Normalizer = Callable[[Any], Any]
"""Returns a value as it would be restored from a checkpoint. Raises `DataError` for a value that would not be equal."""

EXACT_FLOATS = 2**53
_LEAST, _MOST = -(2**63), 2**63 - 1
_CLASSES: dict[str, type[Any]] = {
    "string": str,
    "json": str,
    "long": int,
    "double": float,
    "boolean": bool,
    "binary": bytes,
}


def class_of(column_type: str) -> type[Any]:
    """Return the class that the values of a column have, unless they are None."""
    return Decimal if column_type.startswith("decimal(") else _CLASSES[column_type]


def exact_context(precision: int = 38) -> Context:
    """Return a decimal context that raises instead of rounding."""
    return Context(prec=precision, traps=[Inexact, InvalidOperation, Overflow])


@cache
def coercer(column_type: str) -> Normalizer:
    """Return the function that coerces values to a column type. It raises `DataError` for a value that does not fit."""
    if column_type.startswith("decimal("):
        precision, scale = column_type[len("decimal(") : -1].split(",")
        return _decimal_coercer(int(precision), int(scale))
    return _COERCERS.get(column_type) or _class_coercer(column_type)


def coerce_text(value: Any) -> Any:
    """Return a str or None unchanged. Raises `DataError` for another class, and for a str that UTF-8 cannot encode."""
    if value.__class__ is str:
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                "text-with-surrogate",
                "the text {text} has half of a surrogate pair, which UTF-8 cannot write: remove it",
                text=repr(value),
            ) from error
        return value
    return None if value is None else _refuse(value, "string")


def coerce_long(value: Any) -> Any:
    """Return a 64-bit integer or None unchanged. Raises `DataError` for anything else."""
    if value.__class__ is int and _LEAST <= value <= _MOST:
        return value
    return None if value is None else _refuse(value, "long")


def coerce_double(value: Any) -> Any:
    """Return a float or None. Integers up to 2^53 are converted. Raises `DataError` for anything else."""
    if value.__class__ is float:
        return value or 0.0  # -0.0 too
    if value.__class__ is int and -EXACT_FLOATS <= value <= EXACT_FLOATS:
        return float(value)
    return None if value is None else _refuse(value, "double")


_COERCERS: dict[str, Normalizer] = {"string": coerce_text, "long": coerce_long, "double": coerce_double}


def are_all(values: Collection[Any], cls: type[Any]) -> bool:
    """Return whether all values have exactly this class."""
    # This is much faster than a set of the values' classes.
    return list(map(type, values)).count(cls) == len(values)


def stay_as_they_are(values: Collection[Any], normalize: Normalizer) -> bool:
    """Return True only if ``normalize`` would return each value unchanged. This is much faster than calling it for each value.

    The result may be False although all values would be unchanged.
    """
    if not values or normalize not in _CLASS_OF or not are_all(values, _CLASS_OF[normalize]):
        return False
    if normalize is coerce_long:
        try:
            # Raises OverflowError for an integer beyond 64 bits. Faster than computing minimum and maximum.
            array("q", values)
        except OverflowError:
            return False
        return True
    if normalize is coerce_text:
        return "".join(values).isascii()
    # -0.0 must be normalized. If all values are true, none of them is 0.0 or -0.0.
    return bool(all(values))


_CLASS_OF: dict[Normalizer, type[Any]] = {coerce_text: str, coerce_long: int, coerce_double: float}


def _class_coercer(column_type: str) -> Normalizer:
    wanted = class_of(column_type)

    def coerce(value: Any) -> Any:
        return value if value is None or value.__class__ is wanted else _refuse(value, column_type)

    return coerce


def _decimal_coercer(precision: int, scale: int) -> Normalizer:
    context, quantum = exact_context(precision), Decimal(1).scaleb(-scale)

    def coerce(value: Any) -> Any:
        if value is None:
            return None
        if value.__class__ is not Decimal or not value.is_finite():
            return _refuse(value, f"decimal({precision},{scale})")
        try:
            return value.quantize(quantum, context=context) if value else quantum * 0
        except DecimalException:
            return _refuse(value, f"decimal({precision},{scale})")

    return coerce


def _refuse(value: Any, column_type: str) -> Any:
    raise DataError(
        "value-type-wrong",
        "{given} ({type}) does not fit the type {declared}",
        given=repr(value),
        type=type(value).__name__,
        declared=column_type,
    )
