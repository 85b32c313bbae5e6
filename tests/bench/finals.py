"""`finals`, `finals-hopping`: count and sum by key and hour, final results only, from the landed table to published ones.

A day of records in order of arrival; their times lie before it by an exponential of mean 60 s, for one in twenty of
30 minutes. The yardstick is plain Spark over the same files, ``groupBy(key, hour)`` written to Delta: it counts late
records and sends open windows, so its answer is wrong; it is what one would write. For hopping windows (an hour, every
20 minutes) it is Spark's own ``window``. Both run in one warm session, by turns. Ours is checked against an exact
computation in whole cents by another way.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.delta.contents import read_rows
from rewindow.plan.spec import RunRequest
from rewindow.project import Project
from rewindow.runner import RunReport
from tests.bench.meter import Meter, PeakMemory
from tests.bench.workload import GRACE_MS, HOUR_MS, KEYS, MINUTE_MS, PARTITIONS, START_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEED = JOB = "bench"
SHUFFLES = (2, 8, 200)
"""Numbers of shuffle partitions that the yardstick may choose from: cores, partitions, Spark's default."""
HOURS = 24
CONF = {
    "feeds/bench.yaml": """\
feed: bench
partitions: {partitions}
{landing}
logs:
  events:
    source: {{format: parquet, path: raw}}
    key: user
    value: [amount]
    timestamp: happened_at
    arrived_at: arrived_at
""",
    "jobs/bench.yaml": """\
job: bench
topology: bench_job:build_topology
feed: bench
outputs:
  results: {{table: bench.results}}
""",
    "targets/local.yaml": "target: local\nwarehouse: warehouse\nlane: {lane}\n",
}
TOPOLOGY = '''\
"""Hourly count and sum by key, final results only."""

from rewindow import Count, StreamsBuilder, Sum, TimeWindows, Topology, until_window_closes


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("events")
        .group_by_key()
        .windowed_by(TimeWindows.of("1h", grace="10m").advance_by("{advance}m"))
        .aggregate({{"events": Count(), "total": Sum("amount")}}, store="hours")
        .suppress(until_window_closes(), name="closed-hours")
        .to_stream()
        .to("results")
    )
    return builder.build()
'''


def measure(
    rows: int, *, rounds: int, lane: str = "auto", landings: str = "hourly", advance: int = 60
) -> dict[str, Any]:
    """Land, warm up, measure by turns, check; return the figures. ``advance``: a window begins after so many minutes."""
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        root = Path(folder)
        _write_project(root, lane, landings, advance)
        _write_source(root / "raw", rows)
        project = Project.open(root)
        spark = project.spark
        meter = Meter()
        project.land(FEED)
        landed = meter.read()
        table = str(Path(project.warehouse) / "logs" / FEED / "events")
        _ours(project, "warm")
        for shuffles in SHUFFLES:
            _plain(spark, table, root / "plain", shuffles, advance)
        ours, plain = [], {shuffles: [] for shuffles in SHUFFLES}
        for number in range(rounds):
            ours.append(_ours(project, f"round{number}"))
            for shuffles in SHUFFLES:
                plain[shuffles].append(_plain(spark, table, root / "plain", shuffles, advance))
        right = _check(project, table, f"round{rounds - 1}", advance * MINUTE_MS)
        spark.stop()
    best = min(SHUFFLES, key=lambda shuffles: _middle(plain[shuffles], "cpu"))
    cpu, yardstick = _middle(ours, "cpu"), _middle(plain[best], "cpu")
    return {
        "rows": rows,
        **right,
        "seconds": _middle(ours, "seconds"),
        "cpu_seconds": cpu,
        "yardstick": f"plain Spark, {best} shuffle partitions",
        "yardstick_seconds": _middle(plain[best], "seconds"),
        "yardstick_cpu_seconds": yardstick,
        "ratio": round(cpu / yardstick, 3),
        "is_warm": True,
        "land_cpu_seconds": landed["cpu"],
        "peak_mb": memory.peak_mb,
        "rounds": rounds,
        "lane": lane,
        "landings": landings,
        "ours": ours,
        "plain": {str(shuffles): found for shuffles, found in plain.items()},
    }


def _ours(project: Project, lineage: str) -> dict[str, float]:
    meter = Meter()
    report = project.run(JOB, RunRequest(lineage=lineage))
    assert isinstance(report, RunReport)
    return meter.read()


