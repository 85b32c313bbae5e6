"""The project of the year: 8 partitions, 50 records an hour, final results and running counts. The same rows in every call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.ingest.local_engine import HOUR, T0

FEED, JOB, MODULE = "activity", "counts", "year_job"
ONCE = "once"
"""The target in which everything is landed by one command and run by one."""
RECORDS, KEYS = 50, 200
FILES = {
    f"conf/feeds/{FEED}.yaml": """\
feed: activity
partitions: 8
landing: {every: 1h}
logs:
  events: {source: {path: raw, format: parquet}, key: user, timestamp: t, arrived_at: got}
""",
    f"conf/jobs/{JOB}.yaml": """\
job: counts
topology: year_job:build_topology
feed: activity
outputs:
  hourly: {table: year.hourly}
  latest: {table: year.latest}
on_code_change: accept
""",
    "conf/targets/local.yaml": "target: local\nwarehouse: warehouse\n",
    f"conf/targets/{ONCE}.yaml": f"target: {ONCE}\nwarehouse: {ONCE}\n",
}
CODE = '''\
"""Count and sum by key and hour, final results only; and count by key, every update."""

from rewindow import Count, StreamsBuilder, Sum, TimeWindows, until_window_closes


def doubled(row):
    return {doubled}


def build_topology():
    builder = StreamsBuilder()
    events = builder.stream("events")
    hours = events.group_by_key().windowed_by(TimeWindows.of("1h", grace="10m"))
    counted = hours.aggregate({{"events": Count(), "total": Sum("x")}}, store="hours")
    counted.suppress(until_window_closes(), name="closed").to_stream().to("hourly")
    events.map_values(doubled, name="doubled").group_by_key().count(store="counts").to_stream().to("latest")
    return builder.build()
'''
FIRST, REWRITTEN = "row.x * 2", "row.x + row.x"
"""The same function, before and after it is rewritten."""


def write_project(root: Path) -> None:
    """Write the files of the project. Existing ones stay as they are."""
    for name, text in {**FILES, f"{MODULE}.py": CODE.format(doubled=FIRST)}.items():
        file = root / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    (root / "raw").mkdir(exist_ok=True)


def rewrite_code(root: Path) -> None:
    """Write the job's function in another way that gives the same rows."""
    (root / f"{MODULE}.py").write_text(CODE.format(doubled=REWRITTEN))


def write_hour(root: Path, hour: int) -> None:
    """Write the source file of an hour. One record in twenty happened half an hour before it arrived."""
    path = root / "raw" / f"{hour // 24:03d}-{hour % 24:02d}.parquet"
    if path.exists():
        return
    rng = np.random.default_rng(hour)
    got = np.sort(rng.integers(T0 + hour * HOUR, T0 + (hour + 1) * HOUR, RECORDS))
    delay = np.where(rng.random(RECORDS) < 1 / 20, HOUR // 2, HOUR // 60) * rng.random(RECORDS)
    users = [f"user-{number:03d}" for number in rng.integers(0, KEYS, RECORDS)]
    columns = {"user": users, "t": got - delay.astype(np.int64), "got": got, "x": rng.integers(0, 100, RECORDS)}
    unfinished = path.with_name(f".{path.name}")
    pq.write_table(pa.table(columns), unfinished)
    unfinished.rename(path)
