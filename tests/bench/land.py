"""`land`: raw Parquet to a log, next to polars doing the same split, sort and write.

Landing is measured as Spark's workers do it (``inline: 0``), in one warm session, and in the command's own process. Polars
reads the file, splits it by a hash of the key, sorts each part by arrival and writes it. It assigns no offsets, checks no
timestamp, writes no digests and commits nothing. Every log is compared with the source.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.app.open_project import OpenProject
from rewindow.tables.delta.table_rows import read_rows
from tests.bench.day import FEED, write_source
from tests.bench.meter import Meter, PeakMemory
from tests.bench.rounds import IN_PROCESS, ON_SPARK, log_of, open_rounds
from tests.bench.workload import PARTITIONS

WAYS = {"Spark's workers": ON_SPARK, "the command's process": IN_PROCESS}


def measure(rows: int, *, rounds: int, landings: str = "hourly", **_: object) -> dict[str, Any]:
    """Warm up, measure alternately, check; return the figures."""
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        root = Path(folder)
        write_source(root / "raw", rows)
        projects = {
            way: open_rounds(root / f"way{inline}", root / "raw", rounds + 1, landings=landings, inline=inline)
            for way, inline in WAYS.items()
        }
        costs: dict[str, list[dict[str, float]]] = {way: [] for way in (*WAYS, "polars")}
        for number in range(rounds + 1):
            for way, project in projects.items():
                meter = Meter()
                project.land(f"{FEED}{number}")
                costs[way].append(meter.read())
            meter = Meter()
            by_polars(root / "raw", root / "polars")
            costs["polars"].append(meter.read())
        projects["Spark's workers"].spark.stop()
        is_exact = all(is_landed(root / "raw", project, rounds) for project in projects.values())
    warm = {
        way: {what: median(one[what] for one in found[1:]) for what in ("cpu", "seconds")}
        for way, found in costs.items()
    }
    ours, here, polars = warm["Spark's workers"], warm["the command's process"], warm["polars"]
    return {
        "rows": rows,
        "late": 0,
        "late_share": 0.0,
        "results": rows,
        "exact": is_exact,
        "seconds": ours["seconds"],
        "cpu_seconds": ours["cpu"],
        "yardstick": "polars: split, sort, write",
        "yardstick_seconds": polars["seconds"],
        "yardstick_cpu_seconds": polars["cpu"],
        "ratio": round(ours["cpu"] / polars["cpu"], 3),
        "in_process_cpu_seconds": here["cpu"],
        "in_process_ratio": round(here["cpu"] / polars["cpu"], 3),
        "is_warm": True,
        "peak_mb": memory.peak_mb,
        "peak_worker_mb": memory.peak_worker_mb,
        "rounds": rounds,
        "execution": "auto",
        "landings": landings,
        "source": "auto",
        "bars": {way: one["cpu"] for way, one in warm.items()},
        "notes": [
            (
                f"In the command's own process: {here['cpu']:.2f} CPU-seconds, {here['seconds']:.2f} seconds, "
                f"{here['cpu'] / polars['cpu']:.2f} times polars."
            ),
            f"The largest Python worker took {memory.peak_worker_mb:,} MB (goal: 512).",
        ],
    }


def by_polars(raw: Path, results: Path) -> None:
    """Split by a hash of the key, sort by arrival, write a file per partition."""
    import polars as pl  # type: ignore[import-not-found, unused-ignore]

    shutil.rmtree(results, ignore_errors=True)
    results.mkdir()
    rows = pl.read_parquet(raw / "*.parquet").with_columns(part=pl.col("user").hash() % PARTITIONS)
    for (part,), some in rows.partition_by("part", as_dict=True).items():
        some.sort("arrived_at", maintain_order=True).write_parquet(results / f"{part}.parquet")


def is_landed(raw: Path, project: OpenProject, number: int) -> bool:
    """Return whether a log has the source's rows, each in the partition of its key, in order of arrival.

    It reads one partition at a time: all 50 M records with their texts would take gigabytes.
    """
    names = ["partition", "offset", "timestamp", "arrived_at", "user", "amount"]
    amounts, times = [], []
    for partition in range(PARTITIONS):
        found = read_rows(log_of(project, number), columns=names, where=pc.field("partition") == partition).sort_by(
            "offset"
        )
        users = found["user"].unique().to_pylist()
        are_here = all(crc32(user.encode()) % PARTITIONS == partition for user in users)
        offsets, arrived = np.asarray(found["offset"]), np.asarray(found["arrived_at"])
        if not (are_here and np.array_equal(offsets, np.arange(len(offsets))) and (np.diff(arrived) >= 0).all()):
            return False
        amounts.append(np.asarray(found["amount"]))
        times.append(np.asarray(found["timestamp"]))
    source = pq.read_table(raw, columns=["amount", "happened_at"])
    pairs = (
        (np.concatenate(amounts), np.asarray(source["amount"])),
        (np.concatenate(times), np.asarray(source["happened_at"].cast("int64"))),
    )
    return all(np.array_equal(np.sort(landed), np.sort(expected)) for landed, expected in pairs)
