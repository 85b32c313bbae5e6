"""`year`: a year of hourly runs of 1,000 records each, in one process. The last runs must cost what the tenth costs.

The records of the year are landed hour by hour by one call, and then each run takes one landing. After each day, `gc` keeps
the state of the last 30 days, and the files of the Delta logs become a day older, so that Delta cleans up as it does in a
year. The yardstick is the goal for one run.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from rewindow.app.maintenance import JobMaintenance
from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from rewindow.tables.delta.table_rows import read_rows
from tests.bench.day import FEED, JOB, exact, is_exact, write_project, write_source
from tests.bench.meter import Meter, PeakMemory

PER_RUN = 1_000
GOAL_CPU = 0.08
WARM = 10
"""Runs before this one warm the process up."""
SPAN = 24
"""The cost at some time of the year is the mean of so many runs: one run takes a few ticks of the clock, which are 10 ms."""
DAY, KEPT_DAYS = 24, 30
DAY_S = 24 * 3600


def measure(rows: int, *, execution: str = "auto", **_: object) -> dict[str, Any]:
    """Measure and return the figures; ``rows`` decides how many runs there are."""
    hours = rows // PER_RUN
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, PeakMemory() as memory:
        root = Path(folder)
        write_project(root, execution=execution, landings="hourly", source="auto", advance=60)
        write_source(root / "raw", rows, hours=hours)
        project = OpenProject.open(root)
        meter = Meter()
        project.land(FEED)
        landed = meter.read()
        landings = len(project.tables.feed(FEED).landings)
        costs: list[float] = []
        seconds: list[float] = []
        days: list[float] = []
        ends: list[int] = []
        for landing in range(1, landings + 1):
            if landing % DAY == 1 and landing > 1:
                days.append(_end_day(project, ends))
            meter = Meter()
            project.run(JOB, RunRequest(through_landing=landing))
            cost = meter.read()
            costs.append(cost["cpu"])
            seconds.append(cost["seconds"])
            ends.append(time.time_ns() // 1_000_000)
        columns = ["partition", "offset", "timestamp", "user", "amount"]
        expected, late = exact(read_rows(f"{project.warehouse}/logs/{FEED}/events", columns=columns), 60)
        found = read_rows(f"{project.warehouse}/bench/results")
    tenth, last = statistics.fmean(costs[WARM : WARM + SPAN]), statistics.fmean(costs[-SPAN:])
    return {
        "rows": rows,
        "late": late,
        "late_share": round(late / rows, 4),
        "results": found.num_rows,
        "exact": is_exact(found, expected),
        "runs": landings,
        "seconds": round(sum(seconds) / landings, 3),
        "cpu_seconds": round(sum(costs) / landings, 3),
        "yardstick": "the goal for one run",
        "yardstick_seconds": GOAL_CPU,
        "yardstick_cpu_seconds": GOAL_CPU,
        "ratio": round(sum(costs) / landings / GOAL_CPU, 3),
        "tenth_cpu_seconds": round(tenth, 4),
        "last_cpu_seconds": round(last, 4),
        "growth": round(last / tenth, 3),
        "is_warm": True,
        "land_cpu_seconds": landed["cpu"],
        "peak_mb": memory.peak_mb,
        "rounds": 1,
        "execution": execution,
        "landings": "hourly",
        "source": "auto",
        "bars": {f"run {at + 1}": cost for at, cost in _sampled(costs)},
        "notes": [
            f"A run costs {tenth:.3f} CPU-seconds from the tenth run on, and {last:.3f} at the end: {last / tenth:.2f} times.",
            f"`gc` after each day costs {statistics.median(days[-7:] or [0]):.2f} CPU-seconds at the end.",
        ],
    }


def _end_day(project: OpenProject, ends: list[int]) -> float:
    """Collect garbage and let the Delta logs age by a day; return the CPU-seconds of the collection."""
    for log in Path(project.warehouse).glob("**/_delta_log"):
        for file in os.scandir(log):
            at = file.stat().st_mtime - DAY_S
            os.utime(file, (at, at))
    meter = Meter()
    kept_since = ends[max(0, len(ends) - KEPT_DAYS * DAY)]
    JobMaintenance(project, JOB).collect(ends[-1] - kept_since + 1)
    return meter.read()["cpu"]


def _sampled(costs: list[float]) -> list[tuple[int, float]]:
    """Return a dozen places of the year, each with the mean of the runs from there."""
    step = max(1, (len(costs) - SPAN) // 11)
    return [(at, round(statistics.fmean(costs[at : at + SPAN]), 4)) for at in range(WARM, len(costs) - SPAN + 1, step)]
