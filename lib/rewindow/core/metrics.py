"""What a task counts, under the proposals' own names (KIP-328, KIP-353).

A measure keeps count, total, minimum and maximum: of samples, or of ones for a counter. Runs and tasks add up by
adding counts and totals and taking extrema, so an average is never averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

RECORD_LATENESS = "record-lateness"
LATE_RECORD_DROP = "late-record-drop"
EXPIRED_WINDOW_DROP = "expired-window-record-drop"
SKIPPED_RECORDS = "skipped-records"
PROCESS = "process"
PUNCTUATE = "punctuate"
SUPPRESSION_EMIT = "suppression-emit"
SUPPRESSION_BUFFER_COUNT = "suppression-buffer-count"
SUPPRESSION_BUFFER_SIZE = "suppression-buffer-size"
SUPPRESSION_OVERTIME = "intermediate-result-suppression-overtime"
ENFORCED_PROCESSING = "enforced-processing"


def unit_of(name: str) -> str:
    """Return what a metric counts; nothing for one of the user's own."""
    return "records" if name in _OF_RECORDS else _UNITS.get(name, "")


_OF_RECORDS = frozenset(
    {LATE_RECORD_DROP, EXPIRED_WINDOW_DROP, SKIPPED_RECORDS, PROCESS, SUPPRESSION_EMIT, SUPPRESSION_BUFFER_COUNT}
)
_UNITS = {
    RECORD_LATENESS: "ms",
    SUPPRESSION_OVERTIME: "ms",
    SUPPRESSION_BUFFER_SIZE: "bytes",
    PUNCTUATE: "calls",
    ENFORCED_PROCESSING: "times",
}


class Measure:
    """Count, total and extrema of one metric of one node. ``record()`` counts one, ``record(x)`` takes a sample."""

    __slots__ = ("count", "maximum", "minimum", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.minimum: int | None = None
        self.maximum: int | None = None

    def record(self, value: int = 1) -> None:
        """Take one sample."""
        self.count += 1
        self.total += value
        if self.minimum is None or value < self.minimum:
            self.minimum = value
        if self.maximum is None or value > self.maximum:
            self.maximum = value

    def record_many(self, count: int, total: int, minimum: int, maximum: int) -> None:
        """Take the summary of several samples at once."""
        self.count += count
        self.total += total
        self.minimum = minimum if self.minimum is None else min(self.minimum, minimum)
        self.maximum = maximum if self.maximum is None else max(self.maximum, maximum)


class Metrics:
    """The measures of one task, by level (``task``, ``node``, ``store``), node or store, name and reason."""

    def __init__(self) -> None:
        self._measures: dict[tuple[str, str, str, str], Measure] = {}

    def measure(self, level: str, node: str, name: str, reason: str = "") -> Measure:
        """Return the measure of that name; the same object each time."""
        return self._measures.setdefault((level, node, name, reason), Measure())

    def as_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each measure that was taken, sorted by its name."""
        return [
            {
                "level": level,
                "node": node,
                "name": name,
                "reason": reason,
                "count": measure.count,
                "total": measure.total,
                "minimum": measure.minimum,
                "maximum": measure.maximum,
            }
            for (level, node, name, reason), measure in sorted(self._measures.items(), key=lambda item: item[0])
            if measure.count
        ]


def add_up(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str, str], Measure]:
    """Add the rows of several tasks or runs up, by (level, node, name, reason)."""
    sums: dict[tuple[str, str, str, str], Measure] = {}
    for row in rows:
        key = (row["level"], row["node"], row["name"], row["reason"])
        sums.setdefault(key, Measure()).record_many(row["count"], row["total"], row["minimum"], row["maximum"])
    return sums
