"""Canonical JSON: values round-trip, and equal values give equal texts."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import Change, Stamped, Window, Windowed
from rewindow.streams.serde.canonical_json import dump_value, load_value
from tests.refusals import refused


class Point(NamedTuple):
    """A row."""

    x: Any
    y: Any


ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.decimals(allow_nan=False)
)
KEYS = st.text(max_size=3) | st.integers(-3, 3) | st.tuples(st.text(max_size=2), st.booleans())
JSON_VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(Point, inner, inner)
        | st.builds(Windowed, inner, st.builds(Window, st.integers(0, 9), st.integers(0, 9), st.booleans()))
        | st.builds(Change, inner, inner)
        | st.builds(Stamped, inner, st.integers(0, 9))
    ),
    max_leaves=8,
)


@given(JSON_VALUES)
def test_the_text_gives_the_value_back(value: Any) -> None:
    text = dump_value(value)
    assert load_value(text) == value
    assert dump_value(load_value(text)) == text
    assert json.loads(text) is not ...


@given(JSON_VALUES)
def test_types_come_back_too(value: Any) -> None:
    assert shape(load_value(dump_value(value))) == shape(value)


def shape(value: Any) -> Any:
    """Return the value with its classes, because `==` does not distinguish 1, True and 1.0, or classes of tuples."""
    if isinstance(value, dict):
        return {"dict": {dump_value(key): (shape(key), shape(item)) for key, item in value.items()}}
    if isinstance(value, list):
        return [shape(item) for item in value]
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        return (fields, *(shape(item) for item in value))
    return type(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        ("é", '"é"'),
        ((1, "a"), '{"$tuple":[1,"a"]}'),
        (Point(1, None), '{"x":1,"y":null}'),
        ({1: "a"}, '{"$dict":[[1,"a"]]}'),
        ({"$tuple": 1}, '{"$dict":[["$tuple",1]]}'),
        (b"\x01\xff", '{"$bytes":"01ff"}'),
        (Decimal("1.50"), '{"$decimal":"1.50"}'),
        (math.inf, '{"$float":"inf"}'),
        (-0.0, "0.0"),
        (Windowed("a", Window(0, 10)), '{"$windowed":["a",0,10,false]}'),
        (Change(1), '{"$change":[1,null]}'),
    ],
    ids=repr,
)
def test_the_text_is_as_documented(value: Any, text: str) -> None:
    assert dump_value(value) == text


def test_nan_round_trips() -> None:
    assert math.isnan(load_value(dump_value(math.nan)))


@given(st.dictionaries(KEYS, ATOMS, max_size=5), st.randoms())
def test_insertion_order_of_a_dictionary_is_not_data(value: dict[Any, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert dump_value(dict(items)) == dump_value(value)
    assert list(load_value(dump_value(dict(items)))) == list(load_value(dump_value(value)))


@pytest.mark.parametrize("value", [object(), {1, 2}, len, [object()]])
def test_other_classes_are_refused_and_nothing_is_pickled(value: Any) -> None:
    with refused("value-type-not-storable"):
        dump_value(value)
