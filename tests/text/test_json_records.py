"""JSON lines become columns of raw tokens, and a line that is not exactly one object is a fault of its row."""

import json
import re
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindow.engine.worker.text.json_records import json_records
from rewindow.engine.worker.text.json_tokens import MAX_DEPTH


def columns(data, **options):
    records = json_records(data.encode() if isinstance(data, str) else data, **options)
    assert not records.faults
    return {name: values.to_pylist() for name, values in records.columns.items()}


def test_a_value_is_its_exact_token():
    line = r'{"a": "x\"y\u00e9", "b": 1.50, "c": true, "d": {"x":  1}, "e": [1, 2 ], "f": -0, "g": 1E+2, "é": "ü"}'
    assert columns(line) == {
        "a": [r'"x\"y\u00e9"'],
        "b": ["1.50"],
        "c": ["true"],
        "d": ['{"x":  1}'],
        "e": ["[1, 2 ]"],
        "f": ["-0"],
        "g": ["1E+2"],
        "é": ['"ü"'],
    }


def test_null_and_missing_fields_are_null_and_their_names_are_there():
    assert columns('{"a": 1}\n{"b": null, "a": null}\n{}\n') == {"a": ["1", None, None], "b": [None, None, None]}


def test_columns_are_in_the_order_of_first_occurrence():
    lines = ['{"b": 1, "a": 2}'] * 3 + ['{"c": 1, "b": 2}'] * 200 + ['{"z": [], "y": 1, "x": {}, "a": 1}'] * 200
    assert list(columns("\n".join(lines))) == ["b", "a", "c", "z", "y", "x"]


def test_wanted_columns_are_the_only_ones():
    assert columns('{"a": 1, "b": [2]}\n' * 200, wanted=["b", "c"]) == {"b": ["[2]"] * 200}


def test_blank_lines_are_no_records_and_lines_count_them():
    records = json_records(b'\n{"a": 1}\r\n \t\r\n{"a": 2}\r\n\r\n[]')
    assert records.lines.tolist() == [1, 3, 5]
    assert records.columns["a"].to_pylist() == ["1", "2", None]
    assert list(records.faults) == [2]


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n", b" \n \t"])
def test_a_block_without_records_is_empty(data):
    records = json_records(data)
    assert (dict(records.columns), records.lines.tolist(), dict(records.faults)) == ({}, [], {})


