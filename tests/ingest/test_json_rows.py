"""Files of JSON lines are read as Spark reads them, or left to Spark."""

from __future__ import annotations

import json

import pytest

from rewindow.contracts.ingest import LogColumns, LogSpec, Piece, SourceLook, SourceSpec
from rewindow.engine.spark.ingest_fields import json_fields as fields_by_spark
from rewindow.engine.worker.landing.json_rows import check_json, json_fields, json_rows, json_schema
from rewindow.engine.worker.landing.source_types import UnsuitableError, arrow_type, fields_of
from tests.ingest.test_csv_rows import TEXTS, numbers_of_times, write

pytestmark = pytest.mark.spark

VALUES = [
    *map(json.dumps, TEXTS),
    *("null", "true", "false", "0", "-0", "1", "-128", "128", "32768", "2147483648", str(2**63 - 1), str(2**63)),
    *(
        "1.0",
        "-0.0",
        "0.1",
        "1e5",
        "1E-7",
        "1e400",
        "123456789012345678.5",
        "1767607200000",
        "1767607200.5",
        "01",
        "+1",
    ),
    *(".5", "5.", "NaN", "Infinity", "[]", "[1]", "{}", '{"b":1}', "'x'", "x", "", '"\\ud83d\\ude00"', '"\\ud800"'),
    *('"\\u0000"', '"\\/"', '"\\x"', '"a\tb"', '"\u2028"', '1 "b"', "1]", "tru", "/* x */ 1"),
]
"""Values as they stand in a file."""
KINDS = ("string", "byte", "short", "integer", "long", "double", "boolean", "date", "timestamp", "decimal(9,2)")
SOURCE = SourceSpec("json", "raw", "raw", {})


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_read_as_spark_does(spark, tmp_path, kind, zone):
    lines = [f'{{"n": {number}, "c": {value}}}\n' for number, value in enumerate(VALUES)]
    options = {"timeZone": zone, "columnNameOfCorruptRecord": "bad"}
    frame = spark.read.schema(f"n int, c {kind}, bad string").options(**options)
    rows = frame.json(write(tmp_path / "wide", "".join(lines), "a.json")).select("n", "c", "bad").toArrow()
    assert rows.num_rows == len(VALUES)
    values = numbers_of_times(rows["c"].cast(arrow_type(kind)))
    expected = {
        number: values[at] for at, number in enumerate(rows["n"].to_pylist()) if rows["bad"][at].as_py() is None
    }
    accepted = 0
    for number, line in enumerate(lines):
        path = write(tmp_path / "narrow", line, "a.json")
        try:
            (found,) = numbers_of_times(json_rows(SOURCE, path, {"c": kind}, zone).column(0))
        except UnsuitableError:
            continue
        accepted += 1
        assert number in expected, (kind, line)
        assert repr(found) == repr(expected[number]), (kind, line)
    assert accepted >= (0 if kind.startswith("decimal") else 3)


FILES = {
    "numbers and texts": '{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n',
    "other fields in each row": '{"b": 1}\n{"a": "x", "c": true}\n{}\n',
    "whole and other numbers": '{"a": 1}\n{"a": 1.5}\n',
    "values that are null": '{"a": null, "b": 1}\n{"a": null, "b": null}\n',
    "a null and a text": '{"a": null}\n{"a": "x"}\n',
    "Windows lines": '{"a": 1}\r\n{"a": 2}\r\n',
    "empty lines": '{"a": 1}\n\n{"a": 2}\n\n',
    "no end of line": '{"a": 1}',
    "times": '{"a": "2026-01-05T10:00:00Z"}\n',
    "numbers and words": '{"a": 1}\n{"a": "x"}\n',
    "a nested object": '{"a": {"b": 1}}\n',
    "an array": '{"a": [1]}\n',
    "a field twice": '{"a": 1, "a": 2}\n',
    "fields that differ in case": '{"a": 1, "A": 2}\n',
    "a large number": '{"a": 99999999999999999999}\n',
    "no JSON": '{"a": 1}\nx\n',
    "an array of rows": '[{"a": 1}, {"a": 2}]\n',
    "two objects in a line": '{"a": 1} {"a": 2}\n',
    "an object in lines": '{"a":\n1}\n',
    "a byte order mark": b'\xef\xbb\xbf{"a": 1}\n',
    "UTF-16": '{"a": 1}\n'.encode("utf-16"),
    "Latin-1": '{"a": "\u00e4"}\n'.encode("latin-1"),
    "nothing": "",
}


def found_by_us(path: str) -> list[tuple[str, str]] | None:
    try:
        check_json(SOURCE, [Piece(path)])
        return [(field["name"], field["type"]) for field in json.loads(json_schema(SOURCE, [Piece(path)]))["fields"]]
    except UnsuitableError:
        return None


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_as_spark_does(spark, tmp_path, name):
    path = write(tmp_path / "raw", FILES[name], "a.json")
    found = found_by_us(path)
    if found is None:
        return
    frame = spark.read.options(timeZone="UTC").json(path)
    schema = frame.schema.json()
    assert found == [(field["name"], field["type"]) for field in json.loads(schema)["fields"]]
    rows = json_rows(SOURCE, path, fields_of(schema), "UTC")
    assert sorted(map(str, rows.to_pylist())) == sorted(map(str, frame.toArrow().to_pylist()))
    spec = LogSpec("events", SOURCE, ("a",), scalar_key=True, value=None, scalar_value=False, timestamp="a")
    columns, look = LogColumns((), (), True, False, schema), SourceLook({}, (Piece(path),))
    assert json_fields(spec, columns, look) == fields_by_spark(spark, spec, columns, look)


def test_most_usual_files_are_read_without_spark(tmp_path):
    taken = [name for name, text in FILES.items() if found_by_us(write(tmp_path / "raw", text, "a.json")) is not None]
    assert taken == list(FILES)[:9]
