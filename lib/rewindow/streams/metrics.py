"""The metrics of a task, under the names of KIP-328 and KIP-353.

A measure keeps count, total, minimum and maximum of its samples. A counter is a measure whose samples are all 1. The measures
of several tasks and runs are combined: counts and totals are added, and the lowest minimum and highest maximum are kept. So
averages are never averaged.

The grace period that late records needed is counted in a few buckets, which help people choose a grace period. A record needs
grace if it arrives after the end of its last window. The needed grace is the smallest grace period with which that window
would accept the record. Records that need no grace are not counted, so a log in order costs nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from rewindow.streams.duration import in_words, to_ms

RECORD_LATENESS = "record-lateness"
GRACE_NEEDED = "grace-needed"
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
"""The levels at which metrics are kept."""


class _Kind(NamedTuple):
    """The unit of a metric, its recording level in Kafka, the values to show, and what the metric measures.

    ``parts`` names the values to show, which are suffixes of the metric's name in Kafka: ``rate`` (total per simulated
    second), ``total``, ``current``, ``avg``, ``min``, ``max``. This library records every metric, whatever its recording
    level.
    """

    unit: str = ""
    recording_level: str = "DEBUG"
    parts: tuple[str, ...] = ("rate", "total")
    meaning: str = "a metric of user code"


_SAMPLED = ("current", "avg", "max")
KINDS: Mapping[str, _Kind] = {
    RECORD_LATENESS: _Kind(
        "ms", parts=("avg", "max"), meaning="how far a record is behind the highest time taken before it"
    ),
    GRACE_NEEDED: _Kind(
        "ms", parts=("avg", "max"), meaning="how late records were for their last window: the grace that keeps them"
    ),
    LATE_RECORD_DROP: _Kind("records", "INFO", meaning="records whose window had closed when they came"),
    EXPIRED_WINDOW_DROP: _Kind("records", "INFO", meaning="records older than a store's retention"),
    SKIPPED_RECORDS: _Kind(
        "records", "INFO", meaning="records that an operator cannot use, such as those without a key"
    ),
    PROCESS: _Kind("records", meaning="records that a task took from its topics"),
    PUNCTUATE: _Kind("calls", meaning="calls of schedules"),
    SUPPRESSION_EMIT: _Kind("records", meaning="updates that a suppress sent on"),
    SUPPRESSION_BUFFER_COUNT: _Kind("records", parts=_SAMPLED, meaning="updates that a suppress holds"),
    SUPPRESSION_BUFFER_SIZE: _Kind("bytes", parts=_SAMPLED, meaning="bytes that a suppress holds"),
    SUPPRESSION_OVERTIME: _Kind(
        "ms", "INFO", ("min", "avg"), meaning="how far time was ahead of an update when a suppress sent it"
    ),
    ENFORCED_PROCESSING: _Kind("times", meaning="times that a task went on although a partition had no data"),
    WINDOW_FINAL_EMIT: _Kind("records", meaning="final results of windows, by the emit strategy"),
    QUARANTINED: _Kind("records", "INFO", meaning="records that an error policy put into the quarantine"),
    SIMULATED_TIME: _Kind(
        "ms", parts=("total",), meaning="the time that a task's run covers: the denominator of rates"
    ),
}
"""The kind of each metric, by name. These are the metrics of KIP-328 and KIP-353, and a few more."""
DROPS = {
    LATE_RECORD_DROP: "late",
    SKIPPED_RECORDS: "skipped",
    EXPIRED_WINDOW_DROP: "expired",
    QUARANTINED: "quarantined",
}
GRACE_BOUNDS_MS = tuple(
    to_ms(text)
    for text in (
        *("1s", "5s", "10s", "30s", "1m", "2m", "5m", "10m", "15m", "30m"),
        *("1h", "2h", "3h", "6h", "12h", "1d", "2d", "3d", "7d", "14d", "30d"),
    )
)
"""The upper bounds of the buckets for needed grace, inclusive. One more bucket counts the records that need more than the
last bound."""
GRACE_BUCKETS = (*(f"up-to-{in_words(bound)}" for bound in GRACE_BOUNDS_MS), f"over-{in_words(GRACE_BOUNDS_MS[-1])}")
"""The names of the buckets, from the least grace to the most. In the metric ``grace-needed``, a bucket's name is the reason."""
_OWN = _Kind()
_TYPES = {TASK: "stream-task-metrics", NODE: "stream-processor-node-metrics"}


def kind_of(name: str) -> _Kind:
    """Return the kind of a metric. A user's own metric has a total and a rate."""
    return KINDS.get(name, _OWN)


