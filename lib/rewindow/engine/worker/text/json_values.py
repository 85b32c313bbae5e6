"""Convert raw JSON tokens to values: strings to their texts, and nested values to the canonical JSON that a log stores.

Before nested values are written as canonical JSON, a struct becomes a row if its field names are Python identifiers,
otherwise a dictionary. A map becomes a dictionary, an array a list. A DECIMAL becomes a Decimal with as many digits after the
point as its scale. Times, dates and bytes become texts, as in Spark's `to_json`.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.engine.worker.text.json_records import gather
from rewindow.engine.worker.text.json_tokens import items, members
from rewindow.streams.record import are_field_names, row_class
from rewindow.streams.serde.canonical_json import dump_value

Mask = npt.NDArray[np.bool_]
Typed = Callable[[pa.Array, str], tuple[pa.Array, Mask]]
"""A function that converts distinct texts to a type. It returns the values, and a mask of the texts that have no accepted
form."""

JSON = "json"
"""The type of a column or nested field that is landed as the exact text of its values. Spark has no such type."""

_Scalars = dict[str, Any]
"""Maps the texts of a scalar type to their values. While the texts are still being collected, each value is None."""
_Path = tuple[Any, str | int] | tuple[()]
"""The path from a column to a value: the path of the value that contains it, and the field's name or the element's number."""

_OF_TEXTS = ("date", "timestamp", "binary")
_BAD = object()
_BACKSLASH = ord("\\")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - its times are UTC, and `Z` is appended


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that has none of the accepted forms of its type."""

    path: str
    """The path from the column to the value, like ``address.lines[0]``."""
    kind: Any
    """The declared type."""
    value: str
    """The value, as JSON."""


@dataclass(frozen=True, slots=True)
class Nested:
    """A column of nested values."""

    texts: pa.Array
    """The canonical JSON of each row; null if the token is null, or has no accepted form of the type."""
    misfits: Mapping[int, Misfit]
    """Maps a row to the first of its values that has no accepted form. Rows without such a value are left out."""


def texts_of(tokens: pa.Array) -> tuple[pa.Array, Mask]:
    """Return the texts of the tokens that are strings (null for other tokens), and a mask of the other tokens."""
    if not len(tokens):
        return tokens, np.zeros(0, np.bool_)
    is_string = pc.starts_with(tokens, '"').fill_null(False).to_numpy(zero_copy_only=False)
    is_bad = ~is_string & tokens.is_valid().to_numpy(zero_copy_only=False)
    starts, ends = spans(tokens)
    data = tokens.buffers()[2] or b""
    # Tokens without a text get an empty span at their start, because spans must ascend.
    texts = gather(data, starts + is_string, ends - is_string, None if is_string.all() else is_string)
    if not (np.frombuffer(data, np.uint8) == _BACKSLASH).any():
        return texts, is_bad
    has_escape = pc.match_substring(tokens, "\\").fill_null(False).to_numpy(zero_copy_only=False) & is_string
    decoded = pa.array([json.loads(token) for token in tokens.filter(pa.array(has_escape)).to_pylist()], pa.string())
    return pc.replace_with_mask(texts, pa.array(has_escape), decoded), is_bad


def nested(tokens: pa.Array, kind: Any, name: str, typed: Typed) -> Nested:
    """Return the canonical JSON of a column's tokens, for a column of type STRUCT, ARRAY or MAP.

    ``kind`` is an object of Spark's schema JSON, in which `JSON` may be a type, too. ``typed`` converts all texts of a scalar
    type to an Arrow array of the type. It is called once for each scalar type except STRING, BOOLEAN and `JSON`. For DATE,
    TIMESTAMP and BINARY it gets the texts of strings, for other types the raw tokens of numbers. For TIMESTAMP, the array may
    also have epoch milliseconds.
    """
    coded = tokens.dictionary_encode()
    scalars: dict[str, _Scalars] = {}
    convert = _converter(kind, scalars)
    has_json = f'"{JSON}"' in json.dumps(kind)
    values = [_exact(token, kind) if has_json else decode(token) for token in coded.dictionary.to_pylist()]
    # This first pass only collects the scalars, so that `typed` can convert all scalars of a type at once.
    for value in values:
        with suppress(_MisfitError):
            convert(value, ())
    for leaf, some in scalars.items():
        _type(some, leaf, typed)
    texts: list[str | None] = []
    misfits: dict[int, Misfit] = {}
    for number, value in enumerate(values):
        try:
            texts.append(dump_value(convert(value, ())))
        except _MisfitError as error:
            misfits[number] = Misfit(name + _shown_path(error.path), error.kind, _shown(error.value))
            texts.append(None)
    result = pa.array(texts, pa.string()).take(coded.indices)
    if not misfits:
        return Nested(result, {})
    numbers = coded.indices.to_pylist()
    return Nested(result, {row: misfits[number] for row, number in enumerate(numbers) if number in misfits})


class Number(str):
    """The raw token of a number, as opposed to the text of a string."""

    __slots__ = ()


