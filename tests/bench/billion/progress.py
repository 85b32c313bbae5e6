"""What is done of a measurement: a file with the cost of every finished step. A stopped step is done again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.bench.meter import Meter, PeakMemory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Cost(NamedTuple):
    """The sum of the finished steps of a stage, with the largest memory of its process tree and of one worker."""

    cpu: float
    seconds: float
    peak_mb: int
    peak_worker_mb: int
    repeated: int
    """Steps that were stopped and done again."""


class Progress:
    """The finished steps in a folder, by stage and number. One process uses it at a time."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "progress.json"
        self._steps: dict[str, dict[str, dict[str, Any]]] = {}
        if self._file.exists():
            self._steps = json.loads(self._file.read_text())

    def is_done(self, stage: str, number: int) -> bool:
        """Return whether a step is finished."""
        return "cpu" in self._steps.get(stage, {}).get(str(number), {})

    def measure(self, stage: str, number: int, work: Callable[[], dict[str, Any] | None], meter: Meter) -> None:
        """Do a step unless it is finished; record its cost, and what it returns."""
        if self.is_done(stage, number):
            return
        begun = self._steps.setdefault(stage, {}).setdefault(str(number), {"begun": 0})
        begun["begun"] += 1
        self._save()
        before = meter.read()
        with PeakMemory() as memory:
            found = work()
        cost = {what: round(now - before[what], 3) for what, now in meter.read().items()}
        peaks = {"peak_mb": memory.peak_mb, "peak_worker_mb": memory.peak_worker_mb}
        self._steps[stage][str(number)] = {**begun, **cost, **peaks, **(found or {})}
        self._save()

    def found(self, stage: str) -> list[dict[str, Any]]:
        """Return what the finished steps of a stage recorded, in order."""
        steps = sorted(self._steps.get(stage, {}).items(), key=lambda step: int(step[0]))
        return [step for _, step in steps if "cpu" in step]

    def cost(self, stage: str) -> Cost:
        """Return what a stage cost so far."""
        steps = self.found(stage)
        return Cost(
            round(sum(step["cpu"] for step in steps), 2),
            round(sum(step["seconds"] for step in steps), 2),
            max((step["peak_mb"] for step in steps), default=0),
            max((step["peak_worker_mb"] for step in steps), default=0),
            sum(step["begun"] > 1 for step in steps),
        )

    def _save(self) -> None:
        draft = self._file.with_suffix(".draft")
        draft.write_text(json.dumps(self._steps, indent=1))
        draft.replace(self._file)
