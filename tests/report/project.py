"""A project of one partition with late, unordered and keyless records, and a second count of what a report must say."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bad_input.scene import FEED, TARGET, Bench
from tests.ingest.local_engine import HOUR, T0

SIZE, GRACE = 30 * 60_000, 5 * 60_000
MODULE = """\
from rewindow import (
    EmitStrategy, Processor, PunctuationType, SessionWindows, StreamsBuilder, TimeWindows, until_window_closes
)


class Beat(Processor):
    def init(self, context):
        self.context = context
        context.schedule("15m", PunctuationType.STREAM_TIME, self.tick, name="beat")
        context.schedule("30m", PunctuationType.WALL_CLOCK_TIME, self.tick, name="wall")

    def process(self, record):
        pass

    def tick(self, now):
        pass


def factor(row):
    return row.x * 2


def build_topology():
    builder = StreamsBuilder()
    events = builder.stream("events")
    events.process(Beat, name="beats")
    by_user = events.map_values(factor, name="factors").group_by_key()
    tumbling = by_user.windowed_by(TimeWindows.of("30m", grace="5m")).count(store="sums")
    tumbling.suppress(until_window_closes(), name="closed").to_stream().to("totals")
    visits = events.group_by_key().windowed_by(SessionWindows.of("10m", grace="20m")).count(store="visits")
    visits.suppress(until_window_closes(), name="ended").to_stream().to("visited")
    hopping = events.group_by_key().windowed_by(TimeWindows.of("1h", grace="10m").advance_by("15m"))
    hopping.emit_strategy(EmitStrategy.on_window_close()).count(store="hops").to_stream().to("hopped")
    return builder.build()
"""
JOB = """\
job: counts
topology: bench_job:build_topology
feed: activity
outputs:
  totals: {table: alerts.totals}
  visited: {table: alerts.visits}
  hopped: {table: alerts.hops}
"""
HOURS = 5
OUTPUTS = ("totals", "visited", "hopped")


def records(number: int) -> list[dict[str, Any]]:
    """Return the records that arrive in an hour. Some are late, and some have no key."""
    rnd = random.Random(number)
    rows = []
    for arrival in range(T0 + number * HOUR, T0 + (number + 1) * HOUR, 90_000):
        late = rnd.choice([0, 0, 0, 0, 60_000, 600_000, 2_400_000, 5_400_000])
        user = None if rnd.random() < 0.05 else rnd.choice(["ann", "bob", "<b>cyd</b>"])
        rows.append({"user": user, "t": arrival - late, "got": arrival + 1, "x": 1})
    return rows


def make_project(root: Path) -> Bench:
    """Create the project: each hour is landed and replayed in a run of its own."""
    bench = Bench(root)
    bench.write("conf/feeds/activity.yaml", FEED.replace("partitions: 2", "partitions: 1"))
    bench.write("conf/jobs/counts.yaml", JOB)
    bench.write("conf/targets/local.yaml", TARGET)
    bench.write("bench_job.py", MODULE)
    for number in range(HOURS):
        bench.rows(f"h{number}", records(number))
        for words in (("land", "activity"), ("run", "counts")):
            answer = bench.run(*words)
            assert answer.code == 0, answer.err
    return bench


@dataclass
class Counted:
    """What the tumbling windows do with the records, counted without rewindow's code."""

    late: int = 0
    skipped: int = 0
    taken: int = 0
    needed: list[int] = field(default_factory=list)
    open: dict[tuple[str, int], int] = field(default_factory=dict)


def count(hours: Sequence[int]) -> Counted:
    """Replay the hours one after the other: records are taken in the order of their arrival."""
    clock, found = -1, Counted()
    for number in hours:
        for row in records(number):
            if row["user"] is None:
                found.skipped += 1
                continue
            clock, start = max(clock, row["t"]), row["t"] // SIZE * SIZE
            found.taken += 1
            if clock >= start + SIZE:
                found.needed.append(clock - start - SIZE + 1)
            if clock >= start + SIZE + GRACE:
                found.late += 1
            else:
                found.open[row["user"], start] = found.open.get((row["user"], start), 0) + 1
    found.open = {key: rows for key, rows in found.open.items() if key[1] + SIZE + GRACE > clock}
    return found
