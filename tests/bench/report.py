"""`python -m tests.bench.report`: CPU-seconds and size of the report of 1, 24 and 8,760 runs.

The long histories repeat a run (`tests.report.synthetic`). Each report is a process of its own, as on a command line. The
figures are written to the results page.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.bad_input.scene import FEED, JOB, SCORE, TARGET, Bench, goes_on, hour, without_spark
from tests.bench.results import REPORT, machine
from tests.bench.sections import write_section
from tests.report.synthetic import prolong

COMMAND = "python -m tests.bench.report"
RUNS = (1, 24, 8_760)
JOURNALS = 410
"""The last runs have reports of their tasks, of which `rewindow report` reads 400."""
MOST_SECONDS, MOST_BYTES = 5, 2_000_000


class Figures(NamedTuple):
    """What one report cost."""

    runs: int
    cpu_seconds: float
    bytes: int


def main() -> None:
    """Measure and write the section."""
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder:
        found = [measure(make(Path(folder) / str(runs), runs), runs) for runs in RUNS]
    start = _start()
    for one in found:
        print(one)
    write_section(REPORT, "report", COMMAND, as_text(found, start))


def make(root: Path, runs: int) -> Path:
    """Make a project with so many runs; return its folder."""
    bench = Bench(root)
    bench.write("conf/feeds/activity.yaml", FEED)
    bench.write("conf/jobs/counts.yaml", JOB)
    bench.write("conf/targets/local.yaml", TARGET)
    bench.code(SCORE)
    with without_spark():
        for number in range(min(runs, 2)):
            bench.rows(f"h{number}", hour(number))
            goes_on(bench)
    if runs > 2:
        prolong(bench.warehouse, "activity", "counts", runs, journals=JOURNALS)
    return root


def measure(root: Path, runs: int) -> Figures:
    """Write the report in a new process."""
    out = root / "report.html"
    cpu = _cost("-m", "rewindow", "report", "counts", "--project", str(root), "--out", str(out))
    return Figures(runs, cpu, out.stat().st_size)


def as_text(found: list[Figures], start: float) -> str:
    """Return the section."""
    known = machine()
    rows = "\n".join(f"| {one.runs:,} | {one.cpu_seconds:.1f} | {one.bytes:,} |" for one in found)
    return f"""### `report`: the report of 1, 24 and 8,760 runs

{known["date"]}, {known["machine"]}, {known["versions"]}.
Goal: under {MOST_SECONDS} s and {MOST_BYTES:,} bytes. Each is a process of its own; starting Python and loading rewindow is
part of it ({start:.1f} CPU-seconds).

| runs | CPU-seconds | bytes |
| --- | --- | --- |
{rows}
"""


def _start() -> float:
    return _cost("-c", "import rewindow.app.cli.entry")


def _cost(*words: str) -> float:
    """Return the CPU-seconds of a Python process."""
    before = os.times()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    main()
