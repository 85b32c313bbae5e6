"""Tokens of strings become texts, nested ones canonical JSON, and those that do not fit their type are named with their path."""

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.engine.worker.text.json_records import json_records
from rewindow.engine.worker.text.json_types import inferred, merge, mixtures, schema_type
from rewindow.engine.worker.text.json_values import JSON, Misfit, nested, texts_of
from rewindow.streams.serde.canonical_json import load_value


def struct(**fields):
    return {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields.items()],
    }


def array(kind):
    return {"type": "array", "elementType": kind, "containsNull": True}


def mapping(kind):
    return {"type": "map", "keyType": "string", "valueType": kind, "valueContainsNull": True}


ARROW = {
    "long": pa.int64(),
    "double": pa.float64(),
    "float": pa.float32(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "date": pa.date32(),
    "timestamp": pa.timestamp("ms", "UTC"),
}


def typed(texts, kind):
    """Arrow's casts, one text after another, in place of the table of forms."""
    rows = [cast(text, kind) for text in texts.to_pylist()]
    return pa.array(rows, ARROW.get(kind, pa.binary())), np.array([row is None for row in rows], np.bool_)


def cast(text, kind):
    if kind == "binary":
        return text.encode()
    if kind == "decimal(10,2)" and Fraction(text) * 100 % 1:
        return None
    try:
        if kind == "timestamp":
            return pc.floor_temporal(pa.scalar(text).cast(pa.timestamp("ns", "UTC")), unit="millisecond").as_py()
        return pa.scalar(text).cast(ARROW[kind]).as_py()
    except pa.ArrowInvalid:
        return None


def canonical(kind, *tokens):
    result = nested(pa.array(tokens, pa.string()), kind, "c", typed)
    assert not result.misfits
    return result.texts.to_pylist()


def misfits(kind, *tokens):
    result = nested(pa.array(tokens, pa.string()), kind, "c", typed)
    assert [row for row, text in enumerate(result.texts.to_pylist()) if text is None] == list(result.misfits)
    return {row: (misfit.path, misfit.value) for row, misfit in result.misfits.items()}


def test_strings_become_their_texts_and_other_tokens_are_marked():
    tokens = [r'"a\"b"', '"x"', None, "5", r'"\ud83d\ude00\n"', '""', '"é"', "[]", '"null"', "true"]
    texts, is_bad = texts_of(pa.array(tokens, pa.string()))
    assert texts.to_pylist() == ['a"b', "x", None, None, "😀\n", "", "é", None, "null", None]
    assert np.flatnonzero(is_bad).tolist() == [3, 7, 9]


@given(st.lists(st.none() | st.text(max_size=5), max_size=8), st.booleans(), st.integers(0, 3))
def test_any_text_comes_back(texts, is_ascii, start):
    tokens = pa.array(
        [None if text is None else json.dumps(text, ensure_ascii=is_ascii) for text in texts], pa.string()
    )
    found, is_bad = texts_of(tokens.slice(start))
    assert found.to_pylist() == texts[start:]
    assert not is_bad.any()


def test_a_struct_is_a_row_of_its_declared_fields_and_a_missing_one_is_null():
    kind = struct(zip="string", n="long", geo=struct(lat="double"), ok="boolean")
    assert canonical(
        kind, '{"n": 5, "x": [1], "zip": "00501", "ok": true}', '{"geo": {"lat": 5}, "n": null}', "{}", None
    ) == [
        '{"zip":"00501","n":5,"geo":null,"ok":true}',
        '{"zip":null,"n":null,"geo":{"lat":5.0},"ok":null}',
        '{"zip":null,"n":null,"geo":null,"ok":null}',
        None,
    ]


def test_a_struct_with_other_names_and_a_map_are_dictionaries():
    assert canonical(struct(**{"a b": "long", "c": "string"}), '{"a b": 1}') == ['{"$dict":[["a b",1],["c",null]]}']
    assert canonical(mapping("long"), '{"b": 1, "a": null}') == ['{"$dict":[["a",null],["b",1]]}']


def test_scalars_have_the_texts_of_their_types():
    kind = struct(d="decimal(10,2)", f="float", x="double", day="date", time="timestamp", b="binary")
    (text,) = canonical(
        kind,
        '{"d": 1.5, "f": 0.1, "x": 1E-3, "day": "2026-01-05", "time": "2026-01-05T08:30:00.001999Z", "b": "x"}',
    )
    assert json.loads(text) == {
        "d": {"$decimal": "1.50"},
        "f": 0.1,
        "x": 0.001,
        "day": "2026-01-05",
        "time": "2026-01-05T08:30:00.001Z",
        "b": "eA==",
    }


def test_times_before_1970_are_rounded_down_and_early_years_have_four_digits():
    times = ['["1969-12-31T23:59:59.9999Z"]', '["1700-01-01T00:00:00Z"]']
    assert canonical(array("timestamp"), *times) == ['["1969-12-31T23:59:59.999Z"]', '["1700-01-01T00:00:00.000Z"]']


def test_decimals_are_exact_from_the_text():
    (text,) = canonical(array("decimal(10,2)"), "[12345678.91, 0, 0.10, -1]")
    assert [str(value) for value in load_value(text)] == ["12345678.91", "0.00", "0.10", "-1.00"]


def test_a_nested_value_of_type_json_is_its_exact_text():
    kind = struct(p=JSON, l=array(JSON), m=mapping(JSON), n="long")
    value = '{"p": {"x":  1.50, "x2": [ ]}, "l": [1.0, "é\\u00e9" , null], "m": {"a": 1E2}, "n": 1}'
    row = load_value(canonical(kind, value)[0])
    assert row.p == '{"x":  1.50, "x2": [ ]}'
    assert row.l == ["1.0", '"é\\u00e9"', None]
    assert (row.m, row.n) == ({"a": "1E2"}, 1)
    assert canonical(kind, "{}") == ['{"p":null,"l":null,"m":null,"n":null}']


@pytest.mark.parametrize(
    ("kind", "token", "path", "value"),
    [
        (struct(a="long"), '{"a": "5"}', "c.a", '"5"'),
        (struct(a="long"), '{"a": 1.5}', "c.a", "1.5"),
        (struct(a="long"), '{"a": 9223372036854775808}', "c.a", "9223372036854775808"),
        (struct(a="long"), '{"a": true}', "c.a", "true"),
        (struct(a="string"), '{"a": 5}', "c.a", "5"),
        (struct(a="string"), '{"a": {"b": [1, "é", null]}}', "c.a", '{"b": [1, "é", null]}'),
        (struct(a="boolean"), '{"a": "true"}', "c.a", '"true"'),
        (struct(a="date"), '{"a": "2026-02-30"}', "c.a", '"2026-02-30"'),
        (struct(a="timestamp"), '{"a": 5}', "c.a", "5"),
        (struct(a="decimal(10,2)"), '{"a": 1.005}', "c.a", "1.005"),
        (struct(a=array("long")), '{"a": [1, null, "x"]}', "c.a[2]", '"x"'),
        (struct(a=array(struct(b="long"))), '{"a": [{"b": 1}, {"b": []}]}', "c.a[1].b", "[]"),
        (mapping("long"), '{"k": 1, "l": false}', "c.l", "false"),
        (array("long"), "{}", "c", "{}"),
        (struct(a="long"), "[1]", "c", "[1]"),
        (struct(a="long"), '"x"', "c", '"x"'),
        (mapping("long"), "1", "c", "1"),
        (struct(a=JSON, b="long"), '{"a": 1, "b": "x"}', "c.b", '"x"'),
        (struct(a=JSON), "[1]", "c", "[1]"),
        (array(JSON), '"x"', "c", '"x"'),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_path(kind, token, path, value):
    good = {"struct": "{}", "array": "[]", "map": "{}"}[kind["type"]]
    found = misfits(kind, good, token, good, token)
    assert found == {1: (path, value), 3: (path, value)}


def test_a_misfit_names_the_declared_type():
    result = nested(pa.array(['{"a": "x"}']), struct(a="long"), "c", typed)
    assert result.misfits == {0: Misfit("c.a", "long", '"x"')}


def types_of(*tokens, source=None):
    return inferred(pa.array(tokens, pa.string()), source)


@pytest.mark.parametrize(
    ("tokens", "kind"),
    [
        (['"a"', None], "string"),
        (['"5"'], "string"),
        (["5", "-7", None], "long"),
        (["5", "1.5"], "double"),
        (["1e3"], "double"),
        (["1E3", "2"], "double"),
        (["NaN", "1"], "double"),
        (["-Infinity"], "double"),
        (["true", "false"], "boolean"),
        ([None, None], "string"),
        ([], "string"),
        (["{}"], struct()),
        (["[]"], array("string")),
        (["[null]", "[1]", "[2.5]"], array("double")),
        (
            ['{"b": 1, "a": "x"}', '{"C": [{"d": true}], "b": null}'],
            struct(C=array(struct(d="boolean")), a="string", b="long"),
        ),
    ],
)
def test_the_type_of_a_field_comes_from_all_values(tokens, kind):
    types = types_of(*tokens)
    assert not list(mixtures(types, "c"))
    assert schema_type(types) == kind
    for cut in range(len(tokens) + 1):
        assert schema_type(merge(types_of(*tokens[:cut]), types_of(*tokens[cut:]))) == kind


def test_values_of_several_types_are_named_with_examples():
    earlier = types_of(None, "5", "6", source="first")
    later = types_of("7", '"5"', "1.5", source="second")
    (mixture,) = mixtures(merge(earlier, later), "c")
    assert (mixture.path, mixture.kinds) == ("c", ("double", "string"))
    assert mixture.examples == (("second", 2), ("second", 1))
    assert dict(merge(earlier, later).kinds)["long"] == ("first", 1)


def test_mixed_types_within_objects_and_lists_are_named_with_their_paths():
    types = types_of('{"a": [1, "x"]}', '{"a": [], "b": {"c": 1}}', '{"b": {"c": [1]}}')
    found = [(mixture.path, mixture.kinds, mixture.examples) for mixture in mixtures(types, "p")]
    assert found == [
        ("p.a[]", ("long", "string"), ((None, 0), (None, 0))),
        ("p.b.c", ("array", "long"), ((None, 2), (None, 1))),
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(VALUES, max_size=6), st.data())
def test_types_of_blocks_merge_to_those_of_the_whole(values, data):
    tokens = [None if value is None else json.dumps(value) for value in values]
    cut = data.draw(st.integers(0, len(tokens)))
    whole = types_of(*tokens)
    merged = merge(types_of(*tokens[:cut]), types_of(*tokens[cut:]))
    assert [mixture[:2] for mixture in mixtures(whole, "c")] == [mixture[:2] for mixture in mixtures(merged, "c")]
    if not list(mixtures(whole, "c")):
        assert schema_type(whole) == schema_type(merged)


def test_tokens_of_a_block_are_typed_without_a_copy_of_its_text():
    """The columns of a block go on as they are: slices, nulls and escapes included."""
    records = json_records(b'{"a": "x\\n", "n": {"d": 1.50}}\n{"a": null}\n{"n": {"d": 2}}\n' * 100)
    texts, _ = texts_of(records.columns["a"])
    assert texts.to_pylist()[:3] == ["x\n", None, None]
    result = nested(records.columns["n"], struct(d="decimal(10,2)"), "n", typed)
    assert [value and load_value(value).d for value in result.texts.to_pylist()[:3]] == [
        Decimal("1.50"),
        None,
        Decimal(2),
    ]
