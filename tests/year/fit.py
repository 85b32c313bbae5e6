"""Straight lines through costs: a slope for each run, with its 95 % confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

_T = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 8: 2.31, 10: 2.23, 15: 2.13, 20: 2.09, 30: 2.04, 60: 2.00}
"""Student's t for 95 %, by degrees of freedom. Between them the lower ones' counts, which is the larger; beyond them 1.96."""
_NORMAL = 1.96


@dataclass(frozen=True, slots=True)
class Fit:
    """``level``: the value of the line at the first run; ``slope`` and ``error``: growth for each run, plus or minus."""

    level: float
    slope: float
    error: float
    first: float
    last: float

    def at(self, runs: float) -> float:
        """Return the value of the line at a number of runs."""
        return self.level + self.slope * (runs - self.first)

    def least(self, runs: float) -> float:
        """Return the least growth over so many runs that the interval allows. 0 if it allows shrinking."""
        return max(0.0, self.slope - self.error) * runs


def fit(points: Sequence[tuple[float, float]]) -> Fit:
    """Return the line of least squares. Raises `ValueError` for fewer than three points, which have no interval."""
    if len(points) < 3:
        raise ValueError(f"{len(points)} points have no interval of confidence")
    x, y = (np.array(one, dtype=float) for one in zip(*points, strict=True))
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread
    level = float(y.mean()) + slope * (x - x.mean())
    free = len(points) - 2
    error = sqrt(float(((y - level) ** 2).sum()) / free / spread) * _student(free)
    return Fit(float(y.mean() + slope * (x.min() - x.mean())), slope, error, float(x.min()), float(x.max()))


def _student(free: int) -> float:
    return _NORMAL if free > max(_T) else _T[max(known for known in _T if known <= free)]
