"""A landed column that is null, or suddenly constant, is a warning: of a source that stopped filling it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rewindow.app.cli.printing import Printer
from rewindow.control.ingest.feed_progress import ENOUGH
from rewindow.engine.worker.log_writer import FlatColumns
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import HOUR, T0, feed_config, land_locally, one_log, write_rows
from tests.refusals import told


def rows_of(hour, x, count=2 * ENOUGH):
    at = T0 + hour * HOUR
    return [{"user": f"u{n}", "t": at + n, "got": at + n, "x": n if x is ... else x} for n in range(count)]


def landed(tmp_path, *hours, count=2 * ENOUGH):
    """Land hours, whose column x varies (...), is null or has one value; return the warnings of each call."""
    tables = DeltaFeedTables(f"{tmp_path}/w")
    found = []
    for hour, x in enumerate(hours):
        write_rows(tmp_path, f"hour-{hour}", rows_of(hour, x, count))
        found.append(land_locally(one_log(value=["x"]), tables, tmp_path, T0 + (hour + 1) * HOUR).warnings)
    return found


def test_a_column_that_is_null_in_the_first_landing_is_a_warning_once(tmp_path):
    first, second = landed(tmp_path, None, None)
    told(first, "column-all-null", feed="activity", landing=1, column="x", topic="events")
    assert (len(first), second) == (1, ())


def test_a_column_that_becomes_null_or_constant_is_a_warning(tmp_path):
    found = landed(tmp_path, ..., None, ..., 7, 7, None)
    assert [len(one) for one in found] == [0, 1, 0, 1, 0, 1]
    told(found[3], "column-suddenly-constant", landing=4, column="x", value="7")
    told(found[5], "column-all-null", landing=6)


def test_few_records_say_nothing(tmp_path):
    assert landed(tmp_path, ..., 7, None, count=ENOUGH - 1) == [(), (), ()]


def test_each_landing_of_a_call_is_compared_with_the_one_before(tmp_path):
    for hour, x in enumerate([..., 7, ..., None]):
        write_rows(tmp_path, f"hour-{hour}", rows_of(hour, x))
    report = land_locally(feed_config(log={"value": ["x"]}), DeltaFeedTables(f"{tmp_path}/w"), tmp_path, T0 + 4 * HOUR)
    assert [warning.facts["landing"] for warning in report.warnings] == [2, 4]


@pytest.mark.parametrize(
    ("batches", "flat"),
    [
        ([[1, 1], [1]], {"x": "1"}),
        ([[None], [None, None]], {"x": None}),
        ([[1], [2]], {}),
        ([[1, None]], {}),
        ([[1], [None]], {}),
        ([[None], [1]], {}),
        ([[1] * 2000 + [2]], {}),
    ],
)
def test_batches_do_not_matter(batches, flat):
    columns = FlatColumns(["x"])
    for values in batches:
        columns.add(pa.RecordBatch.from_pydict({"x": pa.array(values, pa.int64())}))
    assert columns.shown() == flat


def test_warnings_and_late_rows_are_sentences(tmp_path, capsys):
    tables = DeltaFeedTables(f"{tmp_path}/w")
    write_rows(tmp_path, "a", rows_of(0, None))
    printer = Printer()
    printer.landed("activity", land_locally(feed_config(), tables, tmp_path, T0 + HOUR))
    assert capsys.readouterr().err.startswith("warning: feed activity, landing 1: ")
    write_rows(tmp_path, "b", rows_of(0, 1))
    printer.landed("activity", land_locally(feed_config(), tables, tmp_path, T0 + 2 * HOUR))
    assert "\n200 rows became visible after" in capsys.readouterr().out
