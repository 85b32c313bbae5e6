"""Canonical JSON for Python data: equal values have equal texts, and a text can be decoded to its value.

Numbers, strings, booleans and null are written as in JSON. A named tuple becomes an object, a list an array. Other values
become an object with one key that begins with ``$``: ``$tuple``, ``$dict``, ``$bytes`` (hex), ``$decimal``, ``$float``
(``nan``, ``inf``, ``-inf``), ``$windowed``, ``$window``, ``$change``, ``$record``. A ``$dict`` is a list of pairs, because
keys need not be strings. The pairs are ordered by the texts of their keys. Values of any other class are refused; nothing is
pickled.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from rewindow.errors import DataError
from rewindow.streams.record import Change, Record, Window, Windowed, row_class

# One encoder serves all calls. `json.dumps` would make one in each call, which takes longer than encoding a short text.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def dump_value(value: Any) -> str:
    """Return the canonical text of a value. Raises `DataError` for a value of any other class."""
    return _encode(to_tagged(value))


def load_value(text: str) -> Any:
    """Return the value that `dump_value` encoded."""
    return from_tagged(json.loads(text))


def by_text(value: dict[Any, Any]) -> dict[Any, Any]:
    """Return a dictionary ordered by its keys' canonical texts, so that dictionaries with the same items have equal texts."""
    return value if len(value) < 2 else {key: value[key] for key in sorted(value, key=dump_value)}


def to_tagged(value: Any) -> Any:
    """Return a value as objects that `json` can encode, with ``$`` tags. Raises `DataError` as `dump_value` does."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            # -0.0 and 0.0 are equal, so they must have the same text.
            return value + 0.0 if value else 0.0
        return {"$float": repr(value)}
    if isinstance(value, tuple):
        return _tagged_tuple(value)
    if isinstance(value, list):
        return [to_tagged(item) for item in value]
    if isinstance(value, dict):
        return {"$dict": [[to_tagged(key), to_tagged(item)] for key, item in by_text(value).items()]}
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    raise DataError(
        "value-type-not-storable",
        "a value of type {type} cannot be stored: use numbers, text, bytes, Decimal, lists, tuples, dicts or "
        "NamedTuples",
        type=type(value).__name__,
    )


def from_tagged(data: Any) -> Any:
    """Return the value that `to_tagged` converted."""
    if isinstance(data, list):
        return [from_tagged(item) for item in data]
    if not isinstance(data, dict):
        return data
    if len(data) == 1:
        (tag,) = data
        if tag in _TAGS:
            return _TAGS[tag](data[tag])
    return row_class(tuple(data))(*(from_tagged(item) for item in data.values()))


def _tagged_tuple(value: tuple[Any, ...]) -> Any:
    if isinstance(value, Windowed):
        return {"$windowed": [to_tagged(value.key), *value.window]}
    items = [to_tagged(item) for item in value]
    if value.__class__ in _TUPLES:
        return {_TUPLES[value.__class__]: items}
    fields = getattr(value, "_fields", None)
    return {"$tuple": items} if fields is None else dict(zip(fields, items, strict=True))


_TUPLES: dict[type[Any], str] = {Change: "$change", Window: "$window", Record: "$record"}
TAGGED = frozenset((Windowed, *_TUPLES))
"""The tuple classes of this library. Decoding restores these classes, but no other named tuple classes."""

_TAGS: dict[str, Callable[[Any], Any]] = {
    "$tuple": lambda items: tuple(from_tagged(item) for item in items),
    "$dict": lambda pairs: {from_tagged(key): from_tagged(item) for key, item in pairs},
    "$bytes": bytes.fromhex,
    "$decimal": Decimal,
    "$float": float,
    "$windowed": lambda parts: Windowed(from_tagged(parts[0]), Window(*parts[1:])),
    "$change": lambda items: Change(*map(from_tagged, items)),
    "$window": lambda items: Window(*items),
    "$record": lambda items: Record(*map(from_tagged, items)),
}
