"""Convert raw JSON tokens to values: strings to their texts, and nested values to the canonical JSON that a log stores.

Before nested values are written as canonical JSON, a struct becomes a row if its field names are Python identifiers, otherwise a
dictionary. A map becomes a dictionary, an array a list. A DECIMAL becomes a Decimal with the digits of its scale. Times, dates
and bytes become texts, as in Spark's `to_json`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
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
"""The type of a column or nested field whose values are landed as their exact texts. Spark has no such type."""

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
    """The canonical JSON of each row; null if the token is null, or does not fit the type."""
    misfits: Mapping[int, Misfit]
    """From row to the first value in the row that does not fit."""


def texts_of(tokens: pa.Array) -> tuple[pa.Array, Mask]:
    """Return the texts of tokens that are strings, and a mask of the other tokens, whose texts are null."""
    if not len(tokens):
        return tokens, np.zeros(0, np.bool_)
    is_string = pc.starts_with(tokens, '"').fill_null(False).to_numpy(zero_copy_only=False)
    is_bad = ~is_string & tokens.is_valid().to_numpy(zero_copy_only=False)
    starts, ends = spans(tokens)
    data = tokens.buffers()[2] or b""
    # Tokens without a text get an empty span at their start, because spans have to ascend.
    texts = gather(data, starts + is_string, ends - is_string, None if is_string.all() else is_string)
    if not (np.frombuffer(data, np.uint8) == _BACKSLASH).any():
        return texts, is_bad
    has_escape = pc.match_substring(tokens, "\\").fill_null(False).to_numpy(zero_copy_only=False) & is_string
    decoded = pa.array([json.loads(token) for token in tokens.filter(pa.array(has_escape)).to_pylist()], pa.string())
    return pc.replace_with_mask(texts, pa.array(has_escape), decoded), is_bad


def nested(tokens: pa.Array, kind: Any, name: str, typed: Typed) -> Nested:
    """Return the canonical JSON of a column's tokens, for a column of type STRUCT, ARRAY or MAP.

    ``kind`` is an object of Spark's schema JSON, in which `JSON` may be a type, too. ``typed`` is called once for each scalar
    type except STRING, BOOLEAN and `JSON`. For DATE, TIMESTAMP and BINARY it gets the texts of strings, for other types the raw
    tokens of numbers. It returns an Arrow array of the type. For TIMESTAMP, the array may also have epoch milliseconds.
    """
    coded = tokens.dictionary_encode()
    scalars: dict[str, _Scalars] = {}
    convert = _converter(kind, scalars)
    decode = _decoder_of(kind)
    values = [decode(token) for token in coded.dictionary.to_pylist()]
    # This first pass only collects the scalars, so that `typed` can convert all scalars of a type at once.
    for value in values if scalars else ():
        try:
            convert(value)
        except _MisfitError:
            continue
    for some in scalars.values():
        some.become_typed(typed)
    texts: list[str | None] = []
    misfits: dict[int, Misfit] = {}
    for number, value in enumerate(values):
        try:
            texts.append(dump_value(convert(value)))
        except _MisfitError as error:
            misfits[number] = Misfit(name + error.path, error.kind, _shown(error.value))
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
    def __init__(self, kind: Any, value: Any) -> None:
        super().__init__()
        self.kind = kind
        self.value = value
        self.path = ""


class _Scalars(dict[str, Any]):
    """A mapping from the texts of a scalar type to their values. While texts are collected, each value is None."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def __missing__(self, text: str) -> None:
        self[text] = None

    def become_typed(self, typed: Typed) -> None:
        """Replace each None by the text's value, or by `_BAD` if the text has no valid form."""
        if texts := list(self):
            values, is_bad = typed(pa.array(texts, pa.string()), self.kind)
            rows = zip(texts, _as_json(values, self.kind), is_bad.tolist(), strict=True)
            self.update({text: _BAD if is_wrong else value for text, value, is_wrong in rows})


def _as_json(values: pa.Array, kind: str) -> list[Any]:
    """Return values of a type as Python values that `dump_value` writes as canonical JSON."""
    # A float is written with the fewest digits that identify it as a 32-bit float, not with the digits of the equal double.
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


