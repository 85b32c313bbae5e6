"""Records that were dropped, by reason, and how late the records of windowed nodes were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.health.inputs import Inputs, records_of, topics_read
from rewindow.control.plan.job_state import CommittedRun
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
KINDS = tuple(DROPS.values())


@dataclass(frozen=True, slots=True)
class Drop:
    """Records that were dropped for one reason. ``where`` is the node or store that dropped them, or the feed.

    ``share``: the dropped records divided by all records; None for a node that counts a record once for each window.
    """

    kind: str
    where: str
    reason: str
    records: int
    share: float | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """Records that need a grace period of at most ``up_to_ms`` (None: no limit), but more than the previous bucket allows."""

    up_to_ms: int | None
    records: int


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late the records of a windowed node were.

    ``records`` is how many records reached the node. ``largest_ms`` is the largest difference between the node's clock and the
    time of a record. ``buckets`` count records that arrived after the end of their last window, by the grace period that would
    accept them. ``needed_ms`` is the longest of these grace periods. ``late`` is the number of dropped records if
    ``counts_records``. Otherwise, ``late`` counts a record once for each window for which it was late.
    """

    node: str
    windows: str
    grace_ms: int | None
    records: int
    mean_ms: float
    largest_ms: int
    late: int
    counts_records: bool
    buckets: Sequence[Bucket]
    needed_ms: int

    @property
    def in_time(self) -> int:
        """How many records needed no grace period."""
        return self.records - sum(bucket.records for bucket in self.buckets)


def drops(inputs: Inputs) -> list[Drop]:
    """Return the dropped records of the runs whose reports are known, most frequent first."""
    totals: Counter[tuple[str, str, str]] = Counter()
    of_node: dict[str, list[Mapping[str, Any]]] = {}
    for row in inputs.metrics:
        if row["name"] in DROPS:
            of_node.setdefault(row["node"], []).append(row)
    for node, rows in of_node.items():
        for name, kind in DROPS.items():
            for reason, records in sum_by_reason(rows, name).items():
                totals[kind, node or "task", reason] += records
    runs = [run for run in inputs.runs if run.spec.run in inputs.known_reports]
    landed = sum(_quarantined(inputs, run) for run in runs)
    if landed:
        totals["quarantined", f"feed {inputs.feed.definition.feed}", LANDING] = landed
    taken = sum(records_of(run) for run in runs)
    often = {timed.node for timed in inputs.known_timed if not timed.has_one_window and not timed.is_join}
    return [
        Drop(kind, where, reason, records, _share(records, taken, counts_records=kind != LATE or where not in often))
        for (kind, where, reason), records in sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    ]


def _share(records: int, taken: int, *, counts_records: bool) -> float | None:
    """Return ``records / taken``; None if ``records`` is not a number of records that the job processed."""
    # A node may drop more records than the job processed, if an earlier node makes several records from one.
    return records / taken if counts_records and 0 < records <= taken else None


def dropped_in(inputs: Inputs, run: CommittedRun) -> dict[str, int] | None:
    """Return a run's dropped records by kind, including rows that `land` quarantined; None if the task reports are unknown."""
    reports = inputs.known_reports.get(run.spec.run)
    if reports is None:
        return None
    totals = count_drops(reports)
    totals["quarantined"] += _quarantined(inputs, run)
    return totals


def count_drops(reports: Iterable[TaskReport]) -> dict[str, int]:
    """Return the dropped records of a run's tasks by kind."""
    rows = [row for report in reports for row in report.metrics]
    return {kind: sum(sum_by_reason(rows, name).values()) for name, kind in DROPS.items()}


def drop_shares(inputs: Inputs) -> dict[str, Any]:
    """Return the dropped records of the runs by kind, and their shares of all records. A share is None if there are no records.

    Of late, skipped and expired records, only the node that dropped most is counted. If the windows of this node overlap, it
    counts a record once for each window for which it is late, and the share is an upper bound.
    """
    records, dropped = sum(records_of(run) for run in inputs.runs), drops(inputs)
    by_location: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for drop in dropped:
        by_location[drop.kind][drop.where] += drop.records
    # Several nodes may drop the same record, so their counts are not added.
    counts = {kind: max(locations.values(), default=0) for kind, locations in by_location.items()}
    counts["quarantined"] = by_location["quarantined"].total()
    refused = sum(drop.records for drop in dropped if drop.reason == LANDING)
    shares: dict[str, Any] = {"over_runs": len(inputs.runs), "records": records}
    for kind, count in counts.items():
        # The rows that `land` quarantined never reached the runs, so they are not among ``records``.
        whole = records + (refused if kind == "quarantined" else 0)
        shares |= {kind: count, f"{kind}_share": min(1.0, count / whole) if whole else None}
    return shares


def lateness(inputs: Inputs) -> list[Lateness]:
    """Return for each windowed node how late its records were, in the runs whose reports are known."""
    sums = add_up(row for row in inputs.metrics if row["level"] == NODE)
    late_nodes = []
    for timed in inputs.known_timed:
        measured = sums.get((NODE, timed.node, RECORD_LATENESS, ""))
        if timed.is_join or measured is None or not measured.count:
            continue
        needed = [sums.get((NODE, timed.node, GRACE_NEEDED, bucket)) for bucket in GRACE_BUCKETS]
        bounds: tuple[int | None, ...] = (*GRACE_BOUNDS_MS, None)
        late = sums.get((NODE, timed.node, LATE_RECORD_DROP, "window-closed"))
        late_nodes.append(
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
                    Bucket(bound, bucket.count)
                    for bound, bucket in zip(bounds, needed, strict=True)
                    if bucket and bucket.count
                ],
                needed_ms=max((bucket.maximum or 0 for bucket in needed if bucket), default=0),
            )
        )
    return late_nodes


def _quarantined(inputs: Inputs, run: CommittedRun) -> int:
    landings, topics = inputs.feed.landings, topics_read(run.spec.binding)
    mine = (landings[number - 1] for number in run.spec.epochs if number <= len(landings))
    return sum(landing.quarantined_of(topics) for landing in mine)
