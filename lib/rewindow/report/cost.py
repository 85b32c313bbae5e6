"""What runs and their steps cost, and a forecast: a line through records and seconds of the last runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import StatisticsError, correlation, linear_regression, median

from rewindow.control.plan.branches import CommittedRun
from rewindow.report.figures import Cost, StepCost
from rewindow.report.material import Material, StepTimes, records_of

_RUNS = 200
"""The last runs, from which the forecast is made."""
STEPPED_RUNS = 24
"""The last runs, whose steps are told apart: each takes two reads."""
_ENOUGH = 3
"""Fewer runs than these make no forecast."""
_CLEAR = 0.8
"""With a lower correlation of records and seconds, other things than records decide how long the runs took."""
STEPS = ("execute", "stage", "audit and commit", "publish")

_Timed = list[tuple[int, float]]
"""Records and seconds of each run."""


def cost(material: Material, waiting_records: int) -> Cost:
    """Return the time of the selected runs from plan to commit, and what it says of the records that wait."""
    timed = [(records_of(run), seconds) for run in material.runs if (seconds := material.seconds_of(run)) is not None]
    records, seconds = sum(one for one, _ in timed), sum(one for _, one in timed)
    typical = median([one for _, one in timed]) if timed else 0.0
    steps = list(_steps(material, waiting_records))
    line = _line(timed[-_RUNS:])
    if line is None:
        return Cost(len(timed), seconds, records, typical, None, None, None, None, steps)
    fixed, each = line
    every = sum(records_of(run) for run in material.branch.runs) + waiting_records
    waiting = fixed + each * waiting_records if waiting_records else 0.0
    return Cost(len(timed), seconds, records, typical, fixed, each * 1e6, waiting, fixed + each * every, steps)


def _steps(material: Material, waiting_records: int) -> Sequence[StepCost]:
    runs = material.runs[-STEPPED_RUNS:]
    ended = material.read_steps(runs)
    timed: Mapping[str, _Timed] = {step: [] for step in STEPS}
    for run in runs:
        for step, seconds in _seconds(run, material.planned_at.get(run.spec.run), ended.get(run.spec.run)).items():
            timed[step].append((records_of(run), seconds))
    found = []
    for step, known in timed.items():
        if known:
            typical, line = median([one for _, one in known]), _line(known)
            forecast = line[0] + line[1] * waiting_records if line and waiting_records else None
            found.append(StepCost(step, len(known), typical, sum(one for _, one in known), forecast))
    return found


def _seconds(run: CommittedRun, planned_ms: int | None, ended: StepTimes | None) -> Mapping[str, float]:
    """Return the seconds of the steps of a run whose begin and end are known."""
    if ended is None:
        return {}
    times = (planned_ms, ended.executed_ms, ended.staged_ms, run.recorded_at, ended.published_ms)
    pairs = zip(STEPS, times, times[1:], strict=False)
    return {step: (end - begin) / 1000 for step, begin, end in pairs if begin and end and begin <= end}


def _line(timed: _Timed) -> tuple[float, float] | None:
    """Return the fixed seconds of a run and those of each record; None if the runs do not tell."""
    if len(timed) < _ENOUGH:
        return None
    sizes, seconds = [float(records) for records, _ in timed], [one for _, one in timed]
    try:
        each, fixed = linear_regression(sizes, seconds)
        is_clear = correlation(sizes, seconds) >= _CLEAR
    except StatisticsError:  # all runs are of one size, or took the same time
        return None
    if not is_clear:
        return None
    return max(0.0, fixed), each
