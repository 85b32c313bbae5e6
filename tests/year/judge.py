"""Which series grow, and whether they may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.year.fit import Fit, fit
from tests.year.series import Points, Series, steady

YEAR_RUNS = 8_760


@dataclass(frozen=True, slots=True)
class Judged:
    """A series with its line. ``grows``: even the least growth that the interval allows, in a year, is above the bound."""

    series: Series
    points: Points
    fit: Fit
    grows: bool

    @property
    def at_year(self) -> float:
        """What the line gives for the last run of a year."""
        return self.fit.at(YEAR_RUNS)


def judged(series: Sequence[Series], ends: Sequence[float]) -> list[Judged]:
    """Fit and judge each series that has enough points."""
    found = []
    for one in series:
        points = steady(one, ends)
        if len(points) >= 3:
            line = fit(points)
            found.append(Judged(one, points, line, _grows(one, line)))
    return found


def _grows(series: Series, line: Fit) -> bool:
    bound, least = series.bound, line.least(YEAR_RUNS)
    if bound.share is not None:
        return least > bound.share * max(line.level, 0.0)
    return bound.each_run is not None and least > bound.each_run * YEAR_RUNS
