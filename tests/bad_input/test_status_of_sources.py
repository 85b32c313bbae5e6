"""`status` of a feed with intervals: of a table with rows of an open one, and of a log that a new generation has removed."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from tests.bad_input.scene import HOURLY, TARGET, Bench, hour
from tests.ingest.local_engine import HOUR
from tests.ingest.test_delta_sources import stamp
from tests.refusals import told

FEED = HOURLY.replace("feed: hourly", "feed: activity")
OTHERS = "  others: {source: {path: others/raw, format: parquet}, key: user, timestamp: t, arrived_at: got}\n"


@pytest.fixture
def empty(in_process: None, tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.write("conf/targets/local.yaml", TARGET)
    return bench


def test_rows_of_a_table_that_wait_are_well(empty: Bench) -> None:
    empty.write("conf/feeds/activity.yaml", FEED.replace("path: raw, format: parquet", "path: raw, format: delta"))
    empty.edit("conf/feeds/activity.yaml", ", arrived_at: got", "")
    table, now_ms = str(empty.root / "raw"), int(time.time() * 1000)
    for number, arrived_ms in enumerate((now_ms - 3 * HOUR, now_ms)):
        write_deltalake(table, pa.Table.from_pylist(hour(number)), mode="append")
        stamp(table, arrived_ms)
    empty.done("land activity")
    assert empty.findings() == []


def test_nothing_is_said_of_the_files_of_a_removed_log(empty: Bench) -> None:
    empty.write("conf/feeds/activity.yaml", FEED.replace("landing:", f"{OTHERS}landing:"))
    empty.rows("h0", hour(0))
    rows = hour(0)
    rows[-1]["got"] = int(time.time() * 1000) + 3 * HOUR
    (empty.root / "others/raw").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), empty.root / "others/raw/h0.parquet")
    empty.done("land activity")
    told((finding.message for finding in empty.findings()), "rows-of-the-future", topic="others")
    empty.write("conf/feeds/activity.yaml", FEED)
    empty.done("land activity --new-generation --keep 1")
    assert empty.findings() == []
