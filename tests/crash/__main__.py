"""Run the suites of the fault matrix: ``python -m tests.crash``. The exit code is 1 if anything was lost or doubled."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from tests.crash import finished, report
from tests.crash.settings import BAD, Figures, Settings
from tests.crash.suites import SUITES


def main(arguments: list[str] | None = None) -> int:
    """Run the suites and return the exit code."""
    asked = _parser().parse_args(arguments)
    settings = Settings(
        point=None if asked.points == "all" else asked.points,
        seeds=asked.seeds,
        at_once=asked.at_once,
        quick=asked.quick,
        kills=asked.kills,
        results=asked.results,
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )
    if asked.report:
        report.write(SUITES, asked.page)
        for line in report.unfinished(settings.results, SUITES, asked.page):
            settings.say(line)
        return 0
    found: list[Figures] = []
    kept = asked.page.with_name(finished.KEPT.name)
    done = {name for name, one in finished.load(kept).items() if one.is_current} if asked.unfinished else set()
    for name in (name for name in asked.suites.split(",") if name not in done):
        begun = time.monotonic()
        figures = SUITES[name](settings)
        figures.seconds = round(time.monotonic() - begun, 1)
        settings.say(_line(figures))
        found.append(figures)
        if not asked.quick and settings.point is None:
            finished.keep(figures, kept)
            report.write(SUITES, asked.page)
    print(json.dumps(summary(found), indent=None if asked.json else 1))
    return 0 if all(figures.is_green for figures in found) else 1


def summary(found: list[Figures]) -> dict[str, object]:
    """Return the totals of the suites."""
    whole: dict[str, object] = {word: sum(getattr(one, word) for one in found) for word in ("cases", *BAD)}
    whole["mutants"] = next((one.more["mutants"] for one in found if "mutants" in one.more), {"killed": 0, "of": 0})
    whole["contested"] = sum(one.more.get("contested", 0) for one in found)
    whole["suites"] = {one.suite: {**asdict(one), "failures": one.failures[:20]} for one in found}
    return whole


def _line(figures: Figures) -> str:
    words = ", ".join(f"{getattr(figures, word)} {word.replace('_', ' ')}" for word in BAD)
    return f"{figures.suite}: {figures.cases} cases, {words} ({figures.seconds} s) {figures.more or ''}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--points", default="all", help="all, operations (land,land-more), or a part of a site's name")
    parser.add_argument("--seeds", type=int, default=20, help="seeds for each site")
    parser.add_argument("--suites", default=",".join(SUITES), help="a selection of %(default)s")
    parser.add_argument("--unfinished", action="store_true", help="only suites that did not end for the current code")
    parser.add_argument("--at-once", type=int, default=2, help="cases to run in parallel")
    parser.add_argument("--quick", action="store_true", help="a sample of a few seconds")
    parser.add_argument("--kills", type=int, help="how many kills the suite random-kills makes")
    parser.add_argument("--results", type=Path, help="the folder of stored outcomes (default: .cache/crash)")
    parser.add_argument(
        "--report",
        action="store_true",
        help="only write the page, and name the suites that did not end for the current code",
    )
    parser.add_argument("--page", type=Path, default=report.PAGE, help="where the page is written")
    parser.add_argument("--json", action="store_true", help="print one line")
    return parser


if __name__ == "__main__":
    sys.exit(main())
