"""`overhead`: the cost of an empty run and of a small run, and the parts of a cold start.

Measures an empty run, and a run with a few new records on 2,000,000 stored keys, in a warm session: seconds, CPU-seconds,
Delta commits and Spark jobs. A cold run is a new process, measured part by part from its start to the end of the run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.meter import PeakMemory
from tests.bench.stored import UNWINDOWED, StoredCounts, median_of, repeated

STORED = 2_000_000
"""The number of keys in the store."""
GOAL_S = 1.0


def measure(rows: int, *, rounds: int, stored: int = STORED, **_: object) -> dict[str, Any]:
    """Measure and return the figures. The yardstick is the goal: one second for a small run."""
    rows = min(rows, 10_000)
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        counts = StoredCounts(Path(folder), stored, UNWINDOWED)
        counts.run()
        empty = repeated(rounds, counts.run)
        small = []
        for _number in range(rounds + 2):
            counts.land_some(rows)
            small.append(counts.run())
        is_right = counts.is_exact()
        counts.land_some(rows)
        counts.project.spark.stop()
        cold = _cold(counts.root)
    parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in cold.items() if name != "all")
    seconds, cpu = median_of(small[2:], "seconds"), median_of(small[2:], "cpu")
    return {
        "rows": rows,
        "late": 0,
        "late_share": 0.0,
        "results": rows,
        "exact": is_right,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "yardstick": "an empty run",
        "yardstick_seconds": median_of(empty, "seconds"),
        "yardstick_cpu_seconds": max(median_of(empty, "cpu"), 0.001),
        "ratio": round(cpu / max(median_of(empty, "cpu"), 0.001), 3),
        "is_warm": True,
        "peak_mb": memory.peak_mb,
        "rounds": rounds,
        "execution": "auto",
        "landings": "hourly",
        "source": "auto",
        "stored": stored,
        "cold": cold,
        "empty": empty[-1],
        "small": small[-1],
        "bars": {name: took for name, took in cold.items() if name != "all"},
        "bars_unit": "seconds of a cold run",
        "notes": [
            (
                f"An empty run: {median_of(empty, 'seconds'):.2f} s (goal 0.5), {empty[-1]['commits']:.0f} Delta commits, "
                f"{empty[-1]['jobs']:.0f} Spark jobs."
            ),
            (
                f"A run of {rows:,} records on {stored:,} stored keys: {seconds:.2f} s (goal {GOAL_S:.0f}), "
                f"{small[-1]['commits']:.0f} Delta commits (plan, journal, commit, and one for each of the three tables), "
                f"{small[-1]['jobs']:.0f} Spark jobs."
            ),
            f"The same in a separate process: {cold['all']:.1f} s (goal 10), in seconds: {parts}.",
        ],
    }


def _cold(root: Path) -> dict[str, float]:
    began = time.time()
    command = [sys.executable, "-m", "tests.bench.overhead", str(root), str(began)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(root: Path, began: float) -> None:
    """Run the new epochs in this process, and print the duration of each part."""
    marks = {"python": time.time()}
    from rewindow.app.open_project import OpenProject
    from rewindow.control.plan.spec import RunRequest
    from tests.bench.day import JOB

    def mark(step: str) -> None:
        marks.setdefault(step, time.time())

    project = OpenProject.open(root)
    marks["imports"] = time.time()
    project.run(JOB, RunRequest(), mark)
    marks["publish and all else"] = time.time()
    kept = ("python", "imports", "execute", "stage", "publish and all else")
    named = {
        "execute": "plan",
        "stage": "the sub-topology" if "spark" not in vars(project) else "JVM, session and first job",
    }
    found, before = {}, began
    for name in kept:
        found[named.get(name, name)] = round(marks[name] - before, 2)
        before = marks[name]
    print(json.dumps({**found, "all": round(before - began, 2)}))
    if "spark" in vars(project):
        project.spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
