"""`finals`, `finals-hopping`, `finals-session`: count and sum by key and window, final results only.

Measures from the landed table to published tables. The input is a day of records in order of arrival. Their timestamps are
earlier by an exponentially distributed delay with mean 60 s, or 30 minutes for one record in twenty. The yardstick is plain
Spark over the same files, ``groupBy(key, hour)`` written to Delta. Its result is wrong, because it counts late records and
includes open windows, but it is what one would write. For hopping windows (an hour, every 20 minutes) and sessions
(5 minutes) it uses Spark's ``window`` and ``session_window``. Both alternate in one warm session; with ``--cold``, each is
the first job of a new session. Our results are compared with an independent exact computation in whole cents.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from rewindow.control.run import RunReport
from rewindow.tables.delta.table_rows import read_rows
from tests.bench.day import FEED, JOB, SESSION, exact, is_exact, write_project, write_source
from tests.bench.meter import Meter, PeakMemory
from tests.bench.workload import HOUR_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHUFFLES = (2, 8, 200)
"""Numbers of shuffle partitions to try for the yardstick: cores, partitions, Spark's default."""


def measure(
    rows: int,
    *,
    rounds: int,
    execution: str = "auto",
    landings: str = "hourly",
    source: str = "auto",
    cold: bool = False,
    advance: int | str = 60,
    shuffles: Sequence[int] = SHUFFLES,
) -> dict[str, Any]:
    """Land, warm up, measure both sides alternately, and check the results. Return the figures.

    ``advance``: minutes between the starts of windows, or sessions. ``shuffles``: see `SHUFFLES`.
    """
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        root = Path(folder)
        write_project(root, execution=execution, landings=landings, source=source, advance=advance)
        write_source(root / "raw", rows)
        project = OpenProject.open(root)
        meter = Meter()
        project.land(FEED)
        landed = meter.read()
        measured = (_cold if cold else _warm)(project, root, rounds, advance, shuffles)
        ours, baseline = measured
        right = _check(project, f"round{rounds - 1}", advance)
    best = min(shuffles, key=lambda number: _middle(baseline[number], "cpu"))
    cpu, yardstick = _middle(ours, "cpu"), _middle(baseline[best], "cpu")
    return {
        "rows": rows,
        **right,
        "seconds": _middle(ours, "seconds"),
        "cpu_seconds": cpu,
        "yardstick": f"plain Spark, {best} shuffle partitions",
        "yardstick_seconds": _middle(baseline[best], "seconds"),
        "yardstick_cpu_seconds": yardstick,
        "ratio": round(cpu / yardstick, 3),
        "is_warm": not cold,
        "land_cpu_seconds": landed["cpu"],
        "peak_mb": memory.peak_mb,
        "rounds": rounds,
        "execution": execution,
        "landings": landings,
        "source": source,
        "ours": ours,
        "plain": {str(number): found for number, found in baseline.items()},
    }


Measured = tuple[list[dict[str, float]], dict[int, list[dict[str, float]]]]
"""The costs of our rounds, and of the yardstick's rounds by number of shuffle partitions."""


def _warm(project: OpenProject, root: Path, rounds: int, advance: int | str, tried: Sequence[int]) -> Measured:
    spark, table = project.spark, _log(project)
    _ours(project, "warm")
    for shuffles in tried:
        _baseline(spark, table, root / "plain", shuffles, advance)
    ours: list[dict[str, float]] = []
    baseline: dict[int, list[dict[str, float]]] = {shuffles: [] for shuffles in tried}
    for number in range(rounds):
        ours.append(_ours(project, f"round{number}"))
        for shuffles in tried:
            baseline[shuffles].append(_baseline(spark, table, root / "plain", shuffles, advance))
    spark.stop()
    return ours, baseline


def _cold(project: OpenProject, root: Path, rounds: int, advance: int | str, tried: Sequence[int]) -> Measured:
    project.spark.stop()
    ours: list[dict[str, float]] = []
    baseline: dict[int, list[dict[str, float]]] = {shuffles: [] for shuffles in tried}
    for number in range(rounds):
        ours.append(_in_fresh_session(root, f"round{number}", advance))
        for shuffles in tried:
            baseline[shuffles].append(_in_fresh_session(root, str(shuffles), advance))
    return ours, baseline


def _in_fresh_session(root: Path, way: str, advance: int | str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.finals", str(root), way, str(advance)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(root: Path, way: str, advance: str) -> None:
    """Measure the first job of a new session: the yardstick with a number of shuffle partitions, or a branch of ours."""
    project = OpenProject.open(root)
    spark = project.spark
    with PeakMemory():
        if way.isdigit():
            minutes = advance if advance == SESSION else int(advance)
            found = _baseline(spark, _log(project), root / "plain", int(way), minutes)
        else:
            found = _ours(project, way)
    print(json.dumps(found))
    spark.stop()


def _log(project: OpenProject) -> str:
    return str(Path(project.warehouse) / "logs" / FEED / "events")


def _ours(project: OpenProject, branch: str) -> dict[str, float]:
    meter = Meter()
    report = project.run(JOB, RunRequest(branch=branch))
    assert isinstance(report, RunReport)
    return meter.read()


def _baseline(spark: SparkSession, table: str, path: Path, shuffles: int, advance: int | str) -> dict[str, float]:
    from pyspark.sql import functions as F

    shutil.rmtree(path, ignore_errors=True)
    spark.conf.set("spark.sql.shuffle.partitions", shuffles)
    meter = Meter()
    window = F.floor(F.col("timestamp") / HOUR_MS) * HOUR_MS
    if advance == SESSION:
        window = F.session_window(F.timestamp_millis("timestamp"), "5 minutes")
    elif advance != 60:
        window = F.window(F.timestamp_millis("timestamp"), "1 hour", f"{advance} minutes")
    grouped = spark.read.format("delta").load(table).groupBy("user", window.alias("window_start"))
    results = grouped.agg(F.count("*").alias("events"), F.sum("amount").alias("total"))
    results.write.format("delta").save(str(path))
    return meter.read()


def _middle(found: list[dict[str, float]], what: str) -> float:
    return round(median(one[what] for one in found), 3)


def _check(project: OpenProject, branch: str, advance: int | str) -> dict[str, Any]:
    """Compare the last results with the exact ones; return their number and the number of late records."""
    log = read_rows(_log(project), columns=["partition", "offset", "timestamp", "user", "amount"])
    expected, late = exact(log, advance)
    found = read_rows(str(Path(project.warehouse) / "bench" / f"results__{branch}"))
    share = round(late / log.num_rows, 4)
    return {"late": late, "late_share": share, "results": found.num_rows, "exact": is_exact(found, expected)}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
