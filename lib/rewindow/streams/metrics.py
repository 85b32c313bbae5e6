"""What a task counts, under the proposals' own names (KIP-328, KIP-353).

A measure keeps count, total, minimum and maximum: of samples, or of ones for a counter. Runs and tasks add up by
adding counts and totals and taking extrema, so an average is never averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

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
WINDOW_FINAL_EMIT = "window-aggregate-final-emit"
QUARANTINED = "quarantined-records"


SIMULATED_TIME = "simulated-time"

TASK, NODE, STORE = "task", "node", "store"
"""The levels: what a metric is of."""


class Kind(NamedTuple):
    """What a proposal says of a metric: its unit, the level at which Kafka records it, and what is shown of it.

    ``parts`` are the endings of its names: ``rate`` (total by simulated second), ``total``, ``current``, ``avg``,
    ``min``, ``max``. Everything is counted at every level here.
    """

    unit: str = ""
    recording_level: str = "DEBUG"
    parts: tuple[str, ...] = ("rate", "total")


_SAMPLED = ("current", "avg", "max")
KINDS: Mapping[str, Kind] = {
    RECORD_LATENESS: Kind("ms", parts=("avg", "max")),
    LATE_RECORD_DROP: Kind("records", "INFO"),
    EXPIRED_WINDOW_DROP: Kind("records", "INFO"),
    SKIPPED_RECORDS: Kind("records", "INFO"),
    PROCESS: Kind("records"),
    PUNCTUATE: Kind("calls"),
    SUPPRESSION_EMIT: Kind("records"),
    SUPPRESSION_BUFFER_COUNT: Kind("records", parts=_SAMPLED),
    SUPPRESSION_BUFFER_SIZE: Kind("bytes", parts=_SAMPLED),
    SUPPRESSION_OVERTIME: Kind("ms", "INFO", ("min", "avg")),
    ENFORCED_PROCESSING: Kind("times"),
    WINDOW_FINAL_EMIT: Kind("records"),
    QUARANTINED: Kind("records", "INFO"),
    SIMULATED_TIME: Kind("ms", parts=("total",)),
}
"""The metrics of KIP-328 and KIP-353, and a few more; simulated time is what a rate is counted by."""

_OWN = Kind()
_TYPES = {TASK: "stream-task-metrics", NODE: "stream-processor-node-metrics"}


def kind_of(name: str) -> Kind:
    """Return what is known of a metric; of a user's own, that it has a total and a rate."""
    return KINDS.get(name, _OWN)


def unit_of(name: str) -> str:
    """Return what a metric counts; nothing for one of the user's own."""
    return kind_of(name).unit


def type_of(level: str, store_kind: str = "") -> str:
    """Return a metric's type, as KIP-328 and KIP-353 name it: of a store after the store's kind."""
    if level != STORE:
        return _TYPES.get(level, "")
    return "stream-buffer-metrics" if store_kind == "buffer" else f"stream-{store_kind}-state-metrics"


def tags_of(level: str, node: str, task: str, store_kind: str = "") -> str:
    """Return a metric's tags, as KIP-328 and KIP-353 name them: the task, and the node, store or buffer."""
    named = {NODE: "processor-node-id", STORE: "buffer-id" if store_kind == "buffer" else f"{store_kind}-state-id"}
    return f"task-id={task}" + (f",{named[level]}={node}" if level in named else "")


class Measure:
    """Count, total and extrema of one metric of one node. ``record()`` counts one, ``record(x)`` takes a sample."""

    __slots__ = ("count", "current", "maximum", "minimum", "total")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew, with no sample."""
        self.count = 0
        self.total = 0
        self.current: int | None = None
        """The last sample."""
        self.minimum: int | None = None
        self.maximum: int | None = None

    def record(self, value: int = 1) -> None:
        """Take one sample."""
        self.count += 1
        self.total += value
        self.current = value
        if self.minimum is None or value < self.minimum:
            self.minimum = value
        if self.maximum is None or value > self.maximum:
            self.maximum = value

    def mark(self) -> Callable[[], None]:
        """Return what puts the measure back as it is now."""
        count, total, current, minimum, maximum = self.count, self.total, self.current, self.minimum, self.maximum

        def put_back() -> None:
            self.count, self.total, self.current, self.minimum, self.maximum = count, total, current, minimum, maximum

        return put_back

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

    def mark(self, names: Collection[str]) -> Callable[[], None]:
        """Return what puts the measures of some nodes and stores back as they are now."""
        before = {key: measure.mark() for key, measure in self._measures.items() if key[1] in names}

        def put_back() -> None:
            for key, measure in self._measures.items():
                if key in before:
                    before[key]()
                elif key[1] in names:
                    measure.clear()

        return put_back

    def as_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each measure that was taken, sorted by its name."""
        return rows_of({key: measure for key, measure in self._measures.items() if measure.count})


def rows_of(measures: Mapping[tuple[str, str, str, str], Measure]) -> list[dict[str, Any]]:
    """Return measures by (level, node, name, reason) as one dictionary each, sorted by their names."""
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
            "current": measure.current if "current" in kind_of(name).parts else None,
        }
        for (level, node, name, reason), measure in sorted(measures.items(), key=lambda item: item[0])
    ]


def add_up(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str, str], Measure]:
    """Add the rows of several tasks or runs up, by (level, node, name, reason). What is current is the last row's."""
    sums: dict[tuple[str, str, str, str], Measure] = {}
    for row in rows:
        key = (row["level"], row["node"], row["name"], row["reason"])
        measure = sums.setdefault(key, Measure())
        measure.record_many(row["count"], row["total"], row["minimum"], row["maximum"])
        measure.current = row.get("current")
    return sums
