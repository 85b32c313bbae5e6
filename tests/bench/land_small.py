"""`land-small`: a landing of few records as a command of its own, from its start to its end. It must not start a JVM.

The yardstick is a process of its own too: polars does the same split, sort and write (`tests.bench.land`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from rewindow.app.open_project import OpenProject
from tests.bench.day import FEED, write_source
from tests.bench.land import by_polars, is_landed
from tests.bench.meter import PeakMemory
from tests.bench.rounds import open_rounds

ROOT = Path(__file__).resolve().parents[2]
GOAL_S = 1.5
_LAND = "import sys; from rewindow.app.cli.entry import main; sys.argv = ['rewindow', 'land', sys.argv[1]]; main()"
_LOADED = (
    "import sys, json; from pathlib import Path; from rewindow.app.open_project import OpenProject; "
    "OpenProject.open(Path('.')).land(sys.argv[1]); print(json.dumps('pyspark' in sys.modules))"
)


def measure(rows: int, *, rounds: int, landings: str = "hourly", **_: object) -> dict[str, Any]:
    """Measure alternately; check the logs, and that no Spark is loaded."""
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        root = Path(folder)
        write_source(root / "raw", rows)
        open_rounds(root / "project", root / "raw", rounds + 2, landings=landings, inline=None)
        ours, polars = [], []
        for number in range(rounds + 1):
            ours.append(cost(root / "project", "-c", _LAND, f"{FEED}{number}"))
            polars.append(cost(ROOT, "-m", "tests.bench.land_small", str(root / "raw"), str(root / "polars")))
        command = [sys.executable, "-c", _LOADED, f"{FEED}{rounds + 1}"]
        loaded = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root / "project")
        has_spark = json.loads(loaded.stdout.splitlines()[-1])
        is_exact = is_landed(root / "raw", OpenProject.open(root / "project"), rounds)
    found, yardstick = (
        {what: median(one[what] for one in side[1:]) for what in ("cpu", "seconds")} for side in (ours, polars)
    )
    fastest = min(one["seconds"] for one in ours)
    return {
        "rows": rows,
        "late": 0,
        "late_share": 0.0,
        "results": rows,
        "exact": is_exact and not has_spark,
        "seconds": found["seconds"],
        "cpu_seconds": found["cpu"],
        "yardstick": "polars in a process of its own",
        "yardstick_seconds": yardstick["seconds"],
        "yardstick_cpu_seconds": yardstick["cpu"],
        "ratio": round(found["cpu"] / yardstick["cpu"], 3),
        "is_warm": False,
        "peak_mb": memory.peak_mb,
        "rounds": rounds,
        "execution": "auto",
        "landings": landings,
        "source": "auto",
        "notes": [
            f"The whole command took {found['seconds']:.2f} seconds (goal: {GOAL_S}), the fastest {fastest:.2f}.",
            "It loaded pyspark." if has_spark else "It loaded no pyspark, so there was no JVM.",
        ],
    }


def cost(folder: Path, *words: str) -> dict[str, float]:
    """Return the CPU-seconds and the seconds of a Python process."""
    before, begun = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, cwd=folder, stdout=subprocess.DEVNULL)
    after, seconds = os.times(), time.perf_counter() - begun
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"cpu": round(cpu, 3), "seconds": round(seconds, 3)}


if __name__ == "__main__":
    by_polars(Path(sys.argv[1]), Path(sys.argv[2]))
