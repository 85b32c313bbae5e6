"""Keys and values of transcripts: rows, dictionaries and decimals in YAML, as records of a run have them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import yaml

from rewindow.streams.record import Record, Window, Windowed, are_field_names, row_class


def load_all(text: str) -> Iterator[Any]:
    """Yield the documents of a YAML text. ``!map`` marks a dictionary, ``!decimal`` a decimal. Raises `yaml.YAMLError`."""
    return yaml.load_all(text, Loader=_Loader)


def as_given(value: Any) -> Any:
    """Return a key or value of a transcript as a topology gets it.

    As in a landed record, a mapping becomes a row, at any depth, if its names can be attributes, and else a dictionary.
    """
    if isinstance(value, _Map):
        return {name: as_given(item) for name, item in value.items()}
    if isinstance(value, dict):
        items = [as_given(item) for item in value.values()]
        return row_class(tuple(value))(*items) if are_field_names(value) else dict(zip(value, items, strict=True))
    return [as_given(item) for item in value] if isinstance(value, list) else value


def yaml_value(value: Any) -> Any:
    """Return a key or value of a record as it is written in YAML."""
    if isinstance(value, Windowed):
        return {"key": yaml_value(value.key), "start": value.window.start_ms, "end": value.window.end_ms}
    if isinstance(value, Record | Window) or hasattr(value, "_fields"):
        return {name: yaml_value(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, dict):
        return {name: yaml_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [yaml_value(item) for item in value]
    return value


class _Map(dict[Any, Any]):
    """A mapping that is a dictionary in records."""


class _Loader(yaml.SafeLoader):
    """Plain YAML, with the tags ``!map`` and ``!decimal``."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - as in PyYAML
        seen = set[tuple[str, str]]()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value!r}", key.start_mark)
            seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep=deep)

    def read_map(self, node: yaml.Node) -> _Map:
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(None, None, "!map needs a mapping", node.start_mark)
        return _Map(self.construct_mapping(node, deep=True))

    def read_decimal(self, node: yaml.Node) -> Decimal:
        try:
            return Decimal(str(node.value))
        except InvalidOperation:
            problem = f"!decimal needs a number, not {node.value!r}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


_Loader.add_constructor("!map", _Loader.read_map)
_Loader.add_constructor("!decimal", _Loader.read_decimal)