def type_of(level: str, store_kind: str = "") -> str:
    """Return a metric's type, with the names of KIP-328 and KIP-353. The type of a store's metric contains the store's kind."""
    if level != STORE:
        return _TYPES.get(level, "")
    return "stream-buffer-metrics" if store_kind == "buffer" else f"stream-{store_kind}-state-metrics"


def tags_of(level: str, node: str, task: str, store_kind: str = "") -> str:
    """Return a metric's tags, with the names of KIP-328 and KIP-353: the task, then the node, store or buffer."""
    named = {NODE: "processor-node-id", STORE: "buffer-id" if store_kind == "buffer" else f"{store_kind}-state-id"}
    return f"task-id={task}" + (f",{named[level]}={node}" if level in named else "")


class Measure:
    """Count, total and extrema of one metric of one node. ``record()`` adds the sample 1; ``record(x)`` adds the sample x."""

    __slots__ = ("count", "current", "maximum", "minimum", "total")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all samples."""
        self.count = 0
        self.total = 0
        self.current: int | None = None
        """The last sample."""
        self.minimum: int | None = None
        self.maximum: int | None = None

    def record(self, value: int = 1) -> None:
        """Add one sample."""
        self.count += 1
        self.total += value
        self.current = value
        if self.minimum is None or value < self.minimum:
            self.minimum = value
        if self.maximum is None or value > self.maximum:
            self.maximum = value

    def mark(self) -> Callable[[], None]:
        """Return a function that restores the measure to its present state."""
        count, total, current, minimum, maximum = self.count, self.total, self.current, self.minimum, self.maximum

        def restore() -> None:
            self.count, self.total, self.current, self.minimum, self.maximum = count, total, current, minimum, maximum

        return restore

    def record_many(self, count: int, total: int, minimum: int, maximum: int) -> None:
        """Add several samples, given their count, total, minimum and maximum."""
        self.count += count
        self.total += total
        self.minimum = minimum if self.minimum is None else min(self.minimum, minimum)
        self.maximum = maximum if self.maximum is None else max(self.maximum, maximum)


class Metrics:
    """The measures of one task, by level (``task``, ``node``, ``store``), node or store, name and reason."""

    def __init__(self) -> None:
        self._measures: dict[tuple[str, str, str, str], Measure] = {}

    def measure(self, level: str, node: str, name: str, reason: str = "") -> Measure:
        """Return the measure with these four names: the same object in every call. `as_rows` omits measures without samples."""
        return self._measures.setdefault((level, node, name, reason), Measure())

    def mark(self, names: Collection[str]) -> Callable[[], None]:
        """Return a function that restores the measures of these nodes and stores to their present state."""
        before = {key: measure.mark() for key, measure in self._measures.items() if key[1] in names}

        def restore() -> None:
            for key, measure in self._measures.items():
                if key in before:
                    before[key]()
                elif key[1] in names:
                    measure.clear()

        return restore

    def as_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each measure with samples, sorted by level, node, name and reason."""
        return rows_of({key: measure for key, measure in self._measures.items() if measure.count})


def rows_of(measures: Mapping[tuple[str, str, str, str], Measure]) -> list[dict[str, Any]]:
    """Return one dictionary for each measure, sorted by level, node, name and reason."""
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
    """Combine the rows of several tasks or runs by (level, node, name, reason). The last row gives the current value."""
    sums: dict[tuple[str, str, str, str], Measure] = {}
    for row in rows:
        key = (row["level"], row["node"], row["name"], row["reason"])
        measure = sums.setdefault(key, Measure())
        measure.record_many(row["count"], row["total"], row["minimum"], row["maximum"])
        measure.current = row.get("current")
    return sums


def sum_by_reason(metrics: Iterable[Mapping[str, Any]], name: str) -> dict[str, int]:
    """Return a metric's totals by reason. If the metric is counted at several levels, the largest of their totals counts."""
    levels: dict[tuple[str, str], int] = {}
    for row in metrics:
        if row["name"] == name and row["total"]:
            key = (row["reason"], row["level"])
            levels[key] = levels.get(key, 0) + row["total"]
    sums: dict[str, int] = {}
    for (reason, _level), total in sorted(levels.items()):
        sums[reason] = max(sums.get(reason, 0), total)
    return sums


def reason_order(reason: str) -> tuple[int, str]:
    """Return the sort key of a metric's reason. Names of buckets sort by grace, other reasons by their text."""
    return (GRACE_BUCKETS.index(reason), "") if reason in GRACE_BUCKETS else (len(GRACE_BUCKETS), reason)


def grace_bucket(grace_ms: int) -> str:
    """Return the name of the bucket for a grace period that a record needed."""
    return GRACE_BUCKETS[bisect_left(GRACE_BOUNDS_MS, grace_ms)]
