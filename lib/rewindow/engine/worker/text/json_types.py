"""Infer the type of a JSON field from the tokens of its values, and merge the types of blocks and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.text.json_values import Number, decode, spans

_IS_FRACTION = np.isin(np.arange(256), list(b".eEIN"))
"""A mask of the bytes that occur in doubles, but not in whole numbers. `I` and `N` are in `Infinity` and `NaN`."""
_NUMBERS = b"-0123456789NI"
_KINDS = {
    kind: np.isin(np.arange(256), list(signs))
    for kind, signs in {"string": b'"', "boolean": b"tf", "struct": b"{", "array": b"[", "number": _NUMBERS}.items()
}
"""Maps a type to a mask of the bytes with which its tokens begin."""


@dataclass(slots=True)
class JsonType:
    """The types that the values of a JSON field have. If ``kinds`` is empty, all values are null."""

    kinds: dict[str, Any] = field(default_factory=dict)
    """Maps each type that occurs to the place of a value of this type, as a pair.

    The types are ``string``, ``long``, ``double``, ``boolean``, ``struct`` and ``array``.
    """
    fields: dict[str, JsonType] = field(default_factory=dict)
    """If some values are structs, this maps each of their fields to its types."""
    item: JsonType | None = None
    """The types of the elements of those values that are arrays; None if there are no arrays or no elements."""

    def as_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary for `from_json`. The examples must be pairs of numbers."""
        fields = {name: inner.as_json() for name, inner in self.fields.items()}
        return {"kinds": self.kinds, "fields": fields, "item": self.item and self.item.as_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> JsonType:
        """Return the types that `as_json` has serialized."""
        fields = {name: cls.from_json(inner) for name, inner in data["fields"].items()}
        kinds = {kind: tuple(example) for kind, example in data["kinds"].items()}
        return cls(kinds, fields, data["item"] and cls.from_json(data["item"]))

    def add(self, value: Any, example: Any) -> None:
        """Add the type of a decoded value (`json_values.decode`)."""
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
    """A field with values of two types: its path, like ``address.lines[]``, the types, and an example of each type."""

    path: str
    kinds: tuple[str, str]
    examples: tuple[Any, Any]


def inferred(tokens: pa.Array, source: Any = None) -> JsonType:
    """Return the types of a field's tokens in a block. The example of a type is ``(source, row)`` of its first value."""
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
            # The bytes of doubles are searched for in all tokens at once, because matching each token takes longer.
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
    """Return the types of two blocks or files together. If both have an example of a type, the one of ``earlier`` is kept."""
    fields = {
        name: merge(earlier.fields.get(name) or JsonType(), later.fields.get(name) or JsonType())
        for name in {**earlier.fields, **later.fields}
    }
    item = merge(earlier.item, later.item) if earlier.item and later.item else earlier.item or later.item
    return JsonType({**later.kinds, **earlier.kinds}, fields, item)


def mixtures(types: JsonType, path: str) -> Iterator[Mixture]:
    """Yield a mixture for each place with values of several types: the field itself, or a place within its objects and lists."""
    kinds = _distinct_kinds(types)
    if len(kinds) > 1:
        first, second = kinds[:2]
        yield Mixture(path, (first, second), (types.kinds[first], types.kinds[second]))
    for name, inner in sorted(types.fields.items()):
        yield from mixtures(inner, f"{path}.{name}")
    if types.item is not None:
        yield from mixtures(types.item, f"{path}[]")


def schema_type(types: JsonType) -> Any:
    """Return the type of a field without `mixtures`, in Spark's schema JSON. A field of only nulls is a string."""
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
    """Return the types that occur, in a fixed order.

    If ``double`` occurs, ``long`` is left out: whole numbers are then doubles.
    """
    return sorted(types.kinds.keys() - ({"long"} if "double" in types.kinds else set()))


def _spark_order(name: str) -> bytes:
    # Spark sorts names as Java does, by UTF-16 code units.
    return name.encode("utf-16-be")


def _kind_of(value: Any) -> str:
    if isinstance(value, Number):
        return "double" if any(sign in value for sign in ".eEIN") else "long"
    return _KIND_OF_CLASS[value.__class__]


_KIND_OF_CLASS = {str: "string", bool: "boolean", dict: "struct", list: "array"}
