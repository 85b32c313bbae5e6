"""The vocabulary of a scenario file: predicates, mappings, keys and aggregates as data.

The player builds topologies from it and the naive twin computes with it, so a word has one meaning for both. A scenario's
values are integers (Kafka's long) or text, its keys text. A windowed key is a `Windowed`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from rewindow.streams.record import Windowed

Json = Mapping[str, Any]


def text_of(value: Any) -> str:
    """Return a value as text: ``null`` for None, a window as ``key@start``."""
    if value is None:
        return "null"
    return f"{value.key}@{value.window.start_ms}" if isinstance(value, Windowed) else str(value)


def predicate(spec: Json) -> Callable[[Any], bool]:
    """Return a predicate on values. It is false for a null value, except ``is_null`` and ``not``."""
    ((word, operand),) = spec.items()
    if word == "not":
        inner = predicate(operand)
        return lambda value: not inner(value)
    if word == "is_null":
        return lambda value: (value is None) is operand
    tests: dict[str, Callable[[Any], bool]] = {
        "gt": lambda value: value > operand,
        "lt": lambda value: value < operand,
        "mod": lambda value: value % operand[0] == operand[1],
        "eq": lambda value: str(value) == str(operand),
        "ne": lambda value: str(value) != str(operand),
        "prefix": lambda value: str(value).startswith(operand),
    }
    test = tests[word]
    return lambda value: value is not None and test(value)


def value_mapper(spec: Json) -> Callable[[Any], Any]:
    """Return a mapping of values. It maps null to null."""
    ((word, operand),) = spec.items()
    mappers: dict[str, Callable[[Any], Any]] = {
        "add": lambda value: value + operand,
        "mul": lambda value: value * operand,
        "append": lambda value: f"{value}{operand}",
        "to_string": str,
        "null_if": lambda value: None if predicate(operand)(value) else value,
    }
    mapper = mappers[word]
    return lambda value: None if value is None else mapper(value)


def key_selector(spec: Json) -> Callable[[Any, Any], Any]:
    """Return a function that makes a key from key and value. The new key is null if its input is null, but a constant is not."""
    ((word, operand),) = spec.items()
    if word == "const":
        return lambda _key, _value: str(operand)
    of_key: dict[str, Callable[[Any], Any]] = {
        "key_prefix": lambda key: text_of(key)[:operand],
        "window_key": lambda key: key.key if isinstance(key, Windowed) else key,
        "key_text": text_of,
    }
    of_value: dict[str, Callable[[Any], Any]] = {
        "value_mod": lambda value: str(value % operand),
        "value_prefix": lambda value: str(value)[:operand],
    }
    if word in of_key:
        return lambda key, _value: None if key is None else of_key[word](key)
    return lambda _key, value: None if value is None else of_value[word](value)


def routed(sink: Json) -> Callable[[Any, Any], str]:
    """Return a function that names the topic of a record."""
    select = key_selector(sink["route"])
    return lambda key, value: f"{sink['name']}-{text_of(select(key, value))}"


def partitioner(spec: Json) -> Callable[[str, Any, Any, int], int | None]:
    """Return a function that chooses a partition by the value. A null value leaves the choice to the key."""
    return lambda _topic, _key, value, partitions: None if value is None else value % spec["value_mod"] % partitions


def rank(number: Any) -> tuple[bool, Any]:
    """Return what orders numbers: NaN is the largest."""
    return (True, 0) if math.isnan(number) else (False, number)


def reducer(name: str) -> Callable[[Any, Any], Any]:
    """Return a function that combines two values. ``first`` and ``last`` may return a null, the others ignore nulls."""
    simple: dict[str, Callable[[Any, Any], Any]] = {
        "first": lambda one, _other: one,
        "last": lambda _one, other: other,
    }
    if name in simple:
        return simple[name]
    combining: dict[str, Callable[[Any, Any], Any]] = {
        "sum": lambda one, other: one + other,
        "min": lambda one, other: min(one, other, key=rank),
        "max": lambda one, other: max(one, other, key=rank),
    }
    combine = combining[name]

    def reduce(one: Any, other: Any) -> Any:
        if one is None or other is None:
            return other if one is None else one
        return combine(one, other)

    return reduce


def tagger(spec: Json) -> Callable[[str, Any], str | None]:
    """Return the function of one stream of a cogroup: it appends the value's text with a tag, or returns null."""
    deletes = predicate(spec["null_if"]) if "null_if" in spec else lambda _value: False
    return lambda aggregate, value: None if deletes(value) else concat(aggregate, f"{spec['tag']}{text_of(value)}")


def transformed(spec: Json, key: Any, value: Any, number: int | None) -> str | None:
    """Return what a table's transformer makes of a value. ``number``: of its calls for the key, if it counts them."""
    if value is None and not spec.get("keeps_null"):
        return None
    return f"{text_of(key)}={text_of(value)}{'' if number is None else f'#{number}'}"


def concat(aggregate: str, value: Any) -> str:
    """Append the value's text to the aggregate, separated by a comma."""
    return f"{aggregate},{text_of(value)}" if aggregate else text_of(value)
