"""Records per CPU-second of record execution, compared with a loop written by hand.

    python -m tests.bench.record_execution [--rows 2000000] [--rounds 3] [--json]

Two jobs (`jobs`) over one log (`workload`), three ways each (`measure`). Each measurement has its own process, and the ways of a
round alternate so that a slow hour of the machine affects all of them alike. The results of record execution are compared
with those of the loop. A run over 2,000,000 rows or more writes its figures into RECORD_EXECUTION.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.jobs import JOBS
from tests.bench.workload import EPOCHS, KEYS, PARTITIONS, make_log

ROOT = Path(__file__).resolve().parents[2]
REPORT = Path(__file__).with_name("RECORD_EXECUTION.md")
BEGIN, END = "<!-- figures: written by python -m tests.bench.record_execution -->", "<!-- end of figures -->"
ROWS = 2_000_000
WAYS = {
    "loop": "plain loop, results kept in memory",
    "loop-written": "plain loop, results written as Parquet",
    "local": "record execution, in one process",
    "spark": "record execution, on a warm local session",
}


def main() -> None:
    """Measure, and print the figures or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each way; the median counts")
    parser.add_argument("--ways", default="loop,local,spark,profile", help="which to measure; the loop comes first")
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--json", action="store_true", help="print one JSON object and write nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder:
        log = make_log(Path(folder) / "log", options.rows)
        (Path(folder) / "log.json").write_text(json.dumps(log))
        jobs = {
            job: _measured(job, options.ways.split(","), Path(folder), options.rows, options.rounds)
            for job in options.jobs.split(",")
        }
    figures = {"rows": options.rows, "rounds": options.rounds, **_machine(), "jobs": jobs}
    if options.json:
        print(json.dumps(figures))
        return
    text = "\n".join([_heading(figures), *(_section(job, measured) for job, measured in jobs.items())])
    print(text)
    if options.rows >= ROWS:
        before, rest = REPORT.read_text().split(BEGIN)
        REPORT.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{rest.split(END, 1)[1]}")


def _measured(job: str, ways: list[str], folder: Path, rows: int, rounds: int) -> dict[str, Any]:
    taken: dict[str, list[dict[str, Any]]] = {}
    for number in range(rounds):
        for way in ways:
            if way == "profile" and number:
                continue
            taken.setdefault(way, []).append(child(way, job, folder))
    if "loop" in taken:
        taken["loop-written"] = [measured["written"] for measured in taken["loop"]]
    profile = taken.pop("profile", [{}])[0]
    results = max(measured["results"] for measured in taken.get("loop", next(iter(taken.values()))))
    late = max((measured["late"] for some in taken.values() for measured in some if "late" in measured), default=0)
    found: dict[str, Any] = {}
    for way in [way for way in WAYS if way in taken]:
        cpu, seconds = (median(measured[what] for measured in taken[way]) for what in ("cpu", "seconds"))
        found[way] = {"cpu": cpu, "seconds": seconds, "records_per_cpu_second": round(rows / cpu)}
        found[way]["all_cpu"] = [measured["cpu"] for measured in taken[way]]
    for measured in found.values():
        for other in ("loop", "loop-written"):
            if other in found:
                measured[f"of_{other}"] = round(found[other]["cpu"] / measured["cpu"], 2)
    return {"results": results, "late": late, "ways": found, "profile": profile}


def child(way: str, job: str, folder: Path) -> dict[str, Any]:
    """Measure one way of running a job, in a new process (`measure`)."""
    command = [sys.executable, "-m", "tests.bench.measure", way, job, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"{way} of {job} failed:\n{done.stdout}{done.stderr}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _machine() -> dict[str, Any]:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        cpu = f"{len(models)} x {models[0]}" if models else cpu
    packages = " ".join(f"{name} {version(name)}" for name in ("pyspark", "pyarrow"))
    return {
        "machine": cpu,
        "versions": f"Python {platform.python_version()}, {packages}",
        "date": datetime.now(UTC).date().isoformat(),
    }


def _heading(figures: dict[str, Any]) -> str:
    return (
        f"{figures['date']}, {figures['machine']}, {figures['versions']}. {figures['rows']:,} records, "
        f"{KEYS:,} keys, {PARTITIONS} partitions, {EPOCHS} landings; median of {figures['rounds']} rounds.\n"
    )


def _section(job: str, measured: dict[str, Any]) -> str:
    lines = [
        f"### `{job}`: {measured['results']:,} results, {measured['late']:,} late records dropped",
        "",
        "| way | CPU-seconds | seconds | records per CPU-second | of the loop | of the loop that writes |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for way, found in measured["ways"].items():
        ratios = " | ".join(f"{found.get(f'of_{other}', 0):.2f}" for other in ("loop", "loop-written"))
        cost = f"{found['cpu']:.2f} | {found['seconds']:.2f} | {found['records_per_cpu_second']:,}"
        lines.append(f"| {WAYS[way]} | {cost} | {ratios} |")
    if measured["profile"]:
        shares = ", ".join(f"{part} {share:.0%}" for part, share in measured["profile"].items() if share >= 0.005)
        lines += ["", f"Where record execution spends its time (cProfile, which favours few long calls): {shares}."]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
