"""What runs cost, and a forecast: a line through records and seconds of the last runs."""

from __future__ import annotations

from statistics import StatisticsError, linear_regression, median

from rewindow.report.figures import Cost
from rewindow.report.history import records_of
from rewindow.report.material import Material

_RUNS = 200
"""The last runs, from which the forecast is made."""
_ENOUGH = 3
"""Fewer runs than these make no forecast."""


def cost(material: Material, waiting_records: int) -> Cost:
    """Return the time of the selected runs from plan to commit, and what it says of the records that wait."""
    timed = [(records_of(run), seconds) for run in material.runs if (seconds := material.seconds_of(run)) is not None]
    records, seconds = sum(one for one, _ in timed), sum(one for _, one in timed)
    typical = median([one for _, one in timed]) if timed else 0.0
    line = _line(timed[-_RUNS:])
    if line is None:
        return Cost(len(timed), seconds, records, typical, None, None, None, None)
    fixed, each = line
    every = sum(records_of(run) for run in material.branch.runs) + waiting_records
    waiting = fixed + each * waiting_records if waiting_records else 0.0
    return Cost(len(timed), seconds, records, typical, fixed, each * 1e6, waiting, fixed + each * every)


def _line(timed: list[tuple[int, float]]) -> tuple[float, float] | None:
    """Return the fixed seconds of a run and those of each record; None if the runs do not tell."""
    if len(timed) < _ENOUGH:
        return None
    sizes, seconds = [float(records) for records, _ in timed], [one for _, one in timed]
    try:
        each, fixed = linear_regression(sizes, seconds)
    except StatisticsError:  # all runs are of one size
        return None
    if each <= 0:
        return None
    return max(0.0, fixed), each
