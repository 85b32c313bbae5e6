"""`governed`: the Spark jobs and seconds of a small landing and of a small run, over Spark Connect.

All tables are governed by a catalog. Each command opens the project anew, as a process of its own would, so nothing that an
earlier command read is in its memory. The server counts the jobs. A job counts keys, so that runs have state to restore.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock
from urllib.request import urlopen

from rewindow.app.open_project import OpenProject
from rewindow.app.overview import overview
from rewindow.control.plan.spec import RunRequest
from tests.bench import results
from tests.bench.meter import PeakMemory
from tests.bench.sections import write_section
from tests.daemons import connect_server, free_port, python_without_rewindow
from tests.ingest.local_engine import HOUR, T0, write_rows

FEED, JOB = "activity", "counts"
FILES: Mapping[str, str] = {
    f"conf/feeds/{FEED}.yaml": """\
feed: activity
partitions: 2
logs:
  events: {source: {path: raw, format: parquet}, key: user, timestamp: t}
landing: {max_ahead: none}
""",
    f"conf/jobs/{JOB}.yaml": """\
job: counts
topology: bench_governed:build_topology
feed: activity
outputs:
  totals: {table: spark_catalog.bench.totals}
""",
    "conf/targets/rows.yaml": """\
target: rows
warehouse: heartbeats
connect: platform
cores: 2
source: shuffle
commit: spark
staging: rows
catalog: spark_catalog.rewindow
""",
    "bench_governed.py": '''\
"""Count by key and send every update."""

from rewindow import StreamsBuilder, Topology


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("events").group_by_key().count(store="counts").to_stream().to("totals")
    return builder.build()
''',
}
RUNS = (2, 10, 30)
"""The numbers of the runs whose costs are stated: the cost may not grow."""
KEYS = 100


class Cost(NamedTuple):
    """The Spark jobs of a command, by what submitted them, and its seconds."""

    jobs: tuple[str, ...]
    seconds: float


def measure(rows: int, *, runs: Sequence[int] = RUNS, **_: object) -> dict[str, Any]:
    """Measure and return the figures: of the second landing and run, and of those around each of ``runs``."""
    landed, ran = [], []
    with (
        tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder,
        PeakMemory() as memory,
        governed_project(Path(folder)) as (root, ui),
    ):
        for number in range(1, runs[-1] + 2):
            add_rows(root, number, rows)
            landed.append(cost_of(ui, lambda: project_of(root).land(FEED)))
            ran.append(cost_of(ui, lambda: project_of(root).run(JOB, RunRequest())))
            costs = (f"{len(one.jobs)} jobs {one.seconds} s" for one in (landed[-1], ran[-1]))
            print(number, *costs, file=sys.stderr)
        checked = cost_of(ui, lambda: overview(project_of(root)))
        is_right = project_of(root).spark.table("spark_catalog.bench.totals").count() == rows * (runs[-1] + 1)
    small = runs[0] - 1
    return {
        "rows": rows,
        "exact": is_right,
        "run_jobs": len(ran[small].jobs),
        "land_jobs": len(landed[small].jobs),
        "status_jobs": len(checked.jobs),
        "run_seconds": ran[small].seconds,
        "land_seconds": landed[small].seconds,
        "slope": {
            number: {
                "run_jobs": _around([len(one.jobs) for one in ran], number),
                "land_jobs": _around([len(one.jobs) for one in landed], number),
                "run_seconds": _around([one.seconds for one in ran], number),
                "land_seconds": _around([one.seconds for one in landed], number),
            }
            for number in runs
        },
        "jobs_of_run": ran[small].jobs,
        "jobs_of_landing": landed[small].jobs,
        "jobs_of_status": checked.jobs,
        "peak_mb": memory.peak_mb,
    }


BEFORE = {"land_jobs": 44, "run_jobs": "96 to 104", "land_seconds": "9 to 17", "run_seconds": "25 to 39"}
"""The figures of the commit before this benchmark, for landings and runs 2 to 4 on the same busy machine."""
SECTION = """\
### `governed`: a small landing and a small run of tables that a catalog governs

{date}, {machine}, {versions}. {rows:,} records per landing, {keys} keys, over Spark Connect, each command with a newly opened
project (without the start of Python and of the connection). The answer is {answer}. Spark jobs include Delta's own.

| | landing: jobs | seconds | run: jobs | seconds |
| --- | --- | --- | --- | --- |
| before (landings and runs 2 to 4) | {before[land_jobs]} | {before[land_seconds]} | {before[run_jobs]} | {before[run_seconds]} |
{slope}

Before, on a cluster, as reported: 45 jobs and 312 s for a landing, 72 jobs and 228 s for a run. Every tenth commit to a log or an
output, and every fiftieth to rewindow's own table, Delta writes a checkpoint: two or three jobs more. Each figure is the median
of the command and its neighbours, on a machine that did other work too.
"""


def write(figures: Mapping[str, Any]) -> None:
    """Write the section of the results page."""
    lines = (
        f"| landing and run {number} | {one['land_jobs']} | {one['land_seconds']} | {one['run_jobs']} | {one['run_seconds']} |"
        for number, one in figures["slope"].items()
    )
    answer = "exact" if figures["exact"] else "**WRONG**"
    text = SECTION.format(**{**figures, "slope": "\n".join(lines)}, answer=answer, keys=KEYS, before=BEFORE)
    write_section(results.REPORT, "governed", "python -m tests.bench", text)
    print(text)


@contextmanager
def governed_project(folder: Path) -> Iterator[tuple[Path, str]]:
    """Start a Connect server; yield a project whose target uses it, and the address of the server's user interface."""
    root, port = folder / "project", free_port()
    for name, text in FILES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with (
        connect_server(folder / "server", python_without_rewindow(folder / "python"), ui=port) as url,
        mock.patch.dict(os.environ, {"SPARK_REMOTE": url}),
    ):
        project = project_of(root)
        try:
            yield root, f"http://127.0.0.1:{port}/api/v1/applications"
        finally:
            project.spark.stop()


def project_of(root: Path) -> OpenProject:
    """Open the project as a new command does, and connect."""
    project = OpenProject.open(root, "rows")
    _ = project.spark
    return project


def add_rows(root: Path, number: int, rows: int) -> None:
    """Write the source file of an hour."""
    start = T0 + number * HOUR
    made = [{"user": f"u{n % KEYS}", "t": start + n, "got": start + n, "x": n} for n in range(rows)]
    write_rows(root, f"h{number:03d}", made)


def cost_of(ui: str, command: Callable[[], object]) -> Cost:
    """Make a call; return what it cost."""
    before = len(_jobs(ui))
    begun = time.perf_counter()
    command()
    seconds = round(time.perf_counter() - begun, 2)
    found = sorted(_jobs(ui), key=lambda job: job["jobId"])[before:]
    return Cost(tuple(_described(job) for job in found), seconds)


def _jobs(ui: str) -> list[dict[str, Any]]:
    (application,) = _asked(ui)
    return _asked(f"{ui}/{application['id']}/jobs")


def _asked(url: str) -> list[dict[str, Any]]:
    with urlopen(url) as answer:  # noqa: S310 - our own server
        return list(json.load(answer))


def _described(job: Mapping[str, Any]) -> str:
    said = str(job.get("description") or "").replace("\n", " ")
    return f"{job['name']}: {said}"[:160]


def _around(costs: Sequence[float], number: int) -> float:
    """Return the median cost of a command and its neighbours: now and then Delta writes a checkpoint."""
    some = sorted(costs[max(0, number - 2) : number + 1])
    return some[len(some) // 2]
