"""What a LANDING row says of CSV files: code of the first 0.2 versions reads it, and compares the order of the columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.shared.paths import LANDINGS
from tests.bad_input.scene import FEED, JOB, TARGET, Bench, hour, without_spark

HEADER = ["user", "t", "got", "x"]
RECORDED = {"always": HEADER, "others": []}
"""As the code of 32247410 records it."""


def written(bench: Bench, number: int, header: list[str]) -> None:
    """Write an hour as a CSV file with the columns in an order."""
    bench.rows(f"h{number}", hour(number))
    (file,) = (bench.root / "raw").glob(f"*h{number}*.parquet")
    pc.write_csv(pq.read_table(file).select(header), file.with_suffix(".csv"))
    file.unlink()


def landed_fields(bench: Bench) -> dict[str, list[str]]:
    """Land; return the fields in the last row."""
    with without_spark():
        answer = bench.run("land", "activity")
    assert answer.code == 0, answer.err
    row = Ledger(table_path(str(bench.warehouse), LANDINGS), "activity").read()[-1]
    return dict(row.body["positions"]["events"]["fields"])


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.write("conf/feeds/activity.yaml", FEED.replace("parquet", "csv"))
    bench.write("conf/jobs/counts.yaml", JOB)
    bench.write("conf/targets/local.yaml", TARGET)
    return bench


def test_the_columns_of_csv_files_are_recorded_in_the_order_of_the_first_header(bench: Bench) -> None:
    for number in range(2):
        written(bench, number, HEADER)
        assert landed_fields(bench) == RECORDED


def test_a_file_with_another_order_is_landed_and_changes_nothing_that_is_recorded(bench: Bench) -> None:
    written(bench, 0, HEADER)
    landed_fields(bench)
    written(bench, 1, HEADER[::-1])
    assert landed_fields(bench) == RECORDED


def test_a_column_that_not_all_files_have_is_no_longer_recorded(bench: Bench) -> None:
    bench.edit("conf/feeds/activity.yaml", "arrived_at: got}", "arrived_at: got, optional: [x]}")
    written(bench, 0, HEADER)
    landed_fields(bench)
    written(bench, 1, HEADER[:-1])
    assert landed_fields(bench)["always"] == HEADER[:-1]
