"""Odd sizes: each case is a project whose commands run for real. Each works, or ends with 71 and a clear message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.ingest.local_engine import HOUR, T0

JOB, FEED = "counts", "activity"
FEED_TEXT = """\
feed: activity
partitions: {partitions}
landing: {landing}
logs:
  events: {{source: {{path: raw, format: parquet}}, key: user, timestamp: t, arrived_at: got}}
"""
JOB_TEXT = """\
job: {job}
topology: odd_sizes:build_topology
feed: activity
outputs:
  totals: {{table: {job}.totals}}
"""
MODULE = """\
from rewindow import Collect, StreamsBuilder, TimeWindows, until_window_closes


def build_topology():
    builder = StreamsBuilder()
    {body}.to_stream().to("totals")
    return builder.build()
"""
COUNT = 'builder.stream("events").group_by_key().count(store="counts")'
WINDOW = (
    'builder.stream("events").group_by_key().windowed_by(TimeWindows.of("1h", grace="1h")).count(store="counts")'
    '.suppress(until_window_closes(), name="closed")'
)
COLLECT = WINDOW.replace(".count(store", '.aggregate(Collect("x"), store')
LONGEST = 'builder.stream("events"){first}.group_by_key().reduce(lambda old, new: max(old, new), store="counts")'
BATCH = 1_000_000


def project(
    root: Path, body: str, *, partitions: int = 2, landing: str = "{}", execution: str = "auto", jobs: int = 0
) -> None:
    """Write the files of a project: one job, or so many that share the feed."""
    names = [f"{JOB}{number:03d}" for number in range(jobs)] or [JOB]
    files = {
        "conf/feeds/activity.yaml": FEED_TEXT.format(partitions=partitions, landing=landing),
        "conf/targets/local.yaml": f"target: local\nwarehouse: warehouse\nexecution: {execution}\n",
        "odd_sizes.py": MODULE.format(body=body),
        **{f"conf/jobs/{name}.yaml": JOB_TEXT.format(job=name) for name in names},
    }
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def write_source(root: Path, name: str, parts: Iterator[Mapping[str, object]]) -> None:
    """Write a source file, a row group for each part."""
    schema = pa.schema([("user", pa.string()), ("t", pa.int64()), ("got", pa.int64()), ("x", pa.int64())])
    path = root / "raw" / f"{name}.parquet"
    path.parent.mkdir(exist_ok=True)
    with pq.ParquetWriter(path, schema) as writer:
        for part in parts:
            writer.write_table(pa.table(dict(part), schema=schema))


def some(users: object, first: int, end: int, step_ms: float) -> Mapping[str, object]:
    """Return records number ``first`` to ``end``, one each ``step_ms``."""
    times = T0 + (np.arange(first, end) * step_ms).astype(np.int64)
    return {"user": users, "t": times, "got": times, "x": np.arange(first, end) % 1_000}


def landings(root: Path, size: int) -> None:
    """So many hours, each of which is a landing."""
    project(root, WINDOW, landing="{every: 1h}")
    rows = (size + 1) * 10
    write_source(root, "all", iter([some(pa.array([f"u{n % 7}" for n in range(rows)]), 0, rows, HOUR / 10)]))


def partitions(root: Path, size: int) -> None:
    """So many partitions, with ten records each."""
    project(root, WINDOW, partitions=size)
    rows = size * 10
    write_source(root, "all", iter([some(pa.array([f"u{n}" for n in range(rows)]), 0, rows, 2 * HOUR / rows)]))


def jobs(root: Path, size: int) -> None:
    """So many jobs of one feed."""
    project(root, COUNT, jobs=size)
    write_source(root, "all", iter([some(pa.array([f"u{n % 7}" for n in range(100)]), 0, 100, 1)]))


def record(root: Path, size: int, execution: str = "auto") -> None:
    """A record whose value has so many bytes, between small ones."""
    first = ".map_values(lambda text: text)" if execution == "record" else ""
    project(root, LONGEST.format(first=first), execution=execution)
    feed = root / "conf/feeds/activity.yaml"
    feed.write_text(feed.read_text().replace("arrived_at: got", "value: text"))
    times = pa.array(range(T0, T0 + 3))
    table = pa.table({"user": ["a", "a", "b"], "t": times, "text": ["small", "x" * size, "small"]})
    (root / "raw").mkdir()
    pq.write_table(table, root / "raw" / "all.parquet")


def keys(root: Path, size: int, execution: str = "auto") -> None:
    """So many keys in one window."""
    project(root, WINDOW, execution=execution)
    parts = ((first, min(size, first + BATCH)) for first in range(0, size, BATCH))
    made = (some(pa.array([f"user-{n:08d}" for n in range(*part)]), *part, (HOUR - 1) / size) for part in parts)
    write_source(root, "all", made)
    write_source(root, "later", iter([some(pa.array(["z0", "z1", "z2", "z3"]), 0, 4, 2 * HOUR)]))


def key(root: Path, size: int, body: str = WINDOW, execution: str = "auto") -> None:
    """A key with so many records."""
    project(root, body, execution=execution)
    parts = ((first, min(size, first + BATCH)) for first in range(0, size, BATCH))
    made = (some(pa.repeat("hot", part[1] - part[0]), *part, 10 * HOUR / size) for part in parts)
    write_source(root, "all", made)
