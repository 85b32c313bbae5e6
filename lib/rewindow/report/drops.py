"""Dropped records by kind, place and reason, and how late the records of windowed nodes were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.branches import CommittedRun
from rewindow.report.figures import Bucket, Drop, Lateness
from rewindow.report.material import Material, records_of
from rewindow.report.nodes import timed_nodes, topics_read
from rewindow.streams.metrics import (
    DROPS,
    GRACE_BOUNDS_MS,
    GRACE_BUCKETS,
    GRACE_NEEDED,
    LATE_RECORD_DROP,
    NODE,
    RECORD_LATENESS,
    add_up,
    sum_by_reason,
)

LATE = "late"
LANDING = "landing"
"""The reason of rows that `land` quarantined."""


def drops(material: Material) -> list[Drop]:
    """Return the dropped records of the runs whose reports are read, most frequent first."""
    found: Counter[tuple[str, str, str]] = Counter()
    of_node: dict[str, list[Mapping[str, Any]]] = {}
    for row in material.metrics:
        if row["name"] in DROPS:
            of_node.setdefault(row["node"], []).append(row)
    for node, rows in of_node.items():
        for name, kind in DROPS.items():
            for reason, records in sum_by_reason(rows, name).items():
                found[kind, node or "task", reason] += records
    runs = [run for run in material.runs if run.spec.run in material.reports]
    landed = sum(_quarantined(material, run) for run in runs)
    if landed:
        found["quarantined", f"feed {material.feed.definition.feed}", LANDING] = landed
    taken = sum(records_of(run) for run in runs)
    often = {timed.node for timed in timed_nodes(material.head.spec.binding.topology) if not timed.has_one_window}
    return [
        Drop(kind, where, reason, records, _share(records, taken, counts_records=kind != LATE or where not in often))
        for (kind, where, reason), records in sorted(found.items(), key=lambda item: (-item[1], item[0]))
    ]


def _share(records: int, taken: int, *, counts_records: bool) -> float | None:
    """Return the part of the records; None if a node counts more than the job took, because one above it multiplies them."""
    return records / taken if counts_records and 0 < records <= taken else None


def dropped_in(material: Material, run: CommittedRun) -> dict[str, int] | None:
    """Return a run's dropped records by kind, with the rows of its topics that `land` quarantined; None if not read."""
    reports = material.reports.get(run.spec.run)
    if reports is None:
        return None
    counted = count_drops(reports)
    counted["quarantined"] += _quarantined(material, run)
    return counted


def count_drops(reports: Iterable[TaskReport]) -> dict[str, int]:
    """Return the dropped records of a run's tasks by kind."""
    rows = [row for report in reports for row in report.metrics]
    return {kind: sum(sum_by_reason(rows, name).values()) for name, kind in DROPS.items()}


def lateness(material: Material) -> list[Lateness]:
    """Return the lateness of the records that reached each windowed node, over the runs whose reports are read."""
    sums = add_up(row for row in material.metrics if row["level"] == NODE)
    found = []
    for timed in timed_nodes(material.head.spec.binding.topology):
        measured = sums.get((NODE, timed.node, RECORD_LATENESS, ""))
        if measured is None or not measured.count:
            continue
        needed = [sums.get((NODE, timed.node, GRACE_NEEDED, bucket)) for bucket in GRACE_BUCKETS]
        bounds: tuple[int | None, ...] = (*GRACE_BOUNDS_MS, None)
        late = sums.get((NODE, timed.node, LATE_RECORD_DROP, "window-closed"))
        found.append(
            Lateness(
                node=timed.node,
                windows=timed.windows,
                grace_ms=timed.grace_ms,
                records=measured.count,
                mean_ms=measured.total / measured.count,
                largest_ms=measured.maximum or 0,
                late=late.total if late else 0,
                counts_records=timed.has_one_window,
                buckets=[
                    Bucket(bound, one.count) for bound, one in zip(bounds, needed, strict=True) if one and one.count
                ],
                needed_ms=max((one.maximum or 0 for one in needed if one), default=0),
            )
        )
    return found


def _quarantined(material: Material, run: CommittedRun) -> int:
    landings = material.feed.landings
    mine = (landings[number - 1] for number in run.spec.epochs if number <= len(landings))
    topics = topics_read(run.spec.binding.topology)
    return sum(landing.quarantined_of(topics) for landing in mine)
