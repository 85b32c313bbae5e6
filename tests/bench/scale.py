"""`scale`: the job `finals` from a landed log to staged files, by partitions (1, 2, 4, 8), cores (1, 2) and size.

The records are always the same; partitions only change the number of tasks. Linear scaling means that two cores take half the
seconds of one, and that ten times the records cost ten times the CPU-seconds.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewindow.contracts.tasks import Execution
from tests.bench.jobs import sub_topology_work
from tests.bench.meter import Meter, PeakMemory
from tests.bench.record_execution import ROOT
from tests.bench.stored import median_of
from tests.bench.workload import Slice, make_log

if TYPE_CHECKING:
    from rewindow.engine.spark.spark_engine import SparkEngine

JOB = "finals"
PARTITIONS, CORES = (1, 2, 4, 8), (1, 2)
SMALL = "a tenth of the records"


def measure(rows: int, *, rounds: int, **_: object) -> dict[str, Any]:
    """Measure each number of cores in a new process. The yardstick is one core."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        for partitions in PARTITIONS:
            _make_log(Path(folder), rows, partitions)
        _make_log(Path(folder), rows // 10, max(PARTITIONS))
        for cores in CORES:
            found |= _in_a_process(Path(folder), rows, cores, rounds)
    small = found.pop(SMALL)
    one, two = found["8 partitions, 1 core"], found["8 partitions, 2 cores"]
    growth = two["cpu"] / small["cpu"]
    return {
        "rows": rows,
        "late": int(two["late"]),
        "late_share": round(two["late"] / rows, 4),
        "results": int(two["results"]),
        "exact": len({cost["results"] for name, cost in found.items() if name.startswith("8 ")}) == 1,
        "seconds": two["seconds"],
        "cpu_seconds": two["cpu"],
        "yardstick": "one core",
        "yardstick_seconds": one["seconds"],
        "yardstick_cpu_seconds": one["cpu"],
        "ratio": round(two["cpu"] / one["cpu"], 3),
        "speedup": round(one["seconds"] / two["seconds"], 2),
        "growth": round(growth, 2),
        "is_warm": True,
        "peak_mb": memory.peak_mb,
        "rounds": rounds,
        "execution": "auto",
        "landings": "hourly",
        "source": "auto",
        "ways": found,
        "bars": {name: cost["seconds"] for name, cost in found.items()},
        "bars_unit": "seconds",
        "notes": [
            *(f"{name}: {cost['seconds']:.2f} s, {cost['cpu']:.2f} CPU-seconds." for name, cost in found.items()),
            f"Two cores are {one['seconds'] / two['seconds']:.2f} times as fast as one (8 partitions).",
            f"Ten times the records cost {growth:.1f} times the CPU-seconds ({small['cpu']:.2f} for {rows // 10:,}).",
        ],
    }


def _make_log(folder: Path, rows: int, partitions: int) -> None:
    """Create a log and save its location."""
    log = make_log(folder / f"log-{rows}-{partitions}", rows, partitions=partitions)
    _note(folder, rows, partitions).write_text(json.dumps(log))


def _kept(folder: Path, rows: int, partitions: int) -> list[Slice]:
    found = json.loads(_note(folder, rows, partitions).read_text())
    return [Slice(path, [(first, end) for first, end in bounds]) for path, bounds in found]


def _note(folder: Path, rows: int, partitions: int) -> Path:
    return folder / f"log-{rows}-{partitions}.json"


def _in_a_process(folder: Path, rows: int, cores: int, rounds: int) -> dict[str, dict[str, float]]:
    command = [sys.executable, "-m", "tests.bench.scale", str(folder), *map(str, (rows, cores, rounds))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    costs: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return costs


def main(folder: Path, rows: int, cores: int, rounds: int) -> None:
    """Measure each number of partitions, warm, and print the costs. With all cores, also measure a tenth of the records."""
    from rewindow.engine.spark.session import local_session
    from rewindow.engine.spark.spark_engine import SparkEngine

    session = local_session(cores=cores, python_path=[ROOT])
    engine = SparkEngine(session, slots=cores)
    found = {}
    for partitions in PARTITIONS:
        name = f"{partitions} partitions, {cores} core{'s' if cores > 1 else ''}"
        found[name] = _cost(engine, folder, rows, partitions, rounds)
    if cores == max(CORES):
        found[SMALL] = _cost(engine, folder, rows // 10, max(PARTITIONS), rounds)
    session.stop()
    print(json.dumps(found))


def _cost(engine: SparkEngine, folder: Path, rows: int, partitions: int, rounds: int) -> dict[str, float]:
    log = _kept(folder, rows, partitions)
    engine.run_sub_topology(sub_topology_work(JOB, log, folder / "warm", 1, Execution.AUTO))
    costs = []
    for _ in range(rounds):
        results_root = folder / "results"
        shutil.rmtree(results_root, ignore_errors=True)
        meter = Meter()
        reports = engine.run_sub_topology(sub_topology_work(JOB, log, results_root, execution=Execution.AUTO))
        costs.append(meter.read())
    results = sum(file.rows for report in reports for file in report.files if file.target.startswith("output/"))
    late = sum(row["count"] for report in reports for row in report.metrics if row["name"] == "late-record-drop")
    medians = {what: median_of(costs, what) for what in ("cpu", "seconds")}
    return {**medians, "results": results, "late": late}


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