REFUSED = {
    "a list": "[1]",
    "a text": '"a"',
    "a number": "1",
    "null": "null",
    "two objects": '{"a": 1} {"a": 2}',
    "two objects without a blank": '{"a": 1}{"a": 2}',
    "text after the object": '{"a": 1}x',
    "text after an object that ends with a string": '{"a": "x"} y',
    "a comma after the object": '{"a": 1},',
    "an object without an end": '{"a": 1',
    "no end after a comma": '{"a": 1,',
    "a repeated field": '{"a": 1, "a": 2}',
    "a repeated field, once escaped": r'{"a": 1, "\u0061": 2}',
    "a repeated field beside a nested one": '{"a": 1, "n": [1], "a": [2]}',
    "a repeated nested field": '{"n": {"x": 1, "x": 1}}',
    "a repeated field in a list": '{"n": [{"x": 1, "x": 1}]}',
    "a trailing comma": '{"a": 1,}',
    "a trailing comma in a list": '{"a": [1,]}',
    "a leading comma": '{,"a": 1}',
    "no comma": '{"a": 1 "b": 2}',
    "no colon": '{"a" 1}',
    "no value": '{"a": }',
    "no name": "{: 1}",
    "a name without quotes": "{a: 1}",
    "single quotes": "{'a': 1}",
    "NaN": '{"a": NaN}',
    "Infinity": '{"a": -Infinity}',
    "nested NaN": '{"a": [NaN]}',
    "a leading zero": '{"a": 01}',
    "a point at the end": '{"a": 1.}',
    "a point at the beginning": '{"a": .5}',
    "a plus": '{"a": +1}',
    "a minus alone": '{"a": -}',
    "an exponent without digits": '{"a": 1e}',
    "a hexadecimal number": '{"a": 0x1}',
    "digits of another script": '{"a": \u0661}',
    "a literal in capitals": '{"a": True}',
    "a comment": '{"a": 1} // x',
    "a tab in a string": '{"a": "x\ty"}',
    "a NUL in a string": '{"a": "x\0y"}',
    "a carriage return in a string": '{"a": "x\ry"}',
    "a NUL between tokens": '{"a":\0 1}',
    "an invalid escape": r'{"a": "\q"}',
    "an escaped quote of another kind": r'{"a": "\'"}',
    "a short escape": r'{"a": "\u12"}',
    "an escape with a sign": r'{"a": "\u+123"}',
    "a backslash at the end": '{"a": "x\\',
    "an escaped last quote": r'{"a": "x\"}',
    "half a character": r'{"a": "\ud83d"}',
    "the second half of a character": r'{"a": "\ude00"}',
    "halves in the wrong order": r'{"a": "\ude00\ud83d"}',
    "half a character in a name": r'{"\ud83d": 1}',
    "half a character in a nested value": r'{"a": {"b": ["\uD83D"]}}',
    "half a character in a nested name": r'{"a": {"\uD83D": 1}}',
    "a string without an end": '{"a": "x}',
    "another blank": '{"a":\u00a01}',
    "brackets that do not match": '{"a": [1}',
    "a byte order mark in the middle": '\ufeff{"a": 1}',
    "deep nesting": '{"a": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}",
    "very deep nesting": '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "very deep nesting without an end": '{"a": ' + '{"a":' * 100_000,
    "very deep nesting in a list": '{"a": [' + '{"a":[' * 5000 + "]}" * 5000 + "]}",
}

LIKE = {"alone": [], "among lines with strings": ['{"a": "x"}'] * 150, "among lines with numbers": ['{"a": 1}'] * 150}
LIKE["among lines with lists"] = ['{"a": [1]}'] * 150
LIKE["among lines with escapes"] = [r'{"a": "\n"}'] * 151


@pytest.mark.parametrize("beside", LIKE.values(), ids=LIKE)
@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
def test_a_line_that_is_not_one_object_is_a_fault_of_its_row_alone(line, beside):
    records = json_records("\n".join([*beside, line, *beside]).encode())
    assert list(records.faults) == [len(beside)]
    assert all(len(reason) < 100 for reason in records.faults.values())
    assert len(records.lines) == 2 * len(beside) + 1
    expected = [re.sub(r'^\{"a": |\}$', "", text) for text in beside]
    if beside:
        assert records.columns["a"].to_pylist() == [*expected, None, *expected]


def test_a_field_between_nested_ones_is_found_and_may_not_occur_twice():
    lines = ['{"a": 1, "b": [1], "c": [2], "d": 0}'] * 150
    lines += ['{"a": 1, "b": [1], "e": 3, "c": [2], "d": 0}', '{"a": 1, "b": [1], "a": 3, "c": [2], "d": 0}']
    lines += ['{"a": 1, "b": [1], "d": 3, "c": [2], "d": 0}', '{"a": 1, "b": [1], "b": 3, "c": [2], "d": 0}']
    records = json_records("\n".join(lines).encode())
    assert list(records.faults) == [151, 152, 153]
    assert records.columns["e"].to_pylist() == [None] * 150 + ["3", None, None, None]
    assert records.columns["c"].to_pylist() == ["[2]"] * 151 + [None] * 3


def test_blanks_around_a_value_are_not_part_of_its_token():
    lines = ['{"a": [1], "b": 1, "c": "x"}'] * 150 + ['{"a":  [1] , "b":  1 , "c":  "x" }'] * 2
    assert columns("\n".join(lines)) == {"a": ["[1]"] * 152, "b": ["1"] * 152, "c": ['"x"'] * 152}


def test_deep_nesting_within_the_bound_and_brackets_in_strings_are_accepted():
    value = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    text = '"' + "[" * 5000 + r"\"{" + '"'
    assert columns(f'{{"a": {value}, "b": {text}}}\n' * 150) == {"a": [value] * 150, "b": [text] * 150}


def test_constants_are_accepted_if_allowed():
    lines = '{"a": NaN}\n{"a": -Infinity}\n{"a": [Infinity]}\n' * 100
    assert columns(lines, constants=True) == {"a": ["NaN", "-Infinity", "[Infinity]"] * 100}
    assert len(json_records(b'{"a": nan}', constants=True).faults) == 1


def test_escapes_before_quotes_do_not_end_a_string():
    tokens = [r'"\\"', r'"\""', r'"\\\""', r'"x\\\\"', r'"\"\"y"', r'"\/\b\f\n\r\t"', r'"\ud83d\ude00"', '"{}[]:,"']
    assert columns("".join(f'{{"a": {token}, "b": "x"}}\n' for token in tokens * 100)) == {
        "a": tokens * 100,
        "b": ['"x"'] * 800,
    }


def test_a_name_with_a_quote_or_an_escape_has_its_unescaped_text():
    assert columns(r'{"a\"b": 1, "\u00e9": "x"}' + "\n" + '{"é": 2}') == {'a"b': ["1", None], "é": ['"x"', "2"]}


def test_a_block_of_many_shapes_is_read_like_its_lines():
    """More templates than are worth it: each line has its own name, and some have escapes and several nested values."""
    lines = [
        f'{{"k{n}": {n}, "s": "x", "n": [{n}], "m": {n % 7}, "o": {{"x": "{n}"}}, "t": "{n}"}}' for n in range(3000)
    ]
    lines += ['{"n": [1], "s": "y", "o": {"a": 1}}', '{"s": "\\n", "n": [[]]}'] * 300
    records = json_records("\n".join(lines).encode())
    assert not records.faults
    assert len(records.columns) == 3005
    rows = [json.loads(line) for line in lines]
    for name in ("k0", "k2999", "s", "n", "m", "o", "t"):
        tokens = records.columns[name].to_pylist()
        assert [None if token is None else json.loads(token) for token in tokens] == [row.get(name) for row in rows]


class RefusedError(ValueError):
    pass


def strict(text):
    """Python's reading of a line: its fields, and their values with the texts of numbers."""

    def unique(pairs):
        if any(count > 1 for count in Counter(name for name, _ in pairs).values()):
            raise RefusedError
        return dict(pairs)

    def refuse(name):
        raise RefusedError(name)

    value = json.loads(text, object_pairs_hook=unique, parse_constant=refuse, parse_float=Text, parse_int=Text)
    json.dumps(value, ensure_ascii=False).encode()  # refuses halves of characters
    if not isinstance(value, dict):
        raise RefusedError
    return value


class Text(str):
    """The text of a number."""

    __slots__ = ()

    def __eq__(self, other):
        return isinstance(other, Text) and str(self) == str(other)

    __hash__ = str.__hash__


def agree(lines):
    """The tokenizer accepts the lines that Python accepts, with the same values."""
    records = json_records(b"\n".join(lines))
    kept = [(number, line) for number, line in enumerate(lines) if line.strip(b" \t\r")]
    assert records.lines.tolist() == [number for number, _ in kept]
    for row, (_, line) in enumerate(kept):
        found = {name: tokens[row].as_py() for name, tokens in records.columns.items()}
        try:
            expected = strict(line.decode())
        except ValueError:
            assert row in records.faults, line
            assert set(found.values()) <= {None}
        else:
            assert row not in records.faults, (line, records.faults[row])
            assert expected.keys() <= found.keys()
            for name, token in found.items():
                value = None if token is None else json.loads(token, parse_float=Text, parse_int=Text)
                assert value == expected.get(name), line
                if token is not None:
                    assert token.strip() == token
                    assert token.encode() in line


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.sampled_from(["", '"', "\\", "\\\\", "é", "😀", "}", "{", "\n", "a"]),
)
NAMES = st.one_of(st.sampled_from(["a", "b", "user", "é", "", "a name of more than eight bytes"]), st.text(max_size=3))
VALUES = st.one_of(
    SCALARS,
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)),
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=5)
PIECES = [b"", b'"', b"\\", b",", b"}", b"{", b"[", b"]", b":", b" ", b"\t", b"\r", b"0", b"-", b".", b"e", b"\0"]
PIECES += [b"null", b"NaN", b"\\u", b"\\ud83d", b"d8", b'"a":1,', b"\xc3\xa9", b"}\r", b'"a": {"x": [1]}, ']


