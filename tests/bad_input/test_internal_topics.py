"""An internal topic of a job is called like a log of its feed: the job is refused, whether it reads the log or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, hour

FEED = """\
feed: activity
partitions: 2
logs:
  events: {source: {path: raw, format: parquet}, key: user, timestamp: t}
  x-repartition: {source: {path: raw, format: parquet}, key: user, timestamp: t}
  rows: {source: {path: raw, format: parquet}, key: user, timestamp: t}
  rows-global: {source: {path: raw, format: parquet}, key: user, timestamp: t}
"""
MODULE = """\
from rewindow import StreamsBuilder

def build_topology():
    builder = StreamsBuilder()
    events = builder.stream("events")
    %s
    return builder.build()
"""
REPARTITION = 'events.select_key(lambda key, value: str(value.x % 2)).repartition(name="x")'
COUNTED = '.group_by_key().count(store="n").to_stream().to("totals")'
JOINED = 'join(builder.global_table("rows", store="rows"), lambda key, value: key, lambda one, other: other)'


@pytest.fixture
def three(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.write("conf/feeds/activity.yaml", FEED)
    bench.write(
        "conf/jobs/counts.yaml",
        "job: counts\ntopology: bench_job:build_topology\nfeed: activity\noutputs: {totals: {table: alerts.totals}}\n",
    )
    bench.write("conf/targets/local.yaml", "target: local\nwarehouse: warehouse\n")
    bench.rows("h0", hour(0))
    bench.done("land activity")
    return bench


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("line", "name", "topic"),
    [
        (f'{REPARTITION}.merge(builder.stream("x-repartition")){COUNTED}', "x", "x-repartition"),
        (f'events.{JOINED}.to("totals")', "rows", "rows-global"),
    ],
)
def test_it_is_named_before_anything_is_planned(three: Bench, line: str, name: str, topic: str) -> None:
    three.write("bench_job.py", MODULE % line)
    refusal = three.refuses("run counts", "internal-topic-taken", name=name, topic=topic, feed="activity")
    assert refusal.message.startswith("bench_job.py:6: ")
    old, new = ('name="x"', 'name="y"') if name == "x" else ('store="rows"', 'store="all"')
    three.edit("bench_job.py", old, new)
    three.done("run counts")