def _plain(spark: SparkSession, table: str, place: Path, shuffles: int, advance: int) -> dict[str, float]:
    from pyspark.sql import functions as F

    shutil.rmtree(place, ignore_errors=True)
    spark.conf.set("spark.sql.shuffle.partitions", shuffles)
    meter = Meter()
    window = F.floor(F.col("timestamp") / HOUR_MS) * HOUR_MS
    if advance < 60:
        window = F.window(F.timestamp_millis("timestamp"), "1 hour", f"{advance} minutes")
    results = spark.read.format("delta").load(table).groupBy("user", window.alias("window_start"))
    results = results.agg(F.count("*").alias("events"), F.sum("amount").alias("total"))
    results.write.format("delta").save(str(place))
    return meter.read()


def _middle(found: list[dict[str, float]], what: str) -> float:
    return round(median(one[what] for one in found), 3)


def _write_project(root: Path, lane: str, landings: str, advance: int) -> None:
    said = {"partitions": PARTITIONS, "lane": lane, "landing": "landing: {every: 1h}" if landings == "hourly" else ""}
    for name, text in CONF.items():
        file = root / "conf" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(**said))
    (root / "bench_job.py").write_text(TOPOLOGY.format(advance=advance))


def _write_source(folder: Path, rows: int, seed: int = 1) -> None:
    """Write a day of records, in order of arrival."""
    chance = np.random.default_rng(seed)
    arrival = np.sort(chance.integers(START_MS, START_MS + HOURS * HOUR_MS, rows))
    mean_ms = np.where(chance.random(rows) < 1 / 20, 30 * MINUTE_MS, MINUTE_MS)
    names = np.array([f"user-{number:05d}" for number in range(KEYS)])
    kind = pa.timestamp("ms", "UTC")
    table = pa.table(
        {
            "user": names[chance.integers(0, KEYS, rows)],
            "amount": np.round(chance.lognormal(3, 1, rows), 2),
            "happened_at": pa.array(arrival - chance.exponential(mean_ms).astype(np.int64)).cast(kind),
            "arrived_at": pa.array(arrival).cast(kind),
        }
    )
    folder.mkdir()
    pq.write_table(table, folder / "day.parquet")


def _check(project: Project, table: str, lineage: str, advance_ms: int) -> dict[str, Any]:
    """Hold the last results against an exact computation; say how many there are, and how many records were late."""
    log = read_rows(table, columns=["partition", "offset", "timestamp", "user", "amount"])
    expected, late = _exact(log, advance_ms)
    found = read_rows(str(Path(project.warehouse) / "bench" / f"results__{lineage}"))
    order = [("user", "ascending"), ("window_start", "ascending")]
    found, expected = found.sort_by(order).combine_chunks(), expected.sort_by(order).combine_chunks()
    names = ["user", "window_start", "events"]
    is_exact = found.select(names).equals(expected.select(names))
    if is_exact:
        wrong = np.abs(np.asarray(found["total"]) * 100 - np.asarray(expected["cents"]))
        is_exact = bool(wrong.max() < 1e-4)
    share = round(late / log.num_rows, 4)
    return {"late": late, "late_share": share, "results": found.num_rows, "exact": is_exact}


def _exact(log: pa.Table, advance_ms: int) -> tuple[pa.Table, int]:
    """Return the right results, in whole cents, and how often a record comes too late for a window."""
    parts, late = [], 0
    for partition in range(PARTITIONS):
        rows = log.filter(pc.equal(log["partition"], partition)).sort_by("offset")
        times = np.asarray(rows["timestamp"])
        clock = np.maximum.accumulate(times)
        cents = np.rint(np.asarray(rows["amount"]) * 100).astype(np.int64)
        kept = []
        for back in range(HOUR_MS // advance_ms):
            starts = times - times % advance_ms - back * advance_ms
            due = starts + HOUR_MS + GRACE_MS
            late += int(np.count_nonzero(due <= clock))
            part = pa.table({"user": rows["user"], "window_start": starts, "cents": cents})
            kept.append(part.filter(pa.array((due > clock) & (due <= clock[-1]))))
        sums = (
            pa.concat_tables(kept).group_by(["user", "window_start"]).aggregate([([], "count_all"), ("cents", "sum")])
        )
        parts.append(sums.rename_columns({"count_all": "events", "cents_sum": "cents"}))
    return pa.concat_tables(parts), late
