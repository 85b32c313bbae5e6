"""The metrics that count dropped records, by the words of summaries and reports, and their totals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rewindow.streams.metrics import EXPIRED_WINDOW_DROP, LATE_RECORD_DROP, QUARANTINED, SKIPPED_RECORDS

DROPS = {
    LATE_RECORD_DROP: "late",
    SKIPPED_RECORDS: "skipped",
    EXPIRED_WINDOW_DROP: "expired",
    QUARANTINED: "quarantined",
}


def sum_by_reason(metrics: Iterable[Mapping[str, Any]], name: str) -> dict[str, int]:
    """Return a metric's totals by reason. A metric may be counted at several levels; each has the full total."""
    levels: dict[tuple[str, str], int] = {}
    for row in metrics:
        if row["name"] == name and row["total"]:
            key = (row["reason"], row["level"])
            levels[key] = levels.get(key, 0) + row["total"]
    sums: dict[str, int] = {}
    for (reason, _level), total in sorted(levels.items()):
        sums[reason] = max(sums.get(reason, 0), total)
    return sums
