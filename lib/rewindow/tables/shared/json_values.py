"""Values of rows that `json` can write."""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from typing import Any


def json_value(value: Any) -> Any:
    """Return a value of a row, or rows, for `json`: decimals as text, bytes in hex, and numbers that JSON lacks by name."""
    if isinstance(value, dict):
        return {name: json_value(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(one) for one in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return str(value) if isinstance(value, Decimal) else value
