"""A value that the parser could not read is named with file, line, column and value."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from rewindow.config.feed_spec import feed_spec
from rewindow.contracts.ingest import FAIL, SKIP, Piece, SourceSpec, TimestampPolicy
from rewindow.engine.worker.bad_times import bad_times
from rewindow.engine.worker.bad_values import first_bad_value
from rewindow.engine.worker.timestamps import UNREADABLE, InvalidTimestampError, judge
from rewindow.errors import DataError
from tests.ingest.land_by_arrow import land_by_arrow
from tests.ingest.local_engine import feed_config

POINT = {"type": "struct", "fields": [{"name": "x", "type": "double"}]}
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "user", "type": "string"},
            {"name": "amount", "type": "long"},
            {"name": "price", "type": "decimal(10,2)"},
            {"name": "ok", "type": "boolean"},
            {"name": "day", "type": "date"},
            {"name": "at", "type": "timestamp"},
            {"name": "points", "type": {"type": "array", "elementType": POINT}},
        ],
    }
)
NAMES = "user,amount,price,ok,day,at,points\n"
GOOD = "ann,1,1.50,true,2026-01-01,2026-01-01T00:00:00Z,\n"


def found(tmp_path, text, kind="csv", **options):
    path = tmp_path / "raw" / f"d3.{kind}"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return first_bad_value(SourceSpec(kind, str(path.parent), "raw", options), SCHEMA, [Piece(str(path))])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ann,1,", "ann,abc,", "column amount: 'abc' is not a number"),
        ("ann,1,", "ann,1.5,", "column amount: '1.5' is not a whole number"),
        (
            "ann,1,",
            "ann,1.0,",
            (
                "column amount: '1.0' is not written as a whole number: write it without a point, or declare "
                "the column as DOUBLE"
            ),
        ),
        ("1.50", "1,50", "it has 8 values, but there are 7 columns"),
        ("1.50", "x", "column price: 'x' is not a number"),
        ("1.50", "1.505", "column price: '1.505' has more digits after the point than DECIMAL(10,2) holds"),
        ("1.50", "123456789", "column price: '123456789' does not fit DECIMAL(10,2)"),
        ("1.50", "NaN", "column price: 'NaN' is not a number"),
        ("1.50", "1e400", "column price: '1e400' does not fit DECIMAL(10,2)"),
        ("true", "yes", "column ok: 'yes' is not true or false"),
        ("2026-01-01,", "01.01.2026,", "column day: '01.01.2026' is not a date"),
        ("2026-01-01T00:00:00Z", "now", "column at: 'now' is not a time"),
    ],
)
def test_a_bad_value_in_csv_is_named_with_its_line_and_column(tmp_path, old, new, said):
    text = NAMES + GOOD + '"two\nlines",1,1,true,2026-01-01,,\n' + GOOD.replace(old, new)
    told = found(tmp_path, text, multiLine="true")
    assert told is not None
    assert told.partition(". If")[0] == f"d3.csv, line 5, {said}".replace("5, it", "5: it")


def test_csv_options_are_those_of_the_source(tmp_path):
    assert found(tmp_path, "# note\nann;-;1;true;;;\nann;x;1;true;;;\n", sep=";", header="false", nullValue="-",
                 comment="#") == "d3.csv, line 3, column amount: 'x' is not a number"  # fmt: skip


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"amount": "abc"}', 'field amount: "abc" is not a number'),
        ('{"amount": 1.5}', "field amount: 1.5 is not a whole number"),
        (
            '{"amount": 2.0}',
            (
                "field amount: 2.0 is not written as a whole number: write it without a point, or declare "
                "the column as DOUBLE"
            ),
        ),
        ('{"price": 1.505}', "field price: 1.505 has more digits after the point than DECIMAL(10,2) holds"),
        ('{"ok": "yes"}', 'field ok: "yes" is not true or false'),
        ('{"points": [{"x": 1}, {"x": "y"}]}', 'field points.x: "y" is not a number'),
        ('{"points": [3]}', "field points: 3 is not an object"),
        ("[1]", "1 is not an object"),
    ],
)
def test_a_bad_value_in_json_is_named_with_its_line_and_field(tmp_path, line, said):
    assert found(tmp_path, f'{{"user": "ann", "amount": 1}}\n\n{line}\n', "json") == f"d3.json, line 3, {said}"


@pytest.mark.parametrize(
    ("form", "value", "is_bad"),
    [
        ("dd.MM.yyyy HH:mm", "05.01.2026 08:15", False),
        ("dd.MM.yyyy HH:mm", "2026-01-05T08:15:00Z", True),
        ("dd.MM.yyyy HH:mm", "31.02.2026 08:15", True),
        ("dd MMM yyyy", "soon", False),
    ],
)
def test_a_time_that_has_not_the_declared_form_is_named_as_far_as_that_is_certain(tmp_path, form, value, is_bad):
    for kind, text in (
        ("csv", NAMES + GOOD.replace("2026-01-01T00:00:00Z", value)),
        ("json", json.dumps({"at": value})),
    ):
        told = found(tmp_path, text, kind, timestampFormat=form)
        assert (told is not None) is is_bad
        assert not is_bad or str(told).endswith(f"is not a time in the form `timestampFormat: {form}`")


@pytest.mark.parametrize(
    ("number", "seems", "column"),
    [
        ("1772613530", "seconds since 1970 (2026-03-04 08:38:50Z)", "BIGINT with `units: {COLUMN: s}`"),
        ("1772613530001", "milliseconds since 1970 (2026-03-04 08:38:50.001Z)", "BIGINT"),
        ("1772613530001000", "microseconds since 1970 (2026-03-04 08:38:50.001Z)", "BIGINT with `units: {COLUMN: us}`"),
        (
            "1772613530001000000",
            "nanoseconds since 1970 (2026-03-04 08:38:50.001Z)",
            "BIGINT with `units: {COLUMN: ns}`",
        ),
    ],
)
def test_a_number_among_the_texts_of_times_is_named_with_its_unit(tmp_path, number, seems, column):
    said = f": it seems to be {seems}. Write it in the form of other values. Only if all files have numbers, the column can"
    line = GOOD.replace("2026-01-01T00:00:00Z", number)
    told = found(tmp_path, NAMES + GOOD + line)
    assert told == f"d3.csv, line 3, column at: '{number}' is not a time{said} be a {column}"
    told = found(tmp_path, json.dumps({"at": number}), "json")
    assert told == f'd3.json, line 1, field at: "{number}" is not a time{said} be a {column}'
    told = found(tmp_path, NAMES + line, timestampFormat="yyyy-MM-dd HH:mm")
    assert told is not None
    assert f"is not a time in the form `timestampFormat: yyyy-MM-dd HH:mm`{said} be a {column}" in told


@pytest.mark.parametrize("number", ["20260304", "202603041014", "20260304101459", "12", "-1772613530"])
def test_a_date_of_digits_is_no_number_of_seconds(tmp_path, number):
    told = found(tmp_path, NAMES + GOOD.replace("2026-01-01T00:00:00Z", number))
    assert told is None or ("timestampFormat" in told and "since 1970" not in told)


def test_a_line_that_is_no_json_is_named(tmp_path):
    assert (
        found(tmp_path, '{"user": "ann"}\n{"user": ann}\n', "json")
        == "d3.json, line 2, column 10: it is not JSON (Expecting value)"
    )
    assert (
        found(tmp_path, '{"user": "ann"}\n{"user": "bob"\n{"user": "cid"}\n', "json")
        == "d3.json, line 2, column 15: it is not JSON (Expecting ',' delimiter)"
    )
    assert found(tmp_path, '[{"user": "ann"},\n {"user": }]\n', "json", multiLine="true").startswith(
        "d3.json, line 2, "
    )


@pytest.mark.parametrize("value", ["NaN", "-Infinity"])
def test_nan_and_infinity_are_no_json_unless_the_source_allows_them(tmp_path, value):
    lines = f'{{"points": [{{"x": 1}}]}}\n{{"points": [{{"x": {value}}}]}}\n'
    told = found(tmp_path, lines, "json")
    assert told == (
        f"d3.json, line 2: it has {value}, which is not JSON: write null, or add `options: {{allowNonNumericNumbers: true}}` "
        "to the source, which lands it as a DOUBLE"
    )
    assert found(tmp_path, lines, "json", allowNonNumericNumbers="true") is None


def test_a_file_without_a_bad_value_says_nothing(tmp_path):
    assert found(tmp_path, NAMES + GOOD) is None


def test_a_file_that_ends_within_a_line_may_still_be_written(tmp_path):
    path = tmp_path / "a.csv"
    spec, whole = SourceSpec("csv", str(tmp_path), "raw", {"header": "true"}), "user,t,x\nann,1,1\nbob,2,2\n"
    schema = json.dumps({"fields": [{"name": name, "type": "string"} for name in ("user", "t", "x")]})
    path.write_text(whole[:-3])
    told = "a.csv, line 3: the file may be incomplete: its last line has 2 values, but there are 3 columns"
    assert first_bad_value(spec, schema, [Piece(str(path))]) == told
    path.write_text("user,t,x\nann,1\nbob,2,2\n")
    assert (
        first_bad_value(spec, schema, [Piece(str(path))]) == "a.csv, line 2: it has 2 values, but there are 3 columns"
    )


@pytest.mark.parametrize(
    ("last", "is_open", "said"),
    [
        (
            "2026-01-01T02:14:",
            True,
            "line 3: the file may be incomplete: its last line has no end. Column at: '2026-01-01T02:14:' is",
        ),
        ("2026-01-01T02:14:", False, "line 3, column at: '2026-01-01T02:14:' is not a time"),
        ("2026-01-01T02:14:\n2026-01-01T02:14:", True, "line 3, column at: '2026-01-01T02:14:' is not a time"),
    ],
)
def test_a_value_that_is_cut_at_the_end_of_a_file_may_still_be_written(tmp_path, last, is_open, said):
    path = tmp_path / "a.csv"
    spec = SourceSpec("csv", str(tmp_path), "raw", {"header": "true"})
    schema = json.dumps({"fields": [{"name": "at", "type": "timestamp"}]})
    path.write_text(f"at\n2026-01-01T02:14:00Z\n{last}")
    pieces = [Piece(str(path), name="a.csv")]
    told = first_bad_value(spec, schema, pieces, open_ended=("a.csv",) if is_open else ())
    assert told is not None
    assert told.startswith(f"a.csv, {said}")


def test_a_line_that_is_cut_short_has_no_time_only_if_nothing_else_names_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,got,t\nann,,2026-01-05T10:00:00Z\nbob\n")
    config = feed_config(log={"source": {"path": str(tmp_path), "format": "csv", "options": {"header": "true"}}})
    (spec,) = feed_spec(config, project_root=str(tmp_path), warehouse="w").logs
    for is_cut_told, rows in ((False, 2), (True, 1)):
        bad = bad_times(spec, "got", "timestamp", [Piece(str(path))], is_cut_told=is_cut_told)
        assert bad is not None
        assert bad.rows == rows


@pytest.mark.parametrize("invalid", [FAIL, SKIP])
@pytest.mark.parametrize("unreadable", [FAIL, SKIP])
def test_unreadable_rows_have_a_policy_of_their_own(invalid, unreadable):
    policy = TimestampPolicy(invalid, None, unreadable)
    rows = pa.array([1, 2, None], pa.int64())
    for faults, fails in (([None, UNREADABLE, None], unreadable), ([None, None, "other"], invalid)):
        times = rows if faults[2] else pa.array([1, 2, 3], pa.int64())
        if fails == FAIL:
            with pytest.raises(InvalidTimestampError):
                judge(times, 10, faults, policy, -1)
        else:
            assert int(np.sum(judge(times, 10, faults, policy, -1).keep)) == 2


@pytest.mark.parametrize(
    ("locale", "good", "bad"),
    [
        ("de-DE", "1.234,50", "zehn"),
        ("de-DE", "-4,5", "4,5 EUR"),
        ("de-DE", "1.234.567", "4.5"),
        ("de-DE", "1.000", "1.5,00"),
        ("en-US", "1,234.50", "1.234.50"),
        ("en-IN", "12,34,567.5", "1234,567"),
        (None, "1,500.00", "1,5"),
        (None, "-1,500,000", "1;5"),
    ],
)
def test_a_decimal_that_its_locale_can_read_is_not_called_bad(tmp_path, locale, good, bad):
    text = NAMES.replace(",", "\t") + "".join(GOOD.replace(",", "\t").replace("1.50", price) for price in (good, bad))
    options = {"locale": locale} if locale else {}
    said = found(tmp_path, text, sep="\t", **options)
    assert said.startswith(f"d3.csv, line 3, column price: {bad!r} is not a number")
    assert ("where" in said) is (bad in {"4.5", "1.5,00", "1234,567", "1,5"})


def test_a_comma_before_three_digits_is_read_only_if_the_source_states_its_locale(tmp_path):
    text = NAMES.replace(",", "\t") + GOOD.replace(",", "\t").replace("1.50", "39,302")
    assert found(tmp_path, text, sep="\t").startswith(
        "d3.csv, line 2, column price: '39,302' is 39302 or 39.302: add `options: {locale: en-US}` to the source if commas group "
        "digits, or `options: {locale: de-DE}` if they begin the fractions of all files, and, if files were landed before, "
    )


def test_a_landing_says_that_the_file_with_a_cut_value_may_be_incomplete(tmp_path):
    source = {
        "path": "raw",
        "format": "csv",
        "options": {"header": "true"},
        "schema": "user STRING, t BIGINT, x BIGINT",
    }
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text("user,t,x\nann,1,1\nbob,2,x")
    with pytest.raises(
        DataError, match=r"a\.csv, line 3: the file may be incomplete: its last line has no end\. Column x: 'x'"
    ):
        land_by_arrow(tmp_path, source=source)
