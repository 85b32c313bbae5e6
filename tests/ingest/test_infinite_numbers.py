"""Numbers that no DOUBLE holds, which Spark makes infinite."""

from __future__ import annotations

import pytest

from rewindow.errors import DataError
from tests.ingest.local_engine import log_rows
from tests.ingest.text_files import Files

pytestmark = pytest.mark.spark

LINES = {
    "csv": "user,t,amount\nann,1,1.5\nbob,2,1e400\n",
    "json": '{"user": "ann", "t": 1, "amount": 1.5}\n{"user": "bob", "t": 2, "amount": 1e400}\n',
}
INFINITE = {"csv": {"positiveInf": "Inf"}, "json": {"allowNonNumericNumbers": "true"}}


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_number_that_no_double_holds_is_refused_unless_the_source_has_infinite_numbers(engine_at, tmp_path, kind):
    feed = Files(tmp_path, engine_at(tmp_path), kind)
    feed.write(f"d1.{kind}", LINES[kind])
    with pytest.raises(DataError, match=rf"d1\.{kind}, line {3 if kind == 'csv' else 2}.*beyond .* of DOUBLE"):
        feed.land()
    assert feed.land(unreadable="skip").quarantined == 1
    (tmp_path / "loose").mkdir()
    loose = Files(tmp_path / "loose", engine_at(tmp_path / "loose"), kind, options=INFINITE[kind])
    loose.write(f"d1.{kind}", LINES[kind])
    assert loose.land().rows == 2
    assert sorted(str(row["amount"]) for row in log_rows(loose.tables)) == ["1.5", "inf"]
