"""What ``==`` does not distinguish."""

from __future__ import annotations

from typing import Any


def told(value: Any) -> Any:
    """Return all that ``==`` does not distinguish: classes, orders of dictionaries, signs of zeros, digits."""
    if isinstance(value, dict):
        return [dict, *((told(key), told(item)) for key, item in value.items())]
    if isinstance(value, list | tuple):
        return [value.__class__, *map(told, value)]
    return value.__class__, repr(value)
