"""`limits`: the same finals with polars over the same files and with exact semantics, as a lower bound.

Polars reads the files of each partition in offset order, uses the running maximum as the clock, drops late records,
aggregates, omits open windows, and writes one Parquet file per partition. It has no state, metrics, digests or commits. The
results of both sides are compared.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from rewindow.streams.record import TopicPartition
from rewindow.tables.delta.table_rows import read_rows
from tests.bench.day import FEED, JOB, write_project, write_source
from tests.bench.meter import Meter, PeakMemory
from tests.bench.workload import GRACE_MS, HOUR_MS, PARTITIONS


def measure(rows: int, *, rounds: int, landings: str = "hourly", source: str = "auto", **_: object) -> dict[str, Any]:
    """Land, warm up, measure both sides alternately, and check the results. Return the figures."""
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        root = Path(folder)
        write_project(root, execution="auto", landings=landings, source=source, advance=60)
        write_source(root / "raw", rows)
        project = OpenProject.open(root)
        meter = Meter()
        project.land(FEED)
        landed = meter.read()
        files = _files(project)
        project.run(JOB, RunRequest(branch="warm"))
        by_polars(files, root / "polars")
        ours, polars = [], []
        for number in range(rounds):
            meter = Meter()
            project.run(JOB, RunRequest(branch=f"round{number}"))
            ours.append(meter.read())
            meter = Meter()
            late = by_polars(files, root / "polars")
            polars.append(meter.read())
        project.spark.stop()
        found = read_rows(str(Path(project.warehouse) / "bench" / f"results__round{rounds - 1}"))
        expected = pa.concat_tables([pq.read_table(path, partitioning=None) for path in (root / "polars").iterdir()])
        right = {"results": found.num_rows, "exact": _agree(found, expected)}
    cpu, yardstick = (sorted(one["cpu"] for one in side)[rounds // 2] for side in (ours, polars))
    seconds, yardstick_seconds = (sorted(one["seconds"] for one in side)[rounds // 2] for side in (ours, polars))
    return {
        "rows": rows,
        "late": late,
        "late_share": round(late / rows, 4),
        **right,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "yardstick": "polars alone, the exact rule",
        "yardstick_seconds": yardstick_seconds,
        "yardstick_cpu_seconds": yardstick,
        "ratio": round(cpu / yardstick, 3),
        "is_warm": True,
        "land_cpu_seconds": landed["cpu"],
        "peak_mb": memory.peak_mb,
        "rounds": rounds,
        "execution": "auto",
        "landings": landings,
        "source": source,
        "ours": ours,
        "plain": {"polars": polars},
    }


def by_polars(files: list[list[str]], results: Path) -> int:
    """Write the final results of each partition. Return the number of late records."""
    import polars as pl  # type: ignore[import-not-found, unused-ignore]

    results.mkdir(exist_ok=True)
    late = 0
    due = pl.col("window_start") + HOUR_MS + GRACE_MS
    for partition, paths in enumerate(files):
        time = pl.col("timestamp")
        log = pl.scan_parquet(paths, hive_partitioning=False).select("timestamp", "user", "amount")
        log = log.with_columns(window_start=time - time % HOUR_MS, clock=time.cum_max())
        kept = log.filter(due > pl.col("clock")).group_by("user", "window_start")
        sums = kept.agg(pl.len().alias("events"), pl.col("amount").sum().alias("total"))
        last, dropped = log.select(pl.col("clock").max(), (due <= pl.col("clock")).sum().alias("late")).collect().row(0)
        late += dropped
        sums.filter(due <= last).sort("window_start", "user").sink_parquet(results / f"{partition}.parquet")
    return late


def _files(project: OpenProject) -> list[list[str]]:
    """Return the files of each partition in offset order."""
    feed = project.tables.feed(FEED)
    ranges = feed.landings[-1].ranges
    partitions = [TopicPartition("events", partition) for partition in range(PARTITIONS)]
    return [[file.path for file in project.tables.log_files(feed, where, 0, ranges[where].end)] for where in partitions]


def _agree(found: pa.Table, expected: pa.Table) -> bool:
    order = [("user", "ascending"), ("window_start", "ascending")]
    found, expected = found.sort_by(order), expected.sort_by(order)
    if found.num_rows != expected.num_rows:
        return False
    same = all(
        np.array_equal(np.asarray(found[name]), np.asarray(expected[name])) for name in ("window_start", "events")
    )
    users = found["user"].to_pylist() == expected["user"].cast(pa.string()).to_pylist()
    return same and users and bool(np.allclose(np.asarray(found["total"]), np.asarray(expected["total"]), rtol=1e-12))
