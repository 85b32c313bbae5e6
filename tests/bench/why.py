"""`python -m tests.bench.why --rows N [--root FOLDER]`: how long `rewindow why` takes on a large feed.

The feed is a day of records in hourly landings. One key has a tenth of them, one key has three, and 20,000 keys share the
rest. Each question is a process of its own, as on a command line. The figures are written to the guide on `why`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.day import FEED, HOURS, JOB, write_project
from tests.bench.results import machine
from tests.bench.sections import write_section
from tests.bench.workload import HOUR_MS, KEYS, MINUTE_MS, START_MS

HOT, FEW = "hot", "few"
SHARE_OF_HOT = 0.1
FEW_AT = (10, 11, 23)
"""The hours in which the key with few records has one each."""
PAGE = Path(__file__).resolve().parents[2] / "docs/guides/why.md"
COMMAND = "python -m tests.bench.why"
LAST_HOUR = "2026-01-01T23:00:00Z"
QUESTIONS = {
    "a key with three records in all": (FEW,),
    "a key with about 100 records in the window": ("user-00042",),
    "the hot key: a tenth of all records": (HOT,),
    "`--missing`, a window that is open": (FEW, "--window", LAST_HOUR, "--missing"),
    "`--missing`, a key that was never landed": ("nobody", "--missing"),
}
LEAST_ROWS = 10_000_000
"""Smaller measurements are only printed."""


class Cost(NamedTuple):
    """What a process cost."""

    cpu_seconds: float
    seconds: float


def write_source(folder: Path, rows: int, seed: int = 1) -> None:
    """Write a day of records in order of arrival, a file for each hour."""
    rng = np.random.default_rng(seed)
    names = pa.array([HOT, FEW, *(f"user-{number:05d}" for number in range(KEYS))])
    kind = pa.timestamp("ms", "UTC")
    folder.mkdir(parents=True)
    for hour in range(HOURS):
        count, start = rows // HOURS, START_MS + hour * HOUR_MS
        arrival = np.sort(rng.integers(start, start + HOUR_MS, count))
        mean_ms = np.where(rng.random(count) < 1 / 20, 30 * MINUTE_MS, MINUTE_MS)
        happened = arrival - rng.exponential(mean_ms).astype(np.int64)
        keys = np.where(rng.random(count) < SHARE_OF_HOT, 0, rng.integers(2, KEYS + 2, count))
        if hour in FEW_AT:
            keys[count // 2], happened[count // 2] = 1, arrival[count // 2]
        table = pa.table(
            {
                "user": names.take(pa.array(keys)),
                "amount": np.round(rng.lognormal(3, 1, count), 2),
                "happened_at": pa.array(happened).cast(kind),
                "arrived_at": pa.array(arrival).cast(kind),
            }
        )
        pq.write_table(table, folder / f"hour-{hour:02d}.parquet")


def make(root: Path, rows: int) -> None:
    """Write, land and run the feed, unless the folder has it."""
    if (root / "made").exists():
        return
    write_project(root, execution="auto", landings="hourly", source="auto", advance=60)
    write_source(root / "raw", rows)
    for words in (("land", FEED), ("run", JOB)):
        _run(root, *words)
    (root / "made").write_text(str(rows))


def main() -> None:
    """Measure, print, and write the section."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--root", type=Path, help="a folder that keeps the feed for the next measurement")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder:
        root = options.root or Path(folder)
        make(root, options.rows)
        start = _cost([sys.executable, "-c", "import rewindow.app.cli.entry"])
        found = {}
        for question, words in QUESTIONS.items():
            found[question] = _run(root, "why", "bench.results", *words)
            print(question, found[question], flush=True)
    if options.rows >= LEAST_ROWS:
        write_section(PAGE, "figures", COMMAND, as_text(options.rows, found, start))


def as_text(rows: int, found: dict[str, Cost], start: Cost) -> str:
    """Return the section."""
    known = machine()
    lines = "\n".join(f"| {question} | {one.cpu_seconds:.1f} |" for question, one in found.items())
    return f"""A windowed count of {rows:,} records in {HOURS} landings, {known["date"]}, {known["machine"]},
{known["versions"]}.
Each question is a process of its own; starting Python and loading rewindow is part of it ({start.cpu_seconds:.1f} CPU-seconds).

| question | CPU-seconds |
| --- | --- |
{lines}
"""


def _run(root: Path, *words: str) -> Cost:
    return _cost([sys.executable, "-m", "rewindow", *words, "--project", str(root)])


def _cost(command: list[str]) -> Cost:
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(round(cpu, 2), round(time.perf_counter() - began, 2))


if __name__ == "__main__":
    main()