@st.composite
def lines_of_objects(draw):
    """Lines of a few shapes, repeated until they are worth a template, with changes in some of them."""
    shapes = draw(st.lists(OBJECTS, min_size=1, max_size=3))
    is_ascii, separators = draw(st.booleans()), draw(st.sampled_from([(", ", ": "), (",", ":"), (" , ", " :")]))
    lines = [json.dumps(shape, ensure_ascii=is_ascii, separators=separators).encode() for shape in shapes]
    lines *= draw(st.sampled_from([1, 75]))
    if draw(st.booleans()):
        lines = [line + b"\r" for line in lines]
    for _ in range(draw(st.integers(0, 6))):
        number = draw(st.integers(0, len(lines) - 1))
        line = lines[number]
        start = draw(st.integers(0, len(line)))
        end = min(len(line), start + draw(st.integers(0, 3)))
        changed = line[:start] + draw(st.sampled_from(PIECES)) + line[end:]
        lines[number] = changed.decode(errors="ignore").encode()
    return lines


@settings(max_examples=100, deadline=None)
@given(lines_of_objects())
def test_lines_are_accepted_and_read_as_python_does(lines):
    agree(lines)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join), st.sampled_from(['"x"', "1", "[1]", '{"a":1}']))
def test_a_value_among_equal_lines_is_accepted_as_python_does(text, value):
    line = b'{"a": %b, "b": "y"}'
    agree(
        [line % value.encode()] * 80 + [(line % text).decode(errors="ignore").encode()] + [line % value.encode()] * 80
    )


def test_columns_are_strings():
    assert json_records(b'{"a": 1}').columns["a"].type == pa.string()
