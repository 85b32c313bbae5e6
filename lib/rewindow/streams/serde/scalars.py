"""The column types of Python's scalar types."""

from __future__ import annotations

import re
import typing
from decimal import Decimal
from typing import Any

from rewindow.errors import TopologyError
from rewindow.streams.serde.values import without_none

_SCALARS: dict[Any, str] = {
    str: "string",
    int: "long",
    float: "double",
    bool: "boolean",
    bytes: "binary",
    Decimal: "decimal(38,18)",
}
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.IGNORECASE)
_MOST_DIGITS = 38


def scalar_type(declared: Any) -> str | None:
    """Return the column type of a scalar Python type, which may be ``T | None``; None for another type.

    A ``Decimal`` has 18 digits after the point, and ``Annotated[Decimal, "DECIMAL(12,2)"]`` has 2. Raises `TopologyError` for a
    text beside ``Decimal`` that is no such type.
    """
    declared = without_none(declared)
    if typing.get_origin(declared) is not typing.Annotated:
        return _SCALARS.get(declared) if isinstance(declared, type) else None
    base, *notes = typing.get_args(declared)
    texts = [note for note in notes if isinstance(note, str)]
    return _decimal_type(texts[0]) if base is Decimal and texts else scalar_type(base)


def _decimal_type(text: str) -> str:
    found = _DECIMAL.fullmatch(text.strip())
    precision, scale = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= precision <= _MOST_DIGITS or scale > precision:
        message = (
            f"Annotated[Decimal, {text!r}]: {text!r} is no type of a decimal: write all its digits, at most {_MOST_DIGITS}, "
            "and those after the point, as in Annotated[Decimal, 'DECIMAL(12,2)']"
        )
        raise TopologyError(message)
    return f"decimal({precision},{scale})"
