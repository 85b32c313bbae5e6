"""Play a year in fast motion, or odd sizes: ``python -m tests.year [play|compare|report|governed|sizes]``.

The exit code is 1 if something grows that should not, if the end of the year differs from one run over everything, or if an odd
size neither works nor ends with 71 and a clear message.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.year import governed, law, page
from tests.year.events import DAY, OLD_HOURS, Year
from tests.year.judge import Judged, judged
from tests.year.odd_cases import CASES, call
from tests.year.series import series_of
from tests.year.simulation import SETTINGS, Simulation, read_lines

PARTS = ("play", "compare", "report", "governed", "sizes")
"""``compare``: compare a year that is not over with one run; ``report``: only write the page."""
LAW = "law.json"
FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "year"


def main(arguments: list[str] | None = None) -> int:
    """Do what was asked and return the exit code."""
    asked = _parser().parse_args(arguments)
    asked.folder.mkdir(parents=True, exist_ok=True)
    if asked.what == "sizes":
        return _sizes(asked)
    if asked.what == "governed":
        page.write_governed(governed.play(asked.folder, say=_say))
        return 0
    if asked.fresh:
        shutil.rmtree(asked.folder)
        asked.folder.mkdir()
    if asked.what == "play":
        Simulation(asked.folder, Year(asked.hours, asked.day, upgraded=asked.upgraded), _say).play()
    if asked.what in {"play", "compare"}:
        (asked.folder / LAW).write_text(json.dumps(law.compare(asked.folder)))
    return _report(asked)


def _report(asked: argparse.Namespace) -> int:
    year = Year(**json.loads((asked.folder / SETTINGS).read_text()))
    lines, kept = read_lines(asked.folder), asked.folder / LAW
    found = json.loads(kept.read_text()) if kept.exists() else None
    if year.is_upgraded_late:
        page.write_halfway(year, lines, found)
        return 1 if not found or found["different"] else 0
    series = judged(series_of(lines, year.day), [line["runs"] for line in lines if "stored" in line])
    if not asked.json:
        page.write_year(year, lines, found, series)
    grows = [one for one in series if one.grows]
    print(json.dumps(_summary(year, lines[-1]["runs"], found, series), indent=None if asked.json else 1))
    for one in grows:
        _say(f"{one.series.chart}: {one.series.name} grows from {one.fit.level:.3g} to {one.at_year:.3g} in a year")
    return 1 if grows or not found or found["different"] else 0


def _summary(year: Year, runs: int, found: dict[str, Any] | None, series: list[Judged]) -> dict[str, Any]:
    return {
        "hours": year.hours,
        "runs": runs,
        "law": found,
        "grows": [f"{one.series.chart}: {one.series.name}" for one in series if one.grows],
        "series": {
            f"{one.series.chart}: {one.series.name}": asdict(one.fit) | {"at_year": one.at_year} for one in series
        },
    }


def _sizes(asked: argparse.Namespace) -> int:
    unknown = [name for name in asked.names if name not in CASES]
    if unknown:
        _say(f"there is no case {unknown[0]!r}: choose from {', '.join(CASES)}")
        return 2
    found = {}
    for name in asked.names or CASES:
        _say(name)
        found[name] = asdict(call(CASES[name], asked.size))
        if not asked.json and asked.size is None:
            page.write_size(name, found[name])
    print(json.dumps(found, indent=None if asked.json else 1))
    return 0 if all(one["is_clear"] for one in found.values()) else 1


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.year", description=__doc__)
    parser.add_argument("what", nargs="?", default="play", choices=PARTS, help="default: play")
    parser.add_argument("names", nargs="*", help=f"of sizes: {', '.join(CASES)}; default: all")
    parser.add_argument("--hours", type=int, default=8_760, help="the length of the year")
    parser.add_argument("--day", type=int, default=DAY, help="hours of a day")
    parser.add_argument(
        "--upgraded", type=int, default=OLD_HOURS, help="hours that an earlier version makes, before the upgrade"
    )
    parser.add_argument("--size", type=int, help="of sizes: another size, whose figures are only printed")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the year is kept (default: .cache/year)")
    parser.add_argument("--fresh", action="store_true", help="start over instead of going on")
    parser.add_argument("--json", action="store_true", help="print one line and write no page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
