"""JSON files with other fields than those that are landed: they are refused, and nothing is landed."""

from __future__ import annotations

import pytest

from rewindow.control.ingest.land import land
from rewindow.errors import DataError
from tests.ingest.land_by_arrow import arrow_at
from tests.ingest.local_engine import HOUR, T0, log_rows, one_log
from tests.ingest.text_files import Files
from tests.refusals import containing, refused

MISSING = "file-field-missing"
FIRST = '{"user": "ann", "t": 1, "amount": 5, "at": {"zip": 1, "n": null}, "tags": [{"k": 1}]}\n'


def test_a_renamed_json_field_is_refused_and_lands_no_null(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", FIRST * 3 + '{"user": "bob", "t": 2, "amount": 6}\n')
    assert feed.land().rows == 4
    odd = "d 2+é.json"
    for text, refusal in (
        (FIRST.replace("amount", "amt"), refused(MISSING, file=odd, field="amount", fix=containing("has amt,"))),
        (FIRST.replace("user", "uid"), refused(MISSING, field="user", fix=containing("has uid,"))),
        (FIRST.replace("zip", "plz"), refused(MISSING, field="at.zip", fix=containing("has at.plz,"))),
        (FIRST.replace('"k"', '"q"'), refused(MISSING, field="tags.k", fix=containing("has tags.q,"))),
        (FIRST.replace('"t"', '"x": 1, "t"'), refused("file-field-unknown", file=odd, field="x")),
    ):
        feed.write(odd, text)
        with refusal:
            feed.land()
    assert len(log_rows(feed.tables)) == 4
    feed.write("d 2+é.json", FIRST.replace('"t"', '"x": 1, "t"'))
    assert feed.land(ignore=["x"]).rows == 1
    feed.write("d3.json", '{"user": "ann", "t": 4, "at": null, "tags": []}\n')
    assert feed.land(ignore=["x"], optional=["amount"]).rows == 1
    assert [row["amount"] for row in log_rows(feed.tables) if row["landing"] == 3] == [None]


def test_lines_that_are_no_objects_hide_no_renamed_field(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json.gz", FIRST)
    feed.land()
    feed.write("d2.json", 'no JSON\n\n{"user": "ann", "user": "bob", "t": 2}\n' + FIRST.replace("amount", "amt"))
    with refused("text-row-invalid", where="d2.json, line 1"):
        feed.land()
    with refused("file-field-missing", field="amount"):
        feed.land(unreadable="skip")
    feed.write("d2.json", "")
    assert feed.land().rows == 0


def test_an_array_of_objects_has_the_fields_of_the_objects(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path), options={"lines": "multiple"})
    feed.write("d1.json", f"[{FIRST},\n{FIRST}]")
    assert feed.land().rows == 2
    feed.write("d2.json", f"[{FIRST.replace('amount', 'amt')}]")
    with refused("file-field-missing", field="amount"):
        feed.land()
    feed.write("d2.json", f"[{FIRST}]")
    assert feed.land().rows == 1


def test_names_below_a_declared_map_are_data(tmp_path):
    schema = "user STRING, t BIGINT, scores MAP<STRING, BIGINT>, raw JSON"
    feed = Files(tmp_path, arrow_at(tmp_path), schema=schema)
    feed.write("d1.json", '{"user": "ann", "t": 1, "scores": {"a": 1}, "raw": {"x": 1}, "left": "out"}\n')
    assert feed.land().rows == 1
    feed.write("d2.json", '{"user": "ann", "t": 2, "scores": {"b": 1}, "raw": {"y": 1}, "left": "out"}\n')
    assert feed.land().rows == 1
    feed.write("d3.json", '{"user": "ann", "t": 3, "scores": {"b": 1}, "raw": {"y": 1}, "right": "in"}\n')
    assert feed.land().rows == 1


def test_the_first_line_that_is_no_json_is_named_in_a_first_landing(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", FIRST + "oops\n")
    with refused(
        "text-row-invalid",
        where="d1.json, line 2",
        reason="no object (character 1)",
        fix=containing("Nothing was landed. Fix the file, or set `unreadable: skip`"),
    ):
        feed.land()
    assert feed.land(unreadable="skip").quarantined == 1


def test_records_without_fields_are_named_as_the_reason_for_missing_columns(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", "{}\n")
    with refused("source-without-columns", source="raw"):
        feed.land()


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("us", 1_000_000), ("ns", 1_000_000_000)])
def test_declared_units_are_converted_and_undeclared_arrivals_refused(tmp_path, unit, factor):
    feed = Files(tmp_path, arrow_at(tmp_path), "csv")
    seconds = T0 // 1000
    feed.write("d1.csv", f"user,t,got\nann,{seconds * factor},{seconds * factor}\n")
    with pytest.raises(DataError, match=rf"arrived_at {seconds * factor} is in .*`units:"):
        feed.land(arrived_at="got", every="1d", units={"t": unit})
    day = 24 * HOUR
    report = feed.land(arrived_at="got", every="1d", units={"t": unit, "got": unit}, now_ms=T0 + day)
    assert report.rows == 1
    assert [(row["timestamp"], row["arrived_at"]) for row in log_rows(feed.tables)] == [(T0, T0)]


def test_rows_of_today_wait_and_are_counted(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path), "csv")
    rows = "".join(f"ann,{T0 + n},{T0 + n}\n" for n in range(10))
    feed.write("d1.csv", f"user,t,got\n{rows}")
    report = feed.land(arrived_at="got", every="1d")
    assert (report.landings, report.waiting[:20]) == ((), "10 rows are waiting:")


