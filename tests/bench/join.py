"""`join` and `join-streams`: a stream joined with a table by key, and two streams joined within five minutes.

The yardstick is Spark's equi-join, or its join by key and time range, of the same logs, written to Delta. It alternates with
ours in one warm session. Every record has a match and none is late (a grace of one day), so both sides produce the same
rows, which are compared.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from rewindow.tables.delta.table_rows import read_rows
from tests.bench.day import CONF, FEED, HOURS, JOB
from tests.bench.meter import Meter, PeakMemory
from tests.bench.stored import median_of
from tests.bench.workload import HOUR_MS, KEYS, MINUTE_MS, PARTITIONS, START_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM_TABLE, STREAM_STREAM = "stream-table", "stream-stream"
WITHIN_MS = 5 * MINUTE_MS
FEEDS = """\
feed: bench
partitions: {partitions}
logs:
  others:
    source: {{format: parquet, path: others}}
    key: user
    value: [factor]
    timestamp: happened_at
    arrived_at: arrived_at
  events:
    source: {{format: parquet, path: events}}
    key: user
    value: [amount]
    timestamp: happened_at
    arrived_at: arrived_at
"""
TOPOLOGIES = {
    STREAM_TABLE: '    joined = builder.stream("events").join(builder.table("others", store="others"), times, value=float)',
    STREAM_STREAM: (
        '    within = JoinWindows.of("5m", grace="1d")\n'
        '    joined = builder.stream("events").join(builder.stream("others"), times, within, name="close", value=float)'
    ),
}
TOPOLOGY = '''\
"""Amounts times factors."""

from rewindow import JoinWindows, StreamsBuilder, Topology


def times(event, other) -> float:
    return event.amount * other.factor


def build_topology() -> Topology:
    builder = StreamsBuilder()
{joined}
    joined.to("results")
    return builder.build()
'''


def measure(rows: int, *, rounds: int, kind: str, **_: object) -> dict[str, Any]:
    """Land, warm up, measure both sides alternately, and check the results. Return the figures."""
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        root = Path(folder)
        _write(root, rows, kind)
        project = OpenProject.open(root)
        meter = Meter()
        project.land(FEED)
        landed = meter.read()
        ours, baseline = [], []
        for number in range(rounds + 1):  # the first is the warm-up
            meter = Meter()
            project.run(JOB, RunRequest(branch=f"round{number}"))
            ours.append(meter.read())
            baseline.append(_baseline(project, project.spark, root / "plain", kind))
        found = read_rows(f"{project.warehouse}/bench/results__round{rounds}")
        expected = read_rows(str(root / "plain"))
        project.spark.stop()
    cpu, yardstick = median_of(ours[1:], "cpu"), median_of(baseline[1:], "cpu")
    value = next(name for name in found.column_names if name not in ("user", "key") and not name.startswith("_"))
    is_right = found.num_rows == expected.num_rows and bool(
        np.isclose(pc.sum(found[value]).as_py(), pc.sum(expected["amount"]).as_py(), rtol=1e-9)
    )
    return {
        "rows": rows,
        "late": 0,
        "late_share": 0.0,
        "results": found.num_rows,
        "exact": is_right,
        "seconds": median_of(ours[1:], "seconds"),
        "cpu_seconds": cpu,
        "yardstick": "plain Spark, equi-join" if kind == STREAM_TABLE else "plain Spark, join by key and range",
        "yardstick_seconds": median_of(baseline[1:], "seconds"),
        "yardstick_cpu_seconds": yardstick,
        "ratio": round(cpu / yardstick, 3),
        "is_warm": True,
        "land_cpu_seconds": landed["cpu"],
        "peak_mb": memory.peak_mb,
        "rounds": rounds,
        "execution": "auto",
        "landings": "one",
        "source": "auto",
    }


def _baseline(project: OpenProject, spark: SparkSession, path: Path, kind: str) -> dict[str, float]:
    from pyspark.sql import functions as F

    shutil.rmtree(path, ignore_errors=True)
    meter = Meter()
    left, right = (
        spark.read.format("delta").load(f"{project.warehouse}/logs/{FEED}/{log}") for log in ("events", "others")
    )
    condition = left["user"] == right["user"]
    if kind == STREAM_STREAM:
        condition &= F.abs(left["timestamp"] - right["timestamp"]) <= WITHIN_MS
    amount = (left["amount"] * right["factor"]).alias("amount")
    left.join(right, condition).select(left["user"], amount).write.format("delta").save(str(path))
    return meter.read()


def _write(root: Path, rows: int, kind: str) -> None:
    settings = {"partitions": PARTITIONS, "execution": "auto", "source": "auto", "landing": ""}
    for name, text in {**CONF, "feeds/bench.yaml": FEEDS}.items():
        file = root / "conf" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(**settings))
    (root / "bench_job.py").write_text(TOPOLOGY.format(joined=TOPOLOGIES[kind]))
    rng = np.random.default_rng(1)
    users = rng.integers(0, KEYS, rows)
    times = np.sort(rng.integers(START_MS, START_MS + HOURS * HOUR_MS, rows))
    _write_log(root / "events", users, times, "amount", np.round(rng.lognormal(3, 1, rows), 2))
    others = np.arange(KEYS) if kind == STREAM_TABLE else rng.integers(0, KEYS, rows)
    before = np.full(len(others), START_MS - HOUR_MS) if kind == STREAM_TABLE else times
    _write_log(root / "others", others, before, "factor", rng.integers(1, 5, len(others)).astype(float))


def _write_log(folder: Path, users: Any, times: Any, name: str, values: Any) -> None:
    folder.mkdir()
    names, kind = np.array([f"user-{number:05d}" for number in range(KEYS)]), pa.timestamp("ms", "UTC")
    at = pa.array(times).cast(kind)
    pq.write_table(
        pa.table({"user": names[users], name: values, "happened_at": at, "arrived_at": at}), folder / "day.parquet"
    )
