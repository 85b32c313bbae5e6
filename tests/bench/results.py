"""The results page, which the benchmarks generate."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.bench.plot import bars
from tests.bench.sections import write_section

REPORT = Path(__file__).with_name("RESULTS.md")
LEAST_ROWS = 1_000_000
"""Smaller measurements are only printed."""


SECTION = """\
### `{bench}`, {rows:,} records, {session}, execution {execution}, source {source}, landings {landings}

{date}, {machine}, {versions}. {results:,} results, answer {answer}; {late:,} late records dropped ({late_share:.2%}).
Median of {rounds} rounds, alternating.

| way | CPU-seconds | seconds |
| --- | --- | --- |
| rewindow | {cpu_seconds:.2f} | {seconds:.2f} |
| {yardstick} | {yardstick_cpu_seconds:.2f} | {yardstick_seconds:.2f} |

Ratio **{ratio:.2f}** of CPU-seconds. {landed}Peak memory of the whole process tree, JVM included: {peak_mb:,} MB.
{notes}
![{bench}]({plot})
"""
PLOTS = "plots"
"""The folder of the charts, next to the page."""


def machine() -> dict[str, str]:
    """Return the environment of figures: processors, versions, date."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    packages = " ".join(
        f"{name} {version(name)}" for name in ("pyspark", "delta-spark", "deltalake", "pyarrow", "numpy")
    )
    return {
        "machine": f"{len(models)} x {models[0]}" if models else platform.machine(),
        "versions": f"Python {platform.python_version()}, {packages}",
        "date": datetime.now(UTC).date().isoformat(),
    }


def as_text(figures: dict[str, Any]) -> str:
    """Return figures as a section of the page. Only benchmarks that land first have ``land_cpu_seconds``."""
    landed = figures.get("land_cpu_seconds")
    shown = {
        **figures,
        "session": "warm" if figures["is_warm"] else "cold",
        "answer": "exact" if figures["exact"] else "**WRONG**",
        "landed": f"Landing the records beforehand took {landed:.1f} CPU-seconds. " if landed is not None else "",
        "notes": "".join(f"\n* {note}" for note in figures.get("notes", ())) + ("\n" if figures.get("notes") else ""),
        "plot": f"{PLOTS}/{_name(figures)}.svg",
    }
    return SECTION.format(**shown)


def write(figures: dict[str, Any]) -> None:
    """Write figures to the page, replacing those of the same benchmark, size and settings."""
    name = _name(figures)
    write_section(REPORT, name, "python -m tests.bench", as_text(figures))
    picture = REPORT.parent / PLOTS / f"{name}.svg"
    picture.parent.mkdir(exist_ok=True)
    shown = {"rewindow": figures["cpu_seconds"], figures["yardstick"]: figures["yardstick_cpu_seconds"]}
    title = f"{figures['bench']}, {figures['rows']:,} records"
    picture.write_text(bars(title, figures.get("bars") or shown, figures.get("bars_unit", "CPU-seconds")))


def _name(figures: dict[str, Any]) -> str:
    name = "-".join(str(figures[part]) for part in ("bench", "rows", "execution", "landings"))
    name += "" if figures["source"] == "auto" else f"-{figures['source']}"
    return name if figures["is_warm"] else f"{name}-cold"
