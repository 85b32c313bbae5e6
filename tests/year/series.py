"""The figures of the hours as named series of (number of runs, value), and what each may grow by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tests.year.simulation import KEPT_DAYS, Line

Points = list[tuple[float, float]]
COLD = ("land", "plan", "run", "show", "gc")
WARM = ("land", "run", "gc")
GROUPS: Mapping[str, Callable[[str], bool]] = {
    "Delta logs": lambda table: table.endswith(" log"),
    "log of the feed": lambda table: table.startswith("logs/"),
    "outputs": lambda table: table.startswith("year/"),
    "state": lambda table: table.startswith("state/"),
    "ledgers": lambda table: table in {"rewindow/landings", "rewindow/runs"},
    "journal": lambda table: table == "rewindow/journal",
    "metrics": lambda table: table == "rewindow/metrics",
    "other": lambda _table: True,
}
"""The groups of tables. The first that fits counts."""
STEADY_DAYS = KEPT_DAYS + 5
"""From this day on, what `gc` removes balances what runs add."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a series may grow by in a year: a share of its level, or so much for each run. Both None: it is only shown."""

    share: float | None = None
    each_run: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """A series of a chart."""

    chart: str
    name: str
    points: Points
    bound: Bound


TWICE = Bound(share=1.0)
"""What nothing explains may not even double in a year."""
STORED: Mapping[str, tuple[Bound, Bound]] = {
    "Delta logs": (TWICE, TWICE),
    "log of the feed": (Bound(each_run=1), Bound(why="the records")),
    "outputs": (Bound(each_run=2), Bound(why="the rows, two outputs")),
    "state": (TWICE, TWICE),
    "ledgers": (Bound(each_run=0.1), Bound(each_run=20_000, why="a landing and a run")),
    "journal": (TWICE, TWICE),
    "metrics": (Bound(each_run=0.1), Bound(why="rows of each run")),
    "other": (TWICE, TWICE),
}
"""The bounds of files and of bytes by group: ledgers, records and rows may grow, in files that are merged."""
SECONDS, CPU, REQUESTS = (
    "seconds of a command",
    "CPU-seconds of a command",
    "files opened and folders listed by a command",
)
HERE, MEMORY, FILES, BYTES = (
    "CPU-seconds in one process",
    "MB of the process that makes all runs",
    "files",
    "kilobytes",
)
_RUNS_OF: Callable[[Line], float] = lambda line: line["runs"]  # noqa: E731 - a short word for a long one


def series_of(lines: Sequence[Line], day: int) -> list[Series]:
    """Return every series of a year. What is stored is looked at when `gc` has begun to remove."""
    found = [*_cold(lines), *_warm(lines, day)]
    ends = [line for line in lines if "stored" in line]
    found.append(Series(MEMORY, "resident", [(_RUNS_OF(line), line["rss_mb"]) for line in ends], TWICE))
    for at, chart, scale in ((0, FILES, 1), (1, BYTES, 1_000)):
        for group, bounds in STORED.items():
            points = [(_RUNS_OF(line), _grouped(line["stored"])[group][at] / scale) for line in ends]
            bound = bounds[at]
            each = None if bound.each_run is None else bound.each_run / scale
            found.append(Series(chart, group, points, Bound(bound.share, each, bound.why)))
    return [one for one in found if any(value for _, value in one.points)]


def steady(series: Series, ends: Iterable[float]) -> Points:
    """Return the points of a series through which its line goes; ``ends``: the runs at the end of each day."""
    days = list(ends)
    if series.chart not in {FILES, BYTES, MEMORY} or len(days) <= STEADY_DAYS + 3:
        return series.points
    return [point for point in series.points if point[0] > days[STEADY_DAYS]]


def _cold(lines: Sequence[Line]) -> list[Series]:
    some = [line for line in lines if "cold" in line]
    found = []
    for chart, value in ((SECONDS, _seconds), (CPU, _cpu), (REQUESTS, _requests)):
        for name in COLD:
            points = [(_RUNS_OF(line), value(line["cold"][name])) for line in some if name in line["cold"]]
            found.append(
                Series(chart, name, points, Bound(why="depends on the machine") if chart == SECONDS else TWICE)
            )
    return found


def _warm(lines: Sequence[Line], day: int) -> list[Series]:
    found = []
    for name in WARM:
        points: Points = []
        for first in range(0, len(lines), day):
            some = [line for line in lines[first : first + day] if name in line.get("warm", {})]
            if some:
                points.append((_RUNS_OF(some[-1]), median(line["warm"][name]["cpu"] for line in some)))
        found.append(Series(HERE, name, points, TWICE))
    return found


def _seconds(costs: Mapping[str, float]) -> float:
    return costs["seconds"]


def _cpu(costs: Mapping[str, float]) -> float:
    return costs["cpu"]


def _requests(costs: Mapping[str, float]) -> float:
    return costs["files"] + costs["folders"]


def _grouped(stored: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    found: dict[str, Any] = {group: [0, 0] for group in GROUPS}
    for table, counts in stored.items():
        group = next(name for name, fits in GROUPS.items() if fits(table))
        for at in (0, 1):
            found[group][at] += counts[at]
    return found
