"""`rewindow why` of a sliding window's row names exactly the records of the window."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindow.contracts.instants import instant
from tests.bad_input.scene import Bench
from tests.ingest.local_engine import T0, write_rows

FEED = """\
feed: pulses
partitions: 1
logs:
  pulses: {source: {path: raw, format: parquet}, key: user, timestamp: t}
"""
JOB = """\
job: rides
topology: rides_job:build_topology
feed: pulses
outputs:
  updates: {table: rides.updates}
  finals: {table: rides.finals}
"""
MODULE = """\
from rewindow import SlidingWindows, StreamsBuilder, until_window_closes


def build_topology():
    builder = StreamsBuilder()
    grouped = builder.stream("pulses").group_by_key().windowed_by(SlidingWindows.of("10s", grace="1m"))
    counts = grouped.count(store="counts")
    counts.to_stream().to("updates")
    counts.suppress(until_window_closes(), name="closed").to_stream().to("finals")
    return builder.build()
"""
SECOND, SIZE = 1000, 10_000
# In order and out of order, alone, closer than the size, equal, and at the edges of windows.
TIMES = (0, 4, 9, 10, 14, 14, 30, 22, 41, 52, 47, 38, 63, 62, 60, 70, 71, 72, 66, 200)


@pytest.fixture
def rides(tmp_path: Path, in_process: None) -> Bench:
    bench = Bench(tmp_path)
    bench.write("conf/targets/local.yaml", "target: local\nwarehouse: warehouse\n")
    bench.write("conf/feeds/pulses.yaml", FEED)
    bench.write("conf/jobs/rides.yaml", JOB)
    bench.write("rides_job.py", MODULE)
    write_rows(tmp_path, "a", [{"user": "ann", "t": T0 + at * SECOND, "x": n} for n, at in enumerate(TIMES)])
    bench.done("land pulses", "run rides")
    return bench


@pytest.mark.parametrize("output", ["updates", "finals"])
def test_a_row_names_the_records_in_its_window(rides: Bench, output: str) -> None:
    (table,) = [table for table in rides.json("head rides --limit 200")["tables"] if table["topic"] == output]
    newest = {row["window_start"]: row for row in table["rows"]}
    assert len(newest) > 15
    for start_ms, row in newest.items():
        shown = rides.json(f"why rides.{output} user=ann --window {instant(start_ms).replace(' ', 'T')}")
        named = sorted(record["timestamp_ms"] for record in shown["records"])
        inside = [T0 + at * SECOND for at in sorted(TIMES) if start_ms <= T0 + at * SECOND <= start_ms + SIZE]
        assert (named, len(named)) == (inside, row["value"]), start_ms - T0
        assert shown["is_exact"], start_ms - T0
