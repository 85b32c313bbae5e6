"""`incremental`: a day in 24 hourly runs compared with one run, and a small run on a large and on a small store.

The first is the job of `finals`, in one warm session. The second counts by key, with and without windows: 10,000 new
records on 2,000,000 and on 20,000 stored keys (fewer if ``--rows`` is less).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from rewindow.tables.delta.table_rows import read_rows
from tests.bench.day import FEED, HOURS, JOB, exact, is_exact, write_project, write_source
from tests.bench.meter import Meter, PeakMemory
from tests.bench.stored import UNWINDOWED, WINDOWED, StoredCounts, median_of

NEW_ROWS, STORED_MOST, STORED_SHARE = 10_000, 2_000_000, 100


def measure(rows: int, *, rounds: int, execution: str = "auto", **_: object) -> dict[str, Any]:
    """Measure both and return the figures."""
    with PeakMemory() as memory:
        figures, stored = _day(rows, rounds, execution), _stored(min(rows, STORED_MOST), rounds)
    ratios = {
        f"stored_ratio_{kind}": round(stored[f"{kind}, many"]["cpu"] / stored[f"{kind}, few"]["cpu"], 3)
        for kind in (UNWINDOWED, WINDOWED)
    }
    return {
        **figures,
        **ratios,
        "exact": figures["exact"] and all(one.pop("exact") for one in stored.values()),
        "stored": stored,
        "peak_mb": memory.peak_mb,
        "bars": {name: one["cpu"] for name, one in stored.items()},
        "notes": [
            f"A run of {NEW_ROWS:,} records on {one['keys']:,.0f} stored keys, {name.split(',')[0]} count: "
            f"{one['cpu']:.2f} CPU-seconds, {one['seconds']:.2f} seconds."
            for name, one in stored.items()
        ]
        + [
            f"Many keys cost {ratios[f'stored_ratio_{kind}']:.2f} times as much as few ({kind}; the goal is 1.5)."
            for kind in (UNWINDOWED, WINDOWED)
        ],
    }


def _day(rows: int, rounds: int, execution: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder:
        root = Path(folder)
        write_project(root, execution=execution, landings="hourly", source="auto", advance=60)
        write_source(root / "raw", rows)
        project = OpenProject.open(root)
        meter = Meter()
        project.land(FEED)
        landed = meter.read()
        landings = len(project.tables.feed(FEED).landings)
        project.run(JOB, RunRequest(branch="warm"))
        hourly, once = [], []
        for number in range(rounds):
            meter = Meter()
            for landing in range(1, landings + 1):
                project.run(JOB, RunRequest(branch=f"hourly{number}", through_landing=landing))
            hourly.append(meter.read())
            meter = Meter()
            project.run(JOB, RunRequest(branch=f"once{number}"))
            once.append(meter.read())
        log = read_rows(
            f"{project.warehouse}/logs/{FEED}/events", columns=["partition", "offset", "timestamp", "user", "amount"]
        )
        expected, late = exact(log, 60)
        found = read_rows(f"{project.warehouse}/bench/results__hourly{rounds - 1}")
        project.spark.stop()
    cpu, yardstick = median_of(hourly, "cpu"), median_of(once, "cpu")
    return {
        "rows": rows,
        "late": late,
        "late_share": round(late / rows, 4),
        "results": found.num_rows,
        "exact": is_exact(found, expected),
        "runs": min(landings, HOURS),
        "seconds": median_of(hourly, "seconds"),
        "cpu_seconds": cpu,
        "yardstick": "all in one run",
        "yardstick_seconds": median_of(once, "seconds"),
        "yardstick_cpu_seconds": yardstick,
        "ratio": round(cpu / yardstick, 3),
        "is_warm": True,
        "land_cpu_seconds": landed["cpu"],
        "rounds": rounds,
        "execution": execution,
        "landings": "hourly",
        "source": "auto",
    }


def _stored(most: int, rounds: int) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for kind in (UNWINDOWED, WINDOWED):
        for name, keys in (("few", most // STORED_SHARE), ("many", most)):
            with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder:
                counts = StoredCounts(Path(folder), keys, kind)
                costs = []
                for _ in range(rounds + 2):
                    counts.land_some(NEW_ROWS)
                    costs.append(counts.run())
                cpu, seconds = median_of(costs[2:], "cpu"), median_of(costs[2:], "seconds")
                right = kind == WINDOWED or counts.is_exact()
                found[f"{kind}, {name}"] = {"keys": keys, "cpu": cpu, "seconds": seconds, "exact": right}
    return found
