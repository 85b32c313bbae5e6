"""JSON texts that go on after their value, of which Spark reads only the beginning."""

from __future__ import annotations

import json

import pytest

from rewindow.errors import DataError
from tests.ingest.local_engine import log_rows
from tests.ingest.text_files import Files

pytestmark = pytest.mark.spark

ANN, BOB = '{"user": "ann", "t": 1, "x": {"y": "}{"}}', '{"user": "bob", "t": 2, "x": {"y": "a"}}'


@pytest.mark.parametrize("more", [BOB, f" {BOB}", " x", "5", "//", f",{BOB}", '"'])
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