@pytest.mark.parametrize("name", ["d2.json", "d2.json.gz"])
def test_a_line_that_is_no_object_is_named_or_quarantined(tmp_path, name):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", FIRST)
    feed.land()
    feed.write(name, FIRST + "42\n" + FIRST.replace("ann", "bob"))
    with refused("text-row-invalid", where=f"{name}, line 2"):
        feed.land()
    assert feed.land(unreadable="skip").rows == 2
    assert sorted(row["user"] for row in log_rows(feed.tables)) == ["ann", "ann", "bob"]


def test_a_json_list_over_several_lines_is_said_to_be_unreadable(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", FIRST)
    feed.land()
    feed.write("d2.json", '[\n  {\n    "user": "ann",\n    "t": 2\n  }\n]\n')
    with refused("text-row-invalid", where="d2.json, line 1", reason="a list, which needs `lines: multiple`"):
        feed.land()


def test_nan_in_json_is_refused_with_its_line_or_landed_as_the_source_says(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    lines = '{"user": "ann", "t": 1, "amount": 1.5}\n{"user": "bob", "t": 2, "amount": NaN}\n'
    feed.write("d1.json", lines)
    with refused("text-row-invalid", where="d1.json, line 2", reason=containing("NaN")):
        feed.land()
    assert feed.land(unreadable="skip").quarantined == 1
    (tmp_path / "loose").mkdir()
    loose = Files(tmp_path / "loose", arrow_at(tmp_path / "loose"), options={"allowNonNumericNumbers": "true"})
    loose.write("d1.json", lines)
    assert loose.land().rows == 2
    assert sorted(str(row["amount"]) for row in log_rows(loose.tables)) == ["1.5", "nan"]


EVENT = '{"user": {"name": "%s", "geo": {"zip": %d}}, "meta": {"t": %d, "got": %d}, "amount": %d}\n'
NESTED = {
    "key": "name",
    "timestamp": "t",
    "arrived_at": "got",
    "value": ["zip", "amount"],
    "columns": {"name": "user.name", "zip": "user.geo.zip", "t": "meta.t", "got": "meta.got"},
}


def test_nested_fields_are_columns_if_the_feed_names_them(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    lines = [("ann", 10, T0, T0 + 5, 1), ("bob", 20, T0 + 1, T0 + 6, 2), ("ann", 10, T0 + 2, T0 + 7, 3)]
    feed.write("d1.json", "".join(EVENT % one for one in lines))
    assert feed.land(**NESTED).rows == 3
    found = {
        (row["name"], row["zip"], row["timestamp"], row["arrived_at"], row["amount"]) for row in log_rows(feed.tables)
    }
    assert found == set(lines)
    feed.write("d2.json", (EVENT % ("cyd", 30, T0, T0, 4)).replace("zip", "plz"))
    with refused(
        "file-field-missing",
        file="d2.json",
        field="user.geo.zip",
        reason="which all landed files have",
        fix=containing("It has user.geo.plz"),
    ):
        feed.land(**NESTED)
    feed.write("d2.json", (EVENT % ("cyd", 30, T0 // 1000, T0, 4)))
    with refused("rows-without-valid-time", rows=containing("timestamp 1699999200 is in seconds")):
        feed.land(**NESTED)
    feed.write(
        "d2.json", '{"user": {"name": "cyd", "geo": {"zip": null}}, "meta": {"t": 7, "got": null}, "amount": 4}\n'
    )
    with refused("rows-without-valid-time", rows=containing("got: d2.json, line 1: it has no arrived_at")):
        feed.land(**NESTED)


def test_a_nested_field_that_is_not_there_is_named(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", EVENT % ("ann", 10, T0, T0, 1))
    for old in ("user.nom", "usr.name", "amount.x"):
        known = containing("It has amount, meta, user")
        with refused("column-unknown", option="columns", source="raw", column=old, known=known):
            feed.land(**{**NESTED, "columns": {**NESTED["columns"], "name": old}})
    with refused("key-column-nested", column="user"):
        feed.land(key="user", timestamp="t", columns={"t": "meta.t"})


@pytest.mark.parametrize("value", ['{"name": "ann"}', '["ann"]', "5", "true"])
def test_a_text_that_becomes_something_else_in_json_is_named_and_not_landed_as_json_text(tmp_path, value):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", '{"user": "ann", "t": 1}\n{"user": null, "t": 1}\n')
    feed.land(key="user")
    feed.write("d2.json", f'{{"user": "bob", "t": 2}}\n{{"user": {value}, "t": 3}}\n')
    with refused("source-value-invalid", reason=containing(f"d2.json, line 2, field user: {value} ")):
        feed.land(key="user")
    assert len(log_rows(feed.tables)) == 2
    assert feed.land(key="user", unreadable="skip").quarantined == 1
    assert [row["user"] for row in log_rows(feed.tables) if row["landing"] == 2] == ["bob"]


def test_an_object_that_was_always_empty_gets_no_fields_unnoticed(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", '{"user": "ann", "t": 1, "x": {}, "y": [{}]}\n')
    assert feed.land().rows == 1
    feed.write("d2.json", '{"user": "bob", "t": 2, "x": {}, "y": []}\n')
    assert feed.land().rows == 1
    feed.write("d3.json", '{"user": "cyd", "t": 3, "x": {"a": 1}, "y": [{}]}\n')
    with refused("file-field-unknown", file="d3.json", field="x.a"):
        feed.land()


def test_a_text_within_an_object_is_compared_too(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", '{"user": "ann", "t": 1, "x": {"a": "1.50", "b": {"c": "y"}}}\n')
    feed.land()
    for name, value in (("x.a", '{"a": 1.50, "b": {"c": "y"}}'), ("x.b.c", '{"a": "", "b": {"c": [1]}}')):
        feed.write("d2.json", f'{{"user": "bob", "t": 2, "x": {value}}}\n')
        with refused("source-value-invalid", reason=containing(f"d2.json, line 1, field {name}: ")):
            feed.land()


def test_intervals_of_arrival_do_not_keep_a_text_from_being_compared(tmp_path):
    feed, asked = Files(tmp_path, arrow_at(tmp_path)), {"key": "user", "arrived_at": "got", "every": "1h"}
    feed.write("d1.json", f'{{"user": "ann", "t": 1, "got": {T0 - HOUR}}}\n')
    assert feed.land(T0 + HOUR, **asked).rows == 1
    feed.write("d2.json", f'{{"user": 5, "t": 2, "got": {T0 + HOUR}}}\n')
    with refused("source-value-invalid", reason=containing("d2.json, line 1, field user: 5 is not a valid STRING")):
        feed.land(T0 + 3 * HOUR, **asked)


@pytest.mark.parametrize("other", ["5", '{"id": 1}', "[1]", "true"])
def test_a_field_of_several_types_is_refused_until_it_is_declared_as_json(tmp_path, other):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", f'{{"user": "ann", "t": 1}}\n{{"user": {other}, "t": 1}}\n')
    places = {"one": containing("d1.json, line "), "other": containing("d1.json, line ")}
    with refused("json-types-mixed", field="user", column="user", **places):
        feed.land(key="user")
    declared = {"path": "raw", "format": "json", "schema": "user JSON, t BIGINT"}
    land(one_log(source=declared, value=["user"], key="t"), feed.tables, feed.engine, now_ms=T0)
    assert sorted(row["user"] for row in log_rows(feed.tables)) == sorted(['"ann"', other])


def test_types_of_a_field_that_is_not_landed_do_not_matter(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write(
        "d1.json", '{"user": "ann", "t": 1, "x": {"y": 5, "z": 1}}\n{"user": "bob", "t": 1, "x": {"y": 5, "z": "a"}}\n'
    )
    with refused("json-types-mixed", field="x.z", column="x"):
        feed.land()
    with refused("json-types-mixed", field="x.z", column="x"):
        feed.land(value=["x"])
    assert feed.land(value=["y"], columns={"y": "x.y"}).rows == 2
    feed.write("d2.json", '{"user": "bob", "t": 1, "x": {"y": 5, "z": "a"}}\n{"user": "c", "t": 1, "x": {"y": 6}}\n')
    assert feed.land(value=["y"], columns={"y": "x.y"}).rows == 2


@pytest.mark.parametrize("then", ["5", '{"a": 1}'])
def test_a_field_that_was_null_is_a_text(tmp_path, then):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", '{"user": "ann", "t": 1, "ref": null}\n')
    feed.land()
    feed.write("d2.json", f'{{"user": "ann", "t": 4, "ref": {then}}}\n')
    with refused("source-value-invalid", reason=containing("d2.json, line 1, field ref: ")):
        feed.land()
    feed.write("d2.json", '{"user": "ann", "t": 4, "ref": "x"}\n')
    assert feed.land().rows == 1


def test_a_nested_text_that_becomes_an_object_is_refused_as_a_column(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", '{"user": {"name": "ann"}, "t": 1, "n": 1}\n')
    feed.land(key="name", value=["n"], columns={"name": "user.name"})
    feed.write("d2.json", '{"user": {"name": {"first": "ann"}}, "t": 2, "n": 1}\n')
    with refused(
        "source-value-invalid",
        reason=containing('d2.json, line 1, field user.name: {"first": "ann"} is not a valid STRING'),
    ):
        feed.land(key="name", value=["n"], columns={"name": "user.name"})


def test_a_list_of_rows_in_a_line_is_refused(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", '{"user": "ann", "t": 1}\n[{"user": "bob", "t": 2}]\n')
    with refused("text-row-invalid", where="d1.json, line 2", reason="a list, which needs `lines: multiple`"):
        feed.land()


def test_json_in_directories_may_have_a_directory_as_its_column(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    (tmp_path / "raw" / "day=2026-01-05").mkdir()
    feed.write("day=2026-01-05/d1.json", '{"user": "ann", "n": 1}\n')
    assert feed.land(timestamp="day").rows == 1


def test_a_misspelt_nested_field_is_answered_with_those_that_there_are(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path))
    feed.write("d1.json", '{"user": {"name": "ann"}, "t": 1}\n')
    with refused("column-unknown", column="user.nam", known="It has t, user, user.name. Did you mean 'user.name'?"):
        feed.land(key="name", columns={"name": "user.nam"})
    with refused("key-column-nested", column="user", hint=containing("`columns: {user_id: user.name}`")):
        feed.land(key="user")
