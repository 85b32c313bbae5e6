"""JSON texts that Spark reads otherwise than they are written: it reads one value of each, and replaces half a character."""

from __future__ import annotations

import json

import pytest

from rewindow.errors import DataError
from rewindow.streams.serde.canonical_json import load_value
from tests.ingest.local_engine import log_rows
from tests.ingest.text_files import Files

pytestmark = pytest.mark.spark

ANN, BOB = '{"user": "ann", "t": 1, "x": {"y": "}{"}}', '{"user": "bob", "t": 2, "x": {"y": "a"}}'


@pytest.mark.parametrize("more", [BOB, " x", f",{BOB}", '"'])
def test_a_line_that_goes_on_after_its_object_is_refused_with_its_place(engine_at, tmp_path, more):
    feed = Files(tmp_path, engine_at(tmp_path))
    feed.write("d1.json", f"{BOB}\n\n{ANN}{more}\n")
    with pytest.raises(
        DataError, match=r"d1\.json, line 3: it has more after its JSON value, .*\}\{.* in a line of its own"
    ):
        feed.land()
    feed.write("d1.json", f"{BOB}\n{ANN}\n")
    assert feed.land().rows == 2


@pytest.mark.parametrize("text", [f"\ufeff{ANN},\n{BOB} \t\r\n", f"[{ANN}, {BOB}]\n", f"[{ANN}],\n[{BOB}]"])
def test_blanks_commas_and_lists_do_not_end_a_line_too_early(engine_at, tmp_path, text):
    feed = Files(tmp_path, engine_at(tmp_path), schema="user STRING, t BIGINT, x STRUCT<y: STRING>")
    feed.write("d1.json", text)
    assert feed.land().rows == 2
    assert sorted(row["user"] for row in log_rows(feed.tables)) == ["ann", "bob"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_objects_one_after_the_other_are_no_file_of_several_lines(engine_at, tmp_path, encoding):
    options = {"multiLine": "true", "encoding": encoding}
    feed = Files(tmp_path, engine_at(tmp_path), options=options)
    rows = [json.loads(one) for one in (ANN, BOB)]
    path = tmp_path / "raw" / "d1.json"
    path.write_text("\n".join(json.dumps(row, indent=2) for row in rows), encoding=encoding)
    with pytest.raises(DataError, match=r"d1\.json: it has more than one JSON value, and with `multiLine`.* as a list"):
        feed.land()
    path.write_text(json.dumps(rows, indent=2), encoding=encoding)
    assert feed.land().rows == 2


def test_a_source_that_allows_other_json_is_read_as_it_says(engine_at, tmp_path):
    options = {"allowUnquotedFieldNames": "true", "allowComments": "true", "allowNonNumericNumbers": "true"}
    feed = Files(tmp_path, engine_at(tmp_path), options=options)
    feed.write(
        "d1.json", "{user: 'ann', t: 1, x: NaN} // none\n{user: 'bob', t: 2, x: 1.5} {user: 'cyd', t: 3, x: 2.5}\n"
    )
    with pytest.raises(DataError, match=r"d1\.json, line 2: it has more after its JSON value"):
        feed.land()
    feed.write("d1.json", "{user: 'ann', t: 1, x: NaN} // none\n")
    assert feed.land().rows == 1


def test_a_line_that_is_no_json_is_still_left_out_if_the_source_says_so(engine_at, tmp_path):
    feed = Files(tmp_path, engine_at(tmp_path))
    feed.write("d1.json", f"{ANN}\n{BOB[:-5]}\n")
    assert feed.land(unreadable="skip").quarantined == 1


@pytest.mark.parametrize("text", [r"\ud83d x", r"x\uDE00", r"\ud83d\ud83d\ude00", r"\\\\\ud83d"])
def test_half_a_character_is_refused(engine_at, tmp_path, text):
    feed = Files(tmp_path, engine_at(tmp_path))
    feed.write("d1.json", f'{ANN}\n{{"user": "bob", "t": 2, "x": {{"y": "{text}"}}}}\n')
    with pytest.raises(DataError, match=r"d1\.json, line 2: it has half a character"):
        feed.land()


def test_whole_characters_are_landed(engine_at, tmp_path):
    feed = Files(tmp_path, engine_at(tmp_path))
    texts = r'["\ud83d\ude00", "\\ud83d x", "\u00e9", "😀"]'
    line = f'{{"user": "bob", "t": 2, "x": {texts}}}'
    feed.write("d1.json", f"{line}\n")
    assert feed.land().rows == 1
    assert json.loads(log_rows(feed.tables)[0]["x"]) == json.loads(line)["x"]


def test_a_file_that_is_no_utf_8_as_its_source_says_is_refused(engine_at, tmp_path):
    feed = Files(tmp_path, engine_at(tmp_path), options={"encoding": "UTF-8"})
    (tmp_path / "raw" / "d1.json").write_bytes(ANN.encode() + b'\n{"user": "b\xfc", "t": 2}\n')
    with pytest.raises(DataError, match=r"d1\.json, line 2: it is not UTF-8, as `encoding` says"):
        feed.land()


def test_numbers_in_a_column_of_times_are_seconds_or_refused(engine_at, tmp_path):
    feed = Files(tmp_path, engine_at(tmp_path), schema="user STRING, t BIGINT, x TIMESTAMP")
    values = ["1767607200", '"2026-01-05T10:00:00Z"', "1767607200.5", '"10:00"', "1767607200000", '"2026"', "null"]
    lines = [f'{{"user": "u{at}", "t": {at}, "x": {value}}}' for at, value in enumerate(values)]
    feed.write("d1.json", "\n".join(lines))
    with pytest.raises(DataError, match=r"d1\.json, line 4, field x"):
        feed.land()
    assert feed.land(unreadable="skip").quarantined == 3
    found = {row["user"]: row["x"] for row in log_rows(feed.tables)}
    assert found == {"u0": 1767607200000, "u1": 1767607200000, "u2": 1767607200500, "u6": None}


def test_json_in_another_encoding_needs_no_other_option(engine_at, tmp_path):
    feed = Files(tmp_path, engine_at(tmp_path), options={"encoding": "ISO-8859-1"})
    (tmp_path / "raw" / "d1.json").write_bytes(
        '{"user": "Jürgen", "t": 1}\r\n{"user": "ann", "t": 2}\r\n'.encode("latin-1")
    )
    assert feed.land().rows == 2
    assert sorted(row["user"] for row in log_rows(feed.tables)) == ["Jürgen", "ann"]


NESTED_TIMES = "user STRING, t BIGINT, x STRUCT<d: DATE, ts: ARRAY<TIMESTAMP>, m: MAP<STRING, STRUCT<d: DATE>>>"


def test_dates_and_times_within_objects_are_whole_ones_too(engine_at, tmp_path):
    feed = Files(tmp_path, engine_at(tmp_path), schema=NESTED_TIMES)
    good = '{"d": "2026-1-5", "ts": ["2026-01-05T10:00:00+02:00", null, 1767607200], "m": {"a": {"d": null}}}'
    values = [good, "null", '{"d": "2026"}', '{"ts": ["10:00"]}', '{"m": {"a": {"d": "2026-01-05T10:00:00Z"}}}']
    feed.write("d1.json", "\n".join(f'{{"user": "u{at}", "t": {at}, "x": {value}}}' for at, value in enumerate(values)))
    with pytest.raises(DataError, match=r"d1\.json, line 3, field x\.d"):
        feed.land()
    assert feed.land(unreadable="skip").quarantined == 3
    found = {row["user"]: row["x"] and load_value(row["x"]) for row in log_rows(feed.tables)}
    assert found.keys() == {"u0", "u1"}
    assert found["u1"] is None
    assert found["u0"].d == "2026-01-05"
    assert found["u0"].ts == ["2026-01-05T08:00:00.000Z", None, "2026-01-05T10:00:00.000Z"]
