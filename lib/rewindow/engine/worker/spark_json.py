"""Convert Spark's JSON of a struct, array, map or variant to the canonical JSON that a topology reads.

A struct becomes a row if its field names are Python identifiers, otherwise a dictionary. A map, or an object of a variant,
becomes a dictionary. An array becomes a list. A DECIMAL becomes a Decimal with as many digits after the point as its scale,
like a value of a DECIMAL column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any, Self

import pyarrow as pa

from rewindow.contracts.ingest import LogColumns, LogSpec
from rewindow.contracts.text_options import TEXT_FORMATS
from rewindow.engine.worker.landing.log_columns import source_types
from rewindow.streams.record import are_field_names, row_class
from rewindow.streams.serde.canonical_json import dump_value

Reader = Callable[[str], Any]
"""A function that converts Spark's JSON to a Python value."""
_Convert = Callable[[Any], Any]
"""A function that converts parsed JSON to a Python value."""
_DIGITS = Context(prec=76)


class _Number(float):
    """A float, and the text that the number has in the JSON. A DECIMAL is made from the text, which may have more digits."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number


# The decoder is made once. With an argument, `json.loads` would make a decoder in each call, and that takes longer than
# decoding a short text.
_EXACT = json.JSONDecoder(parse_float=_Number)


def json_readers(spec: LogSpec, columns: LogColumns) -> dict[str, Reader]:
    """Return a reader for each ``json`` column of a log, by column.

    Text files and outputs of jobs have no readers, because their JSON is already canonical.
    """
    if spec.is_output or spec.source.format in TEXT_FORMATS:
        return {}
    wanted = {column.name for column in columns.all if column.type == "json"}
    if not wanted:
        return {}
    kinds = source_types(spec, columns.source_schema or '{"fields": []}')
    return {name: _reader(kinds[name][1]) for name in sorted(wanted)}


def canonical_json(column: pa.Array, read: Reader) -> pa.Array:
    """Return a column of Spark's JSON as canonical JSON."""
    coded = column.dictionary_encode()
    texts = [dump_value(read(text)) for text in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def _decode_exactly(text: str) -> Any:
    # The decoder is used through a function of the module, because a decoder itself cannot be sent to a worker.
    return _EXACT.decode(text)


def _reader(kind: Any) -> Reader:
    convert = _converter(kind)
    decode = _decode_exactly if "decimal" in json.dumps(kind) else json.loads
    return lambda text: convert(decode(text))


def _converter(kind: Any) -> _Convert:
    """Return the function that converts values of a type. A type is a name or, if nested, an object of Spark's schema JSON."""
    match kind:
        case {"type": "array", "elementType": inner}:
            item = _converter(inner)
            return lambda items: None if items is None else [item(value) for value in items]
        case {"type": "map", "valueType": inner}:
            item = _converter(inner)
            return lambda pairs: None if pairs is None else {key: item(value) for key, value in pairs.items()}
        case {"type": "struct", "fields": fields}:
            return _struct_converter({field["name"]: _converter(field["type"]) for field in fields})
        case str() if kind.startswith("decimal"):
            return _decimal_converter(kind)
        # Spark's JSON writes NaN and infinity as texts.
        case "double" | "float":
            return lambda value: float(value) if isinstance(value, str) else value
    return lambda value: value


def _decimal_converter(kind: str) -> _Convert:
    scale = int(kind.rpartition(",")[2].rstrip(")")) if "," in kind else 0
    exponent = Decimal(1).scaleb(-scale)

    def read(number: _Number | int | None) -> Decimal | None:
        if number is None:
            return None
        return Decimal(number.text if isinstance(number, _Number) else number).quantize(exponent, context=_DIGITS)

    return read


def _struct_converter(fields: Mapping[str, _Convert]) -> _Convert:
    make: Callable[..., Any] = (
        row_class(tuple(fields)) if are_field_names(fields) else lambda *values: dict(zip(fields, values, strict=True))
    )

    def read(fields_by_name: dict[str, Any] | None) -> Any:
        # Spark omits null fields, so a field may be missing.
        return (
            None if fields_by_name is None else make(*(item(fields_by_name.get(name)) for name, item in fields.items()))
        )

    return read
