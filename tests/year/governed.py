"""The governed part of the year, scaled down: some landings and runs through Spark Connect, with slopes to extrapolate."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rewindow.app.describe_job import show_job
from rewindow.control.plan.spec import RunRequest
from tests.bench.governed import FEED, JOB, add_rows, cost_of, governed_project, project_of

FIGURES = "governed.jsonl"
RUNS, RECORDS = 30, 50
OUTPUT = "spark_catalog.bench.totals"


def play(folder: Path, runs: int = RUNS, say: Callable[[str], None] = lambda _line: None) -> list[dict[str, Any]]:
    """Make the landings and runs, and return the costs of each. They are kept in the folder as a whole, or not at all.

    Raises `AssertionError` if the output is not that of all records.
    """
    lines = []
    with tempfile.TemporaryDirectory(prefix="rewindow-year-") as own, governed_project(Path(own)) as (root, ui):
        for number in range(1, runs + 1):
            add_rows(root, number, RECORDS)
            line: dict[str, Any] = {"runs": number}
            for name, command in _commands(root).items():
                cpu = time.process_time()
                cost = cost_of(ui, command)
                line[name] = {
                    "jobs": len(cost.jobs),
                    "seconds": cost.seconds,
                    "cpu": round(time.process_time() - cpu, 3),
                }
            lines.append(line)
            say(f"governed run {number}: {line}")
        found = project_of(root).spark.table(OUTPUT).count()
        assert found == RECORDS * runs, f"{OUTPUT} has {found} rows, not {RECORDS * runs}"
    (folder / FIGURES).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lines


def _commands(root: Path) -> dict[str, Callable[[], object]]:
    return {
        "land": lambda: project_of(root).land(FEED),
        "plan": lambda: project_of(root).plan(JOB, RunRequest()),
        "run": lambda: project_of(root).run(JOB, RunRequest()),
        "show": lambda: show_job(project_of(root), JOB),
    }


def read(folder: Path) -> list[dict[str, Any]]:
    """Return the costs that were kept, if there are any."""
    file = folder / FIGURES
    return [json.loads(text) for text in file.read_text().splitlines()] if file.exists() else []
