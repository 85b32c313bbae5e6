"""A JSON file of objects over several lines, or of one list, is divided into objects, one per line."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindow.engine.worker.text import reading as module
from rewindow.engine.worker.text.file_text import BadTextError
from rewindow.engine.worker.text.json_records import json_records
from rewindow.engine.worker.text.reading import json_lines


def chunks(data, size):
    return (data[start : start + size] for start in range(0, len(data), size))


def read(data, size=7):
    """Return the objects and their lines in the file."""
    objects, lines = [], []
    for block in json_lines(chunks(data, size)):
        texts = block.data.split(b"\n")
        assert len(texts) == len(block.lines)
        objects += texts
        lines += block.lines.tolist()
    return objects, lines


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('\n{"a":\n 1}\r\n\n{"b": [\n{}]}\n', [1, 4]),
        (' [ {"a": 1},\n{"b": [{}]}\n, {"c": "}\\"]"}] \n', [0, 1, 2]),
        ('[{"a":1},{"a":2}]', [0, 0]),
        ('{"a": "\\\\"}\n{"b": "{["}', [0, 1]),
        ("[]", []),
        ("[\n]\n", []),
        ("", []),
        (" \n", []),
    ],
)
def test_objects_have_the_lines_where_they_begin(text, lines, size):
    objects, found = read(text.encode(), size)
    assert found == lines
    expected = json.loads(text) if "[" in text.split("{")[0] else None
    if expected is not None:
        assert [json.loads(value) for value in objects] == expected
    assert not json_records(b"\n".join(objects)).faults


UNDIVIDED = {
    "text before": ('x {"a": 1}', 0),
    "text between": ('{"a": 1}\nx\n{"a": 1}', 2),
    "text after": ('{"a": 1}\n\nx', 2),
    "a comma between objects": ('{"a": 1},\n{"a": 1}', 1),
    "two objects in a line": ('{"a": 1} {"a": 1}', 0),
    "a comma too many": ('[{"a": 1},\n,{"a": 1}]', 1),
    "a comma at the end": ('[{"a": 1},\n]', 1),
    "a comma at the beginning": ('[,{"a": 1}]', 0),
    "no comma": ('[{"a": 1}\n{"a": 1}]', 1),
    "a list in a list": ('[[{"a": 1}]]', 0),
    "a number in a list": ("[1]", 0),
    "a second list": ("[{}]\n[{}]", 1),
    "a list after objects": ("{}\n[{}]", 1),
    "text after the list": ("[{}]\n1", 1),
    "a list without an end": ('\n[\n{"a": 1}\n', 1),
    "an object without an end": ('{"a": 1}\n\n{"a":\n1', 2),
    "a string without an end": ('{"a": 1}\n{"a": "1}\n{"a": 1}', 1),
    "a bracket without its beginning": ('{"a": 1}\n}\n', 1),
    "the wrong end of the list": ('[{"a": 1}\n}', 1),
    "a backslash outside": ('\\{"a": 1}', 0),
}


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(("text", "line"), UNDIVIDED.values(), ids=UNDIVIDED)
def test_a_file_whose_objects_cannot_be_told_apart_is_refused_with_the_line(text, line, size):
    with pytest.raises(BadTextError) as error:
        read(text.encode(), size)
    assert error.value.line == line


def test_a_line_break_in_a_string_stays_a_fault():
    objects, _ = read(b'{"a": "x\ny"}\n{"a": 1}')
    assert list(json_records(b"\n".join(objects)).faults) == [0]


def test_an_object_has_a_bounded_size(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 100)
    assert len(read(b'{"a": "' + b"x" * 80 + b'"}\n{}')[0]) == 2
    with pytest.raises(BadTextError):
        read(b'{"a": "' + b"x" * 200 + b'"}\n{}')


TEXTS = st.lists(
    st.dictionaries(st.text(max_size=2), st.text(max_size=4) | st.lists(st.integers(), max_size=2), max_size=3),
    max_size=4,
)
PIECES = [b"", b"[", b"]", b"{", b"}", b",", b"\n", b'"', b"\\", b" ", b"1"]


class RefusedError(ValueError):
    pass


def unique(pairs):
    if len(dict(pairs)) < len(pairs):
        raise RefusedError
    return dict(pairs)


def python_list(text):
    """Return the objects of a list as Python reads it; None if it is no list of objects."""
    try:
        values = json.loads(text, object_pairs_hook=unique)
    except ValueError:
        return None
    return values if all(isinstance(value, dict) for value in values) else None


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from([None, 1]), st.integers(1, 40), st.data())
def test_a_list_is_accepted_and_read_as_python_does(objects, indent, size, data):
    text = json.dumps(objects, indent=indent).encode()
    if data.draw(st.booleans()):
        position = data.draw(st.integers(1, len(text)))
        text = text[:position] + data.draw(st.sampled_from(PIECES)) + text[position + data.draw(st.integers(0, 1)) :]
    expected = python_list(text)
    try:
        found, lines = read(text, size)
    except BadTextError:
        found, lines = [b"no object"], []
    if expected is None:
        assert json_records(b"\n".join(found)).faults
    else:
        assert [json.loads(value) for value in found] == expected
        assert lines == sorted(lines)
        assert all(b"{" in text.split(b"\n")[line] for line in lines)