class _MisfitError(ValueError):
    def __init__(self, kind: Any, value: Any, path: _Path) -> None:
        super().__init__()
        self.kind, self.value, self.path = kind, value, path


def _type(scalars: _Scalars, kind: str, typed: Typed) -> None:
    """Convert each collected text to a value of the type, or to `_BAD` if the text has no accepted form."""
    values, is_bad = typed(pa.array(list(scalars), pa.string()), kind)
    rows = zip(scalars, _as_json(values, kind), is_bad.tolist(), strict=True)
    scalars.update({text: _BAD if is_wrong else value for text, value, is_wrong in rows})


def _as_json(values: pa.Array, kind: str) -> list[Any]:
    """Return values of a type as Python values that `dump_value` writes as canonical JSON."""
    # A FLOAT is written with the fewest digits that identify it among 32-bit floats, not with the digits of the equal double.
    if kind == "float":
        return [None if value is None else float(str(np.float32(value))) for value in values.to_pylist()]
    if kind == "date":
        return [None if day is None else day.isoformat() for day in values.to_pylist()]
    if kind == "timestamp":
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("ms", values.type.tz)).cast(pa.int64())
        return [None if ms is None else _instant(ms) for ms in values.to_pylist()]
    if kind == "binary":
        return [None if data is None else base64.b64encode(data).decode() for data in values.to_pylist()]
    converted: list[Any] = values.to_pylist()
    return converted


def _instant(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds") + "Z"


def _converter(kind: Any, scalars: dict[str, _Scalars]) -> Callable[[Any, _Path], Any]:
    """Return the function that converts decoded values of a type, given the path to each value.

    The type is a name or, if nested, an object of Spark's schema JSON. The function looks texts up in ``scalars``, and adds
    those that are missing.
    """
    match kind:
        case {"type": "array", "elementType": inner}:
            element = _converter(inner, scalars)
            return _nullable(kind, list, lambda items, path: [element(v, (path, i)) for i, v in enumerate(items)])
        case {"type": "map", "valueType": inner}:
            item = _converter(inner, scalars)
            return _nullable(kind, dict, lambda pairs, path: {k: item(v, (path, k)) for k, v in pairs.items()})
        case {"type": "struct", "fields": fields}:
            members_ = {field["name"]: _converter(field["type"], scalars) for field in fields}
            make: Callable[[Iterable[Any]], Any] = (
                row_class(tuple(members_))._make
                if are_field_names(members_)
                else lambda values: dict(zip(members_, values, strict=True))
            )
            return _nullable(
                kind,
                dict,
                lambda pairs, path: make([read(pairs.get(k), (path, k)) for k, read in members_.items()]),
            )
        case "json":
            return lambda text, _: text
        case "string" | "boolean":
            return _nullable(kind, str if kind == "string" else bool, lambda value, _: value)
    values = scalars.setdefault(kind, {})

    def scalar(text: str, path: _Path) -> Any:
        value = values.setdefault(text, None)
        if value is _BAD:
            raise _MisfitError(kind, text, path)
        return value

    return _nullable(kind, str if kind in _OF_TEXTS else Number, scalar)


def _nullable(kind: Any, cls: type[Any], convert: Callable[[Any, _Path], Any]) -> Callable[[Any, _Path], Any]:
    """Return a function that converts values of a class, returns None for None, and raises `_MisfitError` for other values."""

    def read(value: Any, path: _Path) -> Any:
        if value is None:
            return None
        if value.__class__ is not cls:
            raise _MisfitError(kind, value, path)
        return convert(value, path)

    return read


# Repeated fields and constants need no check here, because the tokenizer has already checked them.
decode = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number).decode
"""Decodes a valid token. A number becomes a `Number`, which keeps its text."""


def _exact(token: str, kind: Any) -> Any:
    """Decode a token of a type. A value of type `JSON` is kept as its exact text."""
    match kind, token[:1]:
        case "json", _ if token != "null":  # noqa: S105 - JSON's null
            return token
        case {"type": "array", "elementType": inner}, "[":
            return [_exact(token[part.start : part.end], inner) for part in items(token, constants=True)]
        case {"type": "map", "valueType": inner}, "{":
            kinds: Mapping[str, Any] = defaultdict(lambda: inner)
        case {"type": "struct", "fields": fields}, "{":
            kinds = defaultdict(str, {field["name"]: field["type"] for field in fields})
        case _:
            return decode(token)
    return {
        part.name: _exact(token[part.start : part.end], kinds[part.name]) for part in members(token, constants=True)
    }


def _shown_path(path: _Path) -> str:
    if not path:
        return ""
    around, part = path
    return _shown_path(around) + (f"[{part}]" if isinstance(part, int) else f".{part}")


def _shown(value: Any) -> str:
    """Return a decoded value as JSON text, for messages."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_shown(name)}: {_shown(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def spans(tokens: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where the strings of an array begin and end in its buffer."""
    offsets = np.frombuffer(tokens.buffers()[1], np.int32)[tokens.offset : tokens.offset + len(tokens) + 1].astype(
        np.int64
    )
    return offsets[:-1], offsets[1:]
