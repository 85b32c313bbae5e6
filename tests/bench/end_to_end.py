"""`end-to-end`: raw Parquet to committed hourly finals, next to plain Spark from the same Parquet to Delta.

The yardstick is ``groupBy(key, hour)``, which counts late records and includes open windows: it is what one would write,
and its answer is wrong. Warm, both alternate in one session, which is rewindow's. With ``--cold``, each is a new process, and the
yardstick has Spark's own settings, as a plain Spark job has. Its cost with the settings of rewindow's sessions, whose JVM
compiles less, is measured as well.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from rewindow.engine.spark.jars import find_jars
from rewindow.tables.delta.table_rows import read_rows
from tests.bench.day import FEED, JOB, exact, is_exact, write_source
from tests.bench.meter import Meter, PeakMemory
from tests.bench.rounds import ON_SPARK, log_of, open_rounds
from tests.bench.workload import HOUR_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHUFFLES = (2, 8)
"""Numbers of shuffle partitions to try for the yardstick."""
TUNED = "in rewindow's session, "
"""Begins the name of the yardstick in a session of rewindow's where that is not its usual one."""


def measure(rows: int, *, rounds: int, landings: str = "hourly", cold: bool = False, **_: object) -> dict[str, Any]:
    """Measure alternately, check; return the figures."""
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        root = Path(folder)
        write_source(root / "raw", rows)
        project = open_rounds(root / "project", root / "raw", rounds + 1, landings=landings, inline=ON_SPARK)
        usual, tuned = [[f"{kind}{number}" for number in SHUFFLES] for kind in ("", TUNED)]
        ways = ["ours", *usual, *(tuned if cold else ())]
        costs: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for number in range(0 if not cold else 1, rounds + 1):
            for way in ways:
                cost = _in_new_process(root, way, number) if cold else once(project, root, way, number)
                if number:
                    costs[way].append(cost)
        if not cold:
            project.spark.stop()
        right = _check(project, rounds)
    middle = {
        way: {what: median(one[what] for one in found) for what in ("cpu", "seconds")} for way, found in costs.items()
    }
    best = min(usual, key=lambda way: middle[way]["cpu"])
    ours, yardstick = middle["ours"], middle[best]
    landing = median(one["land"] for one in costs["ours"])
    notes = [f"Landing is part of it: {landing:.1f} CPU-seconds."]
    if cold:
        least = min(middle[way]["cpu"] for way in tuned)
        notes.append(
            "Plain Spark has Spark's own settings here. With those of rewindow's sessions, whose JVM compiles less, it takes "
            f"{least:.1f} CPU-seconds, and the ratio is {ours['cpu'] / least:.2f}."
        )
    return {
        "rows": rows,
        **right,
        "seconds": ours["seconds"],
        "cpu_seconds": ours["cpu"],
        "yardstick": f"plain Spark, {best} shuffle partitions",
        "yardstick_seconds": yardstick["seconds"],
        "yardstick_cpu_seconds": yardstick["cpu"],
        "ratio": round(ours["cpu"] / yardstick["cpu"], 3),
        "is_warm": not cold,
        "peak_mb": memory.peak_mb,
        "peak_worker_mb": memory.peak_worker_mb,
        "rounds": rounds,
        "execution": "auto",
        "landings": landings,
        "source": "auto",
        "notes": notes,
    }


def once(project: OpenProject, root: Path, way: str, number: int) -> dict[str, float]:
    """Measure our way, or the yardstick with a number of shuffle partitions, in a session of rewindow's."""
    if way != "ours":
        return _yardstick(project.spark, root, int(way.removeprefix(TUNED)))
    meter = Meter()
    project.land(f"{FEED}{number}")
    landed = meter.read()["cpu"]
    project.run(f"{JOB}{number}", RunRequest())
    return {**meter.read(), "land": landed}


def _yardstick(spark: SparkSession, root: Path, shuffles: int) -> dict[str, float]:
    from pyspark.sql import functions as F

    shutil.rmtree(root / "plain", ignore_errors=True)
    spark.conf.set("spark.sql.shuffle.partitions", shuffles)
    meter = Meter()
    window = F.floor(F.unix_millis("happened_at") / HOUR_MS) * HOUR_MS
    grouped = spark.read.parquet(str(root / "raw")).groupBy("user", window.alias("window_start"))
    results = grouped.agg(F.count("*").alias("events"), F.sum("amount").alias("total"))
    results.write.format("delta").save(str(root / "plain"))
    return {**meter.read(), "land": 0.0}


def _in_new_process(root: Path, way: str, number: int) -> dict[str, float]:
    meter = Meter()
    command = [sys.executable, "-m", "tests.bench.end_to_end", str(root), way, str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return {**found, **meter.read()}


def _check(project: OpenProject, number: int) -> dict[str, Any]:
    """Compare the last results with the exact ones; return their number and the number of late records."""
    log = read_rows(log_of(project, number), columns=["partition", "offset", "timestamp", "user", "amount"])
    expected, late = exact(log, 60)
    found = read_rows(str(Path(project.warehouse) / "bench" / f"results{number}"))
    share = round(late / log.num_rows, 4)
    return {"late": late, "late_share": share, "results": found.num_rows, "exact": is_exact(found, expected)}


def _untuned_session() -> SparkSession:
    """Start Spark with its own settings and what Delta's quick start adds to them."""
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master(f"local[{os.cpu_count()}]")
        .config("spark.jars", ",".join(map(str, find_jars())))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .getOrCreate()
    )


def main(root: Path, way: str, number: int) -> None:
    """Measure one way in this process, from its start."""
    with PeakMemory():
        if way.isdigit():
            spark = _untuned_session()
            found = _yardstick(spark, root, int(way))
        else:
            project = OpenProject.open(root / "project")
            found, spark = once(project, root, way, number), project.spark
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
