"""The type of a JSON field from the tokens of its values, merged over blocks and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.text.json_values import Number, decode, spans

_IS_FRACTION = np.isin(np.arange(256), list(b".eEIN"))
"""Signs of a double; `I` and `N` are of NaN and Infinity."""
_NUMBERS = b"-0123456789NI"
_KINDS = {
    kind: np.isin(np.arange(256), list(signs))
    for kind, signs in {"string": b'"', "boolean": b"tf", "struct": b"{", "array": b"[", "number": _NUMBERS}.items()
}
"""The bytes with which the tokens of each type begin."""


@dataclass(slots=True)
class JsonType:
    """What types the values of a field have. Without any, all are null."""

    kinds: dict[str, Any] = field(default_factory=dict)
    """The kinds that occur, with an example of each: ``string``, ``long``, ``double``, ``boolean``, ``struct`` or ``array``."""
    fields: dict[str, JsonType] = field(default_factory=dict)
    """The fields of the structs."""
    item: JsonType | None = None
    """The elements of the arrays."""

    def as_json(self) -> dict[str, Any]:
        """Return the types as `from_json` takes them. Examples are pairs of numbers."""
        fields = {name: inner.as_json() for name, inner in self.fields.items()}
        return {"kinds": self.kinds, "fields": fields, "item": self.item and self.item.as_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> JsonType:
        """Return what `as_json` has written."""
        fields = {name: cls.from_json(inner) for name, inner in data["fields"].items()}
        kinds = {kind: tuple(example) for kind, example in data["kinds"].items()}
        return cls(kinds, fields, data["item"] and cls.from_json(data["item"]))

    def add(self, value: Any, example: Any) -> None:
        """Add a decoded value (`json_values.decode`)."""
        if value is None:
            return
        kind = _kind_of(value)
        self.kinds.setdefault(kind, example)
        if kind == "struct":
            for name, inner in value.items():
                self.fields.setdefault(name, JsonType()).add(inner, example)
        elif kind == "array":
            self.item = self.item or JsonType()
            for inner in value:
                self.item.add(inner, example)


class Mixture(NamedTuple):
    """A field with values of two types: its path, like ``address.lines[]``, and an example of each."""

    path: str
    kinds: tuple[str, str]
    examples: tuple[Any, Any]


def inferred(tokens: pa.Array, source: Any = None) -> JsonType:
    """Return the types of a block's tokens of a field. An example is ``(source, row)`` of the first value of its type."""
    result = JsonType()
    if not len(tokens) or tokens.null_count == len(tokens):
        return result
    starts, ends = spans(tokens)
    data = np.frombuffer(tokens.buffers()[2], np.uint8)
    signs = np.zeros(len(tokens), np.uint8)
    is_given = ends > starts
    signs[is_given] = data[starts[is_given]]
    for kind, is_sign in _KINDS.items():
        rows = np.flatnonzero(is_sign[signs])
        if not len(rows):
            continue
        if kind == "number":
            # Signs are counted in all tokens at once, because most of the time a match per token takes is its beginning.
            begins, until = starts[rows], ends[rows]
            counts = np.concatenate(([0], np.cumsum(_IS_FRACTION[data])))
            is_double = counts[until] > counts[begins]
            for number, is_number in (("long", ~is_double), ("double", is_double)):
                if is_number.any():
                    result.kinds[number] = (source, int(rows[is_number.argmax()]))
        elif kind in {"struct", "array"}:
            coded = (tokens if len(rows) == len(tokens) else tokens.take(pa.array(rows))).dictionary_encode()
            _, positions = np.unique(coded.indices.to_numpy(), return_index=True)
            for token, position in zip(coded.dictionary.to_pylist(), positions.tolist(), strict=True):
                result.add(decode(token), (source, int(rows[position])))
        else:
            result.kinds[kind] = (source, int(rows[0]))
    return result


def merge(earlier: JsonType, later: JsonType) -> JsonType:
    """Return the types of two blocks or files together. Examples are of the earlier one, where it has them."""
    fields = {
        name: merge(earlier.fields.get(name) or JsonType(), later.fields.get(name) or JsonType())
        for name in {**earlier.fields, **later.fields}
    }
    item = merge(earlier.item, later.item) if earlier.item and later.item else earlier.item or later.item
    return JsonType({**later.kinds, **earlier.kinds}, fields, item)


def mixtures(types: JsonType, path: str) -> Iterator[Mixture]:
    """Yield where values of several types occur: in the field itself, or within its objects and lists."""
    kinds = _distinct_kinds(types)
    if len(kinds) > 1:
        first, second = kinds[:2]
        yield Mixture(path, (first, second), (types.kinds[first], types.kinds[second]))
    for name, inner in sorted(types.fields.items()):
        yield from mixtures(inner, f"{path}.{name}")
    if types.item is not None:
        yield from mixtures(types.item, f"{path}[]")


def schema_type(types: JsonType) -> Any:
    """Return the type in Spark's schema JSON. The field has no `mixtures`; one of nulls only is a string."""
    kinds = _distinct_kinds(types) or ["string"]
    match kinds[0]:
        case "struct":
            names = sorted(types.fields, key=_spark_order)
            fields = [
                {"name": name, "type": schema_type(types.fields[name]), "nullable": True, "metadata": {}}
                for name in names
            ]
            return {"type": "struct", "fields": fields}
        case "array":
            return {"type": "array", "elementType": schema_type(types.item or JsonType()), "containsNull": True}
        case kind:
            return kind


def _distinct_kinds(types: JsonType) -> list[str]:
    """Return the types that cannot be one, in a fixed order. Whole numbers are doubles, too."""
    return sorted(types.kinds.keys() - ({"long"} if "double" in types.kinds else set()))


def _spark_order(name: str) -> bytes:
    # Java compares UTF-16 code units.
    return name.encode("utf-16-be")


def _kind_of(value: Any) -> str:
    if isinstance(value, Number):
        return "double" if any(sign in value for sign in ".eEIN") else "long"
    return _KIND_OF_CLASS[value.__class__]


_KIND_OF_CLASS = {str: "string", bool: "boolean", dict: "struct", list: "array"}
