"""A project that lands the same raw files again in each round: a feed and a job of its own for every round."""

from __future__ import annotations

import os
from pathlib import Path

from rewindow.app.open_project import OpenProject
from tests.bench.day import CONF, FEED, JOB, TOPOLOGY
from tests.bench.workload import PARTITIONS

IN_PROCESS, ON_SPARK = 10**9, 0
"""The settings of `inline` with which this process lands everything, or Spark's workers do."""


def open_rounds(root: Path, raw: Path, rounds: int, *, landings: str, inline: int | None) -> OpenProject:
    """Return a new project over the files of ``raw``, which are linked and not copied."""
    (root / "raw").mkdir(parents=True)
    for file in raw.iterdir():
        os.link(file, root / "raw" / file.name)
    landing = "landing: {every: 1h}" if landings == "hourly" else ""
    settings = {"partitions": PARTITIONS, "execution": "auto", "source": "auto", "landing": landing}
    for name, text in CONF.items():
        for number in range(rounds):
            own = text.format(**settings)
            if not name.startswith("targets/"):
                own = own.replace(f"feed: {FEED}", f"feed: {FEED}{number}").replace(
                    f"job: {JOB}", f"job: {JOB}{number}"
                )
                own = own.replace("bench.results", f"bench.results{number}")
            file = root / "conf" / name.replace(f"{FEED}.yaml", f"{FEED}{number}.yaml")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(own + (f"inline: {inline}\n" if name.startswith("targets/") and inline is not None else ""))
    windows = 'TimeWindows.of("1h", grace="10m").advance_by("60m")'
    (root / "bench_job.py").write_text(TOPOLOGY.format(windows=windows))
    return OpenProject.open(root)


def log_of(project: OpenProject, number: int) -> str:
    """Return the path of the log that a round landed."""
    return str(Path(project.warehouse) / "logs" / f"{FEED}{number}" / "events")
