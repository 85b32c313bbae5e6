"""A comparison that is stricter than ``==``."""

from __future__ import annotations

from typing import Any


def told(value: Any) -> Any:
    """Return the value with what ``==`` ignores: its classes, the order of dictionaries, signs of zeros, digits of decimals."""
    if isinstance(value, dict):
        return [dict, *((told(key), told(item)) for key, item in value.items())]
    if isinstance(value, list | tuple):
        return [value.__class__, *map(told, value)]
    return value.__class__, repr(value)
