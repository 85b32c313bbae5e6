"""What fits a column, exactly. One meaning for tables, checkpoints and tests.

A cell has the class of its column or is refused: nothing is rounded, cut or read as something else. One widening is
allowed, an integer in a ``double`` column, up to 2^53, where every integer is exactly a float. A decimal gets the
column's scale, and there is one zero: -0.0 becomes 0.0. Both happen where a value is put into a store too, so what a
run sees is what the next one is given back.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from functools import cache
from typing import Any

from rewindow.errors import DataError

Keep = Callable[[Any], Any]
"""Returns a value as a checkpoint gives it back. Raises `DataError` for one that would come back as another."""

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
    """Return the class that the cells of a column have (besides None)."""
    return Decimal if column_type.startswith("decimal(") else _CLASSES[column_type]


def exact_context(precision: int = 38) -> Context:
    """Return a decimal context that raises instead of rounding."""
    return Context(prec=precision, traps=[Inexact, InvalidOperation, Overflow])


@cache
def fitter(column_type: str) -> Keep:
    """Return the function from a cell to what the column gives back. It raises `DataError` for what does not fit."""
    if column_type.startswith("decimal("):
        precision, scale = column_type[len("decimal(") : -1].split(",")
        return _decimal_fitter(int(precision), int(scale))
    return _FITTERS.get(column_type) or _class_fitter(column_type)


def fit_text(value: Any) -> Any:
    """Return a text. Raises `DataError` for anything else, and for a text that UTF-8 cannot write."""
    if value.__class__ is str:
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError as error:
            message = f"the text {value!r} has a surrogate, which UTF-8 cannot write"
            raise DataError(message) from error
        return value
    return None if value is None else _refuse(value, "string")


def fit_long(value: Any) -> Any:
    """Return an integer of 64 bits. Raises `DataError` for anything else."""
    if value.__class__ is int and _LEAST <= value <= _MOST:
        return value
    return None if value is None else _refuse(value, "long")


def fit_double(value: Any) -> Any:
    """Return a float, also of an integer that is exactly one. Raises `DataError` for anything else."""
    if value.__class__ is float:
        return value or 0.0  # -0.0 too
    if value.__class__ is int and -EXACT_FLOATS <= value <= EXACT_FLOATS:
        return float(value)
    return None if value is None else _refuse(value, "double")


_FITTERS: dict[str, Keep] = {"string": fit_text, "long": fit_long, "double": fit_double}


def _class_fitter(column_type: str) -> Keep:
    wanted = class_of(column_type)

    def fit(value: Any) -> Any:
        return value if value is None or value.__class__ is wanted else _refuse(value, column_type)

    return fit


def _decimal_fitter(precision: int, scale: int) -> Keep:
    context, quantum = exact_context(precision), Decimal(1).scaleb(-scale)

    def fit(value: Any) -> Any:
        if value is None:
            return None
        if value.__class__ is not Decimal or not value.is_finite():
            return _refuse(value, f"decimal({precision},{scale})")
        try:
            return value.quantize(quantum, context=context) if value else quantum * 0
        except DecimalException:
            return _refuse(value, f"decimal({precision},{scale})")

    return fit


def _refuse(value: Any, column_type: str) -> Any:
    message = f"{value!r} ({type(value).__name__}) does not fit the type {column_type}"
    raise DataError(message)