def _converter(kind: Any, scalars: dict[str, _Scalars]) -> Callable[[Any], Any]:
    """Return the function that converts decoded values of a type.

    The type is a name or, if nested, an object of Spark's schema JSON. The function uses the values in ``scalars``.
    """
    match kind:
        case {"type": "array", "elementType": inner}:
            return _array_converter(kind, _converter(inner, scalars))
        case {"type": "map", "valueType": inner}:
            return _map_converter(kind, _converter(inner, scalars))
        case {"type": "struct", "fields": fields}:
            return _struct_converter(kind, {field["name"]: _converter(field["type"], scalars) for field in fields})
        case "string":
            return _class_converter(kind, str)
        case "boolean":
            return _class_converter(kind, bool)
        case str() if kind == JSON:
            return lambda text: text
    return _scalar_converter(kind, scalars.setdefault(kind, _Scalars(kind)))


def _class_converter(kind: str, cls: type[Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value is not None and value.__class__ is not cls:
            raise _MisfitError(kind, value)
        return value

    return read


def _scalar_converter(kind: str, values: _Scalars) -> Callable[[Any], Any]:
    cls = str if kind in _OF_TEXTS else Number

    def read(value: Any) -> Any:
        if value is None:
            return None
        if value.__class__ is not cls:
            raise _MisfitError(kind, value)
        scalar = values[value]
        if scalar is _BAD:
            raise _MisfitError(kind, value)
        return scalar

    return read


def _array_converter(kind: Any, item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value is None:
            return None
        if value.__class__ is not list:
            raise _MisfitError(kind, value)
        values: list[Any] = []
        try:
            for element in value:
                values.append(item(element))  # noqa: PERF401 - the length of `values` is the index of a bad element
        except _MisfitError as error:
            error.path = f"[{len(values)}]{error.path}"
            raise
        return values

    return read


def _map_converter(kind: Any, item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value is None:
            return None
        if value.__class__ is not dict:
            raise _MisfitError(kind, value)
        pairs: dict[str, Any] = {}
        key = ""
        try:
            for key, element in value.items():
                pairs[key] = item(element)
        except _MisfitError as error:
            error.path = f".{key}{error.path}"
            raise
        return pairs

    return read


def _struct_converter(kind: Any, fields: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    make: Callable[[list[Any]], Any] = (
        row_class(tuple(fields))._make
        if are_field_names(fields)
        else lambda values: dict(zip(fields, values, strict=True))
    )

    def read(value: Any) -> Any:
        if value is None:
            return None
        if value.__class__ is not dict:
            raise _MisfitError(kind, value)
        values: list[Any] = []
        name = ""
        try:
            for name, item in fields.items():
                values.append(item(value.get(name)))
        except _MisfitError as error:
            error.path = f".{name}{error.path}"
            raise
        return make(values)

    return read


# Repeated fields and constants need no check, because the tokenizer has checked them.
decode = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number).decode
"""Decodes a valid token. A number becomes a `Number`, which keeps its text."""


def _decoder_of(kind: Any) -> Callable[[str], Any]:
    """Return the function that decodes tokens of a type. A value of type `JSON` stays its exact text."""
    if f'"{JSON}"' not in json.dumps(kind):
        return decode
    match kind:
        case {"type": "array", "elementType": inner}:
            element = _decoder_of(inner)
            return lambda token: _decoded_items(token, element) if token.startswith("[") else decode(token)
        case {"type": "map", "valueType": inner}:
            item = _decoder_of(inner)
            return lambda token: _decoded_fields(token, {}, item) if token.startswith("{") else decode(token)
        case {"type": "struct", "fields": fields}:
            readers = {field["name"]: _decoder_of(field["type"]) for field in fields}
            return lambda token: _decoded_fields(token, readers, decode) if token.startswith("{") else decode(token)
    return lambda token: None if token == "null" else token  # noqa: S105 - JSON's null


def _decoded_items(token: str, element: Callable[[str], Any]) -> list[Any]:
    return [element(token[part.start : part.end]) for part in items(token, constants=True)]


def _decoded_fields(
    token: str, readers: Mapping[str, Callable[[str], Any]], other: Callable[[str], Any]
) -> dict[str, Any]:
    parts = members(token, constants=True)
    return {part.name: readers.get(part.name, other)(token[part.start : part.end]) for part in parts}


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
