"""The year, hour by hour: a landing and a run, and what else happens. Every hour leaves a line of figures.

An interrupted year goes on in the hour that has no line. Its commands are called again, as a scheduler would.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.year import disturbed
from tests.year.calls import Called, cold, here, resident_mb
from tests.year.events import GC, LAND, RUN, WEEK, Hour, Year
from tests.year.project import FEED, JOB, rewrite_code, write_hour, write_project
from tests.year.stored import age_logs, forget_deleted, stored

FIGURES, SETTINGS = "figures.jsonl", "year.json"
KEPT_DAYS = 30
BRANCH = "trial"
WORDS = {LAND: ("land", FEED), RUN: ("run", JOB), "plan": ("plan", JOB), "show": ("show", JOB)}
Line = dict[str, Any]


@dataclass(slots=True)
class Simulation:
    """A year in a folder. ``say`` gets a line for each day."""

    root: Path
    year: Year
    say: Callable[[str], None] = lambda _line: None
    lines: list[Line] = field(default_factory=list)

    def play(self) -> list[Line]:
        """Play the hours that are left, and return the lines of all.

        Raises `AssertionError` if a command ends as none should, or if the folder has another year.
        """
        write_project(self.root)
        settings = asdict(self.year)
        known = self.root / SETTINGS
        assert not known.exists() or json.loads(known.read_text()) == settings, (
            f"{known} has another year, {known.read_text()}: give --fresh, or another --folder"
        )
        known.write_text(json.dumps(settings))
        self.lines = read_lines(self.root)
        for hour in range(len(self.lines), self.year.hours):
            line = self._hour(hour, self.year.of(hour))
            with (self.root / FIGURES).open("a") as file:
                file.write(json.dumps(line) + "\n")
            self.lines.append(line)
            if "stored" in line:
                self.say(_of_day(hour // self.year.day, line))
        return self.lines

    def _hour(self, hour: int, events: Hour) -> Line:
        write_hour(self.root, hour)
        line: Line = {"hour": hour}
        rng = random.Random(f"moments {hour}")
        if events.is_old:
            line["old"] = self._by_released_code()
        for name in events.killed:
            line.setdefault("killed", []).append([name, self._killed(name, rng)])
        if events.is_doubled:
            line["doubled"] = {name: disturbed.call_twice(self.root, WORDS[name]) for name in (LAND, RUN)}
        call = cold if events.is_sample else here
        line["runs"] = (self.lines[-1]["runs"] if self.lines else 0) + 1
        costs = {LAND: call(self.root, *WORDS[LAND]).checked().costs}
        if events.is_sample:
            costs["plan"] = call(self.root, *WORDS["plan"]).checked().costs
        costs[RUN] = call(self.root, *WORDS[RUN]).checked().costs
        if events.is_sample:
            costs["show"] = call(self.root, *WORDS["show"]).checked().costs
        line["cold" if events.is_sample else "warm"] = costs
        for what in events.after:
            self._after(what, line, call, rng)
        return line

    def _after(self, what: str, line: Line, call: Callable[..., Called], rng: random.Random) -> None:
        if what == "upgrade":
            line["upgrade"] = disturbed.upgrade(self.root)
        elif what == "rewind":
            line["rewind"] = self._rewind(line)
        elif what == "branch":
            line["branch"] = self._promote_branch(line)
        elif what == "kill gc":
            line.setdefault("killed", []).append(
                [GC, disturbed.kill(self.root, self._gc_words(), self._files(GC, rng))]
            )
        else:
            costs = call(self.root, *self._gc_words()).checked().costs
            line["cold" if call is cold else "warm"][GC] = costs
            age_logs(self.root / "warehouse")
            forget_deleted(self.root / "warehouse")
            line["stored"] = stored(self.root / "warehouse")
            line["rss_mb"], line["ended_ms"] = resident_mb(), round(time.time() * 1000)

    def _gc_words(self) -> tuple[str, ...]:
        """Return `gc` with the retention of 30 of our days, which lasted that long on the clock."""
        ends = [line["ended_ms"] for line in self.lines if "ended_ms" in line]
        since = ends[-KEPT_DAYS] if len(ends) >= KEPT_DAYS else 0
        return ("gc", "--keep", f"{round(time.time() * 1000) - since}ms" if since else "30d")

    def _rewind(self, line: Line) -> dict[str, Any]:
        """Go back by a day's runs and make the day again, in one run."""
        runs = [run["run"] for run in here(self.root, "show", JOB).checked().data["runs"]]
        to = runs[-min(self.year.day, len(runs) - 1) - 1]
        rewound = here(self.root, "rewind", JOB, "--to", to).checked()
        again = here(self.root, *WORDS[RUN]).checked()
        line["runs"] += 1
        return {"to": to, "rewind": rewound.costs, "run": again.costs}

    def _promote_branch(self, line: Line) -> dict[str, Any]:
        """Rewrite the code, replay the last week on a branch, compare, and promote it."""
        rewrite_code(self.root)
        since = max(1, line["hour"] + 1 - WEEK * self.year.day)
        costs = {}
        for words in (
            ("backfill", JOB, "--from", str(since), "--branch", BRANCH),
            ("diff", JOB, "main", BRANCH),
            ("promote", JOB, BRANCH),
        ):
            costs[words[0]] = here(self.root, *words).checked().costs
        line["runs"] += 1
        return costs

    def _killed(self, name: str, rng: random.Random) -> str:
        if name == RUN:
            here(self.root, *WORDS[LAND]).checked()
        return disturbed.kill(self.root, WORDS[name], self._files(name, rng))

    def _files(self, name: str, rng: random.Random) -> int:
        """Return after how many files a command is killed: at most as many as it opened when it was counted last."""
        counted = [line["cold"][name]["files"] for line in self.lines if name in line.get("cold", {})]
        return rng.randint(1, counted[-1] if counted else 100)

    def _by_released_code(self) -> bool:
        lib = disturbed.released_code(self.root / "released")
        if lib:
            for name in (LAND, RUN):
                disturbed.by_released_code(self.root, lib, WORDS[name])
        return lib is not None


def read_lines(root: Path) -> list[Line]:
    """Return the figures of the hours that were played. A line that an interruption cut off is dropped from the file."""
    file = root / FIGURES
    if not file.exists():
        return []
    texts = file.read_text().splitlines(keepends=True)
    whole = [text for text in texts if text.endswith("\n")]
    if len(whole) < len(texts):
        file.write_text("".join(whole))
    return [json.loads(text) for text in whole]


def _of_day(day: int, line: Line) -> str:
    files, size = (sum(one[at] for one in line["stored"].values()) for at in (0, 1))
    costs = {name: one["seconds"] for name, one in (line.get("cold") or line.get("warm") or {}).items()}
    return f"day {day + 1}: run {line['runs']}, {costs}, {files:,} files, {size >> 20} MB, {line['rss_mb']} MB here"
