"""Numbers that no DOUBLE holds are refused: they would be infinite."""

from __future__ import annotations

import pytest

from tests.ingest.land_by_arrow import arrow_at
from tests.ingest.local_engine import log_rows
from tests.ingest.text_files import Files
from tests.refusals import containing, refused

LINES = {
    "csv": "user,t,amount\nann,1,1.5\nbob,2,1e400\n",
    "json": '{"user": "ann", "t": 1, "amount": 1.5}\n{"user": "bob", "t": 2, "amount": 1e400}\n',
}


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_number_that_no_double_holds_is_refused(tmp_path, kind):
    feed = Files(tmp_path, arrow_at(tmp_path), kind, schema="user STRING, t BIGINT, amount DOUBLE")
    feed.write(f"d1.{kind}", LINES[kind])
    place = {"csv": "d1.csv, line 3, column amount: '1e400'", "json": "d1.json, line 2, field amount: 1e400"}[kind]
    with refused("source-value-invalid", reason=containing(place)):
        feed.land()
    assert feed.land(unreadable="skip").quarantined == 1


def test_a_csv_source_that_states_infinity_still_refuses_numbers_that_no_double_holds(tmp_path):
    options = {"positiveInf": "oo", "nanValue": "-"}
    feed = Files(tmp_path, arrow_at(tmp_path), "csv", options=options, schema="user STRING, t BIGINT, amount DOUBLE")
    feed.write("d1.csv", "user,t,amount\nann,1,1.5\nbob,2,oo\ncyd,3,-Inf\ndan,4,-\neve,5,1e400\nfay,6,\n")
    with refused(
        "source-value-invalid", reason=containing("d1.csv, line 6, column amount: '1e400' is not a valid DOUBLE")
    ):
        feed.land()
    assert feed.land(unreadable="skip").quarantined == 1
    amounts = {row["user"]: str(row["amount"]) for row in log_rows(feed.tables)}
    assert amounts == {"ann": "1.5", "bob": "inf", "cyd": "-inf", "dan": "nan", "fay": "None"}


def test_a_json_source_that_allows_infinity_still_refuses_numbers_that_no_double_holds(tmp_path):
    feed = Files(tmp_path, arrow_at(tmp_path), "json", options={"allowNonNumericNumbers": "true"})
    feed.write("d1.json", LINES["json"].replace("1.5", "-Infinity"))
    with refused(
        "source-value-invalid", reason=containing("d1.json, line 2, field amount: 1e400 is not a valid DOUBLE")
    ):
        feed.land()
    feed.write("d1.json", LINES["json"].replace("1e400", "Infinity"))
    assert feed.land().rows == 2
    assert sorted(str(row["amount"]) for row in log_rows(feed.tables)) == ["1.5", "inf"]


@pytest.mark.parametrize("value", ['{"x": 1e400}', "[1, 1e400]", '[{"x": {"y": [-1e999]}}]'])
def test_numbers_within_objects_and_lists_of_json_are_checked(tmp_path, value):
    feed = Files(tmp_path, arrow_at(tmp_path), "json")
    good = value.replace("1e400", "1.5").replace("-1e999", "2.5")
    feed.write(
        "d1.json", f'{{"user": "ann", "t": 1, "amount": {good}}}\n{{"user": "bob", "t": 2, "amount": {value}}}\n'
    )
    with refused("source-value-invalid", reason=containing("d1.json, line 2, field amount")):
        feed.land()
    assert feed.land(unreadable="skip").quarantined == 1
    assert len(log_rows(feed.tables)) == 1
