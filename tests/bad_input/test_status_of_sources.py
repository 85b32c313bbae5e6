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

FEED = HOURLY.replace("feed: hourly", "feed: activity")
OTHERS = "  others: {source: {path: others/raw, format: parquet}, key: user, timestamp: t, arrived_at: got}\n"


@pytest.fixture
def empty(template: Bench, tmp_path: Path) -> Bench:
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
    assert empty.run("land", "activity").code == 0
    answer = empty.run("status")
    assert (answer.code, "all is well" in answer.out) == (0, True), answer


def test_nothing_is_said_of_the_files_of_a_removed_log(empty: Bench) -> None:
    empty.write("conf/feeds/activity.yaml", FEED.replace("landing:", f"{OTHERS}landing:"))
    empty.rows("h0", hour(0))
    rows = hour(0)
    rows[-1]["got"] = int(time.time() * 1000) + 3 * HOUR
    (empty.root / "others/raw").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), empty.root / "others/raw/h0.parquet")
    assert empty.run("land", "activity").code == 0
    assert "of the log others has rows that arrive in the future" in empty.run("status").out
    empty.write("conf/feeds/activity.yaml", FEED)
    answer = empty.run("land", "activity", "--new-generation", "--keep", "1")
    assert answer.code == 0, answer
    answer = empty.run("status")
    assert "others" not in answer.out
    assert "waiting:" not in answer.out
