"""`billion`: generate, land, replay hourly finals, check; each stage is a process, and goes on where it was stopped.

The yardstick is what polars takes from the raw files to the exact answer, with nothing stored in between.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.bench.billion.progress import Cost, Progress
from tests.bench.billion.records import Size
from tests.bench.billion.stages import CHECK, GENERATE, LAND, REPLAY, STAGES

ROWS = 1_000_000_000
ROOT = Path(__file__).resolve().parents[3]
GOALS = {LAND: 600, REPLAY: 120}
"""CPU-seconds for a billion records."""
MOST_MB = 2_048
MOST_BYTES = 40 * 10**9


def measure(rows: int, *, folder: Path | None = None, inline: int | None = None, **_: object) -> dict[str, Any]:
    """Do what is not done yet; return the figures. The folder is deleted once the answer is known.

    ``inline``: as in a target, the largest sub-topology (and a tenth of the largest landing) without Spark.
    """
    size = Size(rows)
    here = (folder or ROOT / "build") / f"billion-{rows}"
    here.mkdir(parents=True, exist_ok=True)
    for stage in STAGES:
        command = [sys.executable, "-m", "tests.bench.billion.stages", str(here), str(rows), stage]
        subprocess.run([*command, "" if inline is None else str(inline)], check=True, cwd=ROOT)
    progress = Progress(here)
    sizes = {part: _bytes(here / part) for part in ("raw", "project/warehouse/logs", "project/warehouse")}
    figures = _figures(size, progress, sizes)
    shutil.rmtree(here)
    return figures


def _figures(size: Size, progress: Progress, sizes: dict[str, int]) -> dict[str, Any]:
    costs = {stage: progress.cost(stage) for stage in STAGES}
    land, replay, polars = costs[LAND], costs[REPLAY], costs[CHECK]
    checked = progress.found(CHECK)
    late = sum(day["late"] for day in checked)
    cpu = round(land.cpu + replay.cpu, 2)
    days = progress.found(REPLAY)
    return {
        "rows": size.rows,
        "late": late,
        "late_share": round(late / size.rows, 4),
        "results": sum(day["results"] for day in checked),
        "exact": all(day["exact"] for day in checked),
        "seconds": round(land.seconds + replay.seconds, 2),
        "cpu_seconds": cpu,
        "yardstick": "polars alone, from raw files to the exact answer",
        "yardstick_seconds": polars.seconds,
        "yardstick_cpu_seconds": polars.cpu,
        "ratio": round(cpu / polars.cpu, 3),
        "is_warm": True,
        "generate_cpu_seconds": costs[GENERATE].cpu,
        "landing_cpu_seconds": land.cpu,
        "replay_cpu_seconds": replay.cpu,
        "peak_mb": max(land.peak_mb, replay.peak_mb),
        "peak_worker_mb": max(land.peak_worker_mb, replay.peak_worker_mb),
        "disk_bytes": sizes["raw"] + sizes["project/warehouse"],
        "rounds": 1,
        "execution": "auto",
        "landings": "hourly",
        "source": "auto",
        "bars": {stage: cost.cpu for stage, cost in costs.items()},
        "notes": [
            *(_note(stage, costs[stage], size.rows) for stage in (LAND, REPLAY)),
            (
                f"{size.days} days, each landed by one call as 24 landings and replayed by one run. The first run took "
                f"{days[0]['cpu']:.1f} CPU-seconds, the last {days[-1]['cpu']:.1f}."
            ),
            f"Generating the records took {costs[GENERATE].cpu:.0f} CPU-seconds.",
            (
                f"Disk: raw files {sizes['raw'] / 1e9:.1f} GB, log {sizes['project/warehouse/logs'] / 1e9:.1f} GB, all "
                f"{(sizes['raw'] + sizes['project/warehouse']) / 1e9:.1f} GB (goal: {MOST_BYTES // 10**9})."
            ),
            f"Steps that were stopped and done again: {sum(cost.repeated for cost in costs.values())}.",
        ],
    }


def _note(stage: str, cost: Cost, rows: int) -> str:
    goal = GOALS[stage] * rows / ROWS
    return (
        f"{stage}: {cost.cpu:.1f} CPU-seconds (goal: {goal:g}), {cost.seconds:.0f} seconds, at most {cost.peak_mb:,} MB in "
        f"all processes (goal: {MOST_MB:,}), {cost.peak_worker_mb:,} MB in one worker."
    )


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
