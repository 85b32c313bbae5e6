"""An internal topic of a job is called like a log of its feed: the job is refused, whether it reads the log or not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, hour, project_of, topology

FEED = """\
feed: activity
partitions: 2
logs:
  events: {source: {path: raw, format: parquet}, key: user, timestamp: t}
  x-repartition: {source: {path: raw, format: parquet}, key: user, timestamp: t}
  rows: {source: {path: raw, format: parquet}, key: user, timestamp: t}
  rows-global: {source: {path: raw, format: parquet}, key: user, timestamp: t}
"""
REPARTITION = 'events.select_key(lambda key, value: str(value.x % 2)).repartition(name="x")'
COUNTED = '.group_by_key().count(store="n").to_stream().to("totals")'
JOINED = 'join(builder.global_table("rows", store="rows"), lambda key, value: key, lambda one, other: other)'


@pytest.fixture
def three(tmp_path: Path) -> Bench:
    bench = project_of(tmp_path, FEED, "", "totals")
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
    three.write("bench_job.py", topology('events = builder.stream("events")', line))
    refusal = three.refuses("run counts", "internal-topic-taken", name=name, topic=topic, feed="activity")
    assert re.match(r"bench_job\.py:\d+: ", refusal.message)
    old, new = ('name="x"', 'name="y"') if name == "x" else ('store="rows"', 'store="all"')
    three.edit("bench_job.py", old, new)
    three.done("run counts")
