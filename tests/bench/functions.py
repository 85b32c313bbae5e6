"""`functions`: hourly finals behind a Python `filter` and `map_values`, next to plain Spark with an equivalent Python UDF.

The functions keep every record and every amount, which costs most and leaves the answer as it is. The same job without
functions is measured too. All ways alternate in one warm session.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from rewindow.control.run import RunReport
from rewindow.tables.delta.table_rows import read_rows
from tests.bench.day import FEED, JOB, exact, is_exact, write_project, write_source
from tests.bench.meter import Meter, PeakMemory
from tests.bench.workload import HOUR_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITH = "behind"
JOB_FILE = """\
job: behind
topology: behind_job:build_topology
feed: bench
outputs:
  results: {table: bench.behind}
"""
TOPOLOGY = '''\
"""Count and sum by key and hour behind two Python functions, final results only."""

from rewindow import Count, StreamsBuilder, Sum, TimeWindows, Topology, until_window_closes


def is_paid(user, order) -> bool:
    return order.amount >= 0


def amount_of(order) -> float:
    return order.amount


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("events")
        .filter(is_paid)
        .map_values(amount_of)
        .group_by_key()
        .windowed_by(TimeWindows.of("1h", grace="10m"))
        .aggregate({"events": Count(), "total": Sum()}, store="hours")
        .suppress(until_window_closes(), name="closed-hours")
        .to_stream()
        .to("results")
    )
    return builder.build()
'''
SPARK = "plain Spark with a Python UDF"
SHUFFLES = (2, 8)
"""Numbers of shuffle partitions to try for the yardstick."""


def measure(
    rows: int, *, rounds: int, execution: str = "auto", landings: str = "hourly", **_: object
) -> dict[str, Any]:
    """Land, warm up, measure alternately, check; return the figures."""
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        root = Path(folder)
        write_project(root, execution=execution, landings=landings, source="auto", advance=60)
        (root / "conf/jobs/behind.yaml").write_text(JOB_FILE)
        (root / "behind_job.py").write_text(TOPOLOGY)
        write_source(root / "raw", rows)
        project = OpenProject.open(root)
        project.land(FEED)
        spark, log = project.spark, str(Path(project.warehouse) / "logs" / FEED / "events")
        costs: dict[str, list[dict[str, float]]] = {way: [] for way in (WITH, JOB, *map(str, SHUFFLES))}
        for number in range(rounds + 1):
            for job in (WITH, JOB):
                costs[job].append(_ours(project, job, f"round{number}"))
            for shuffles in SHUFFLES:
                costs[str(shuffles)].append(_yardstick(spark, log, root / "plain", shuffles))
        spark.stop()
        found = read_rows(str(Path(project.warehouse) / "bench" / f"behind__round{rounds}"))
        landed = read_rows(log, columns=["partition", "offset", "timestamp", "user", "amount"])
        expected, late = exact(landed, 60)
    warm = {
        way: {what: median(one[what] for one in all_[1:]) for what in ("cpu", "seconds")} for way, all_ in costs.items()
    }
    best = min(map(str, SHUFFLES), key=lambda way: warm[way]["cpu"])
    ours, without, yardstick = warm[WITH], warm[JOB], warm[best]
    times = round(ours["cpu"] / without["cpu"], 3)
    return {
        "rows": rows,
        "late": late,
        "late_share": round(late / landed.num_rows, 4),
        "results": found.num_rows,
        "exact": is_exact(found, expected),
        "seconds": ours["seconds"],
        "cpu_seconds": ours["cpu"],
        "yardstick": f"{SPARK}, {best} shuffle partitions",
        "yardstick_seconds": yardstick["seconds"],
        "yardstick_cpu_seconds": yardstick["cpu"],
        "ratio": round(ours["cpu"] / yardstick["cpu"], 3),
        "without_cpu_seconds": without["cpu"],
        "without_ratio": times,
        "is_warm": True,
        "peak_mb": memory.peak_mb,
        "rounds": rounds,
        "execution": execution,
        "landings": landings,
        "source": "auto",
        "bars": {"rewindow": ours["cpu"], "without functions": without["cpu"], SPARK: yardstick["cpu"]},
        "notes": [
            f"Without the functions: {without['cpu']:.2f} CPU-seconds, so they make the run {times:.2f} times as expensive."
        ],
    }


def _ours(project: OpenProject, job: str, branch: str) -> dict[str, float]:
    meter = Meter()
    report = project.run(job, RunRequest(branch=branch))
    assert isinstance(report, RunReport)
    return meter.read()


def _yardstick(spark: SparkSession, log: str, path: Path, shuffles: int) -> dict[str, float]:
    from pyspark.sql import functions as F
    from pyspark.sql.types import BooleanType, DoubleType

    is_paid = F.udf(lambda _user, amount: amount >= 0, BooleanType())
    amount_of = F.udf(lambda amount: amount, DoubleType())
    shutil.rmtree(path, ignore_errors=True)
    spark.conf.set("spark.sql.shuffle.partitions", shuffles)
    meter = Meter()
    rows = spark.read.format("delta").load(log).where(is_paid("user", "amount")).withColumn("paid", amount_of("amount"))
    window = F.floor(F.col("timestamp") / HOUR_MS) * HOUR_MS
    grouped = rows.groupBy("user", window.alias("window_start"))
    results = grouped.agg(F.count("*").alias("events"), F.sum("paid").alias("total"))
    results.write.format("delta").save(str(path))
    return meter.read()
