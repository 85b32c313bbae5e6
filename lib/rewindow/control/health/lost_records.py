"""Records that did not get into results: what was dropped, how late records were, and why an output got no rows from a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rewindow.contracts.instants import instant
from rewindow.contracts.staged_files import TaskReport
from rewindow.control.health.inputs import Inputs, held_records, records_of, topics_read
from rewindow.control.health.phrases import command_words, waits
from rewindow.control.plan.job_state import CommittedRun
from rewindow.errors import HintMessage
from rewindow.streams.duration import in_words
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
from rewindow.streams.nodes import LeavesOut, Node, ProcessorNode, SinkNode, SourceNode
from rewindow.streams.topology import Topology, describe_supplier
from rewindow.streams.windows.session_sliding import SessionWindows
from rewindow.streams.windows.time import TimeWindows, Windows

if TYPE_CHECKING:
    from rewindow.control.run import Job, RunReport

LATE = "late"
LANDING = "landing"
"""The reason of rows that `land` quarantined."""
KINDS = tuple(DROPS.values())


@dataclass(frozen=True, slots=True)
class Drop:
    """Records that one reason kept out of the results. ``where`` is a node, a store, or the feed.

    ``share``: the dropped records divided by all records; None for a node that counts a record once for each window.
    """

    kind: str
    where: str
    reason: str
    records: int
    share: float | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """Records that needed a grace period of at most ``up_to_ms`` (None: no bound), but a longer one than the bucket before."""

    up_to_ms: int | None
    records: int


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late the records of a windowed node were.

    ``records`` is how many records reached the node, ``largest_ms`` how far the latest was behind the node's clock. ``buckets``
    counts records that arrived after the end of their last window, by the grace period that would accept them; ``needed_ms`` is
    the longest of these grace periods. ``late`` is the number of dropped records if ``counts_records``; otherwise a record
    counts once for each window for which it was late.
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
        """Records that needed no grace."""
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
    """Return ``records / taken``; None if ``records`` does not count records that the job took."""
    # A node below another that multiplies records may drop more records than the job took.
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
    """Return the dropped records of the runs by kind, and their shares of all records; a share is None without records.

    Late, skipped and expired records are counted for the node that drops most. If the windows of this node overlap, a record
    counts once for each window for which it is late, and the share is an upper bound.
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
        # The rows that `land` refused are not among the records that runs took.
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


def hints(job: Job, report: RunReport) -> Iterator[HintMessage]:
    """Yield a hint for stores that spilled, for a run that took no records, and for each output that got no rows from records."""
    if report.spilled:
        have = "has" if len(report.spilled) == 1 else "have"
        yield HintMessage(
            "stores-spilled",
            "{stores} {have} exceeded `store_memory` and spilled to disk: the rows are the same, but the run is slower. Raise "
            "`limits: {{store_memory: ...}}` in conf/jobs/{job}.yaml",
            stores=", ".join(report.spilled),
            have=have,
            job=job.name,
        )
    yield from _took_nothing(job, report)
    topology = job.code.topology
    for node in topology.nodes.values():
        if not isinstance(node, SinkNode) or node.is_internal or report.commit.rows_in(f"output/{node.topic}"):
            continue
        upstream = list(topology.above(node))
        sources = [source.topic for source in upstream if isinstance(source, SourceNode)]
        taken = sum(report.commit.consumed.get(topic, 0) for topic in sources)
        if taken and not report.spec.final:
            what = "its 1 record" if taken == 1 else f"its {taken:,} records"
            yield _no_rows(job, report, upstream, taken, output=node.topic, records=what)


def _took_nothing(job: Job, report: RunReport) -> Iterator[HintMessage]:
    """Yield a hint if a run took no records because the feed's watermark holds back all landed records."""
    topics, last = topics_read(report.spec.binding), report.spec.input.last
    held = sum(records.records for records in held_records(job.feed, topics, through=last))
    if held and not any(report.commit.consumed.get(topic) for topic in topics):
        yield HintMessage(
            "run-took-no-records",
            "The run took no records: {waits} for the feed's watermark, which is at {watermark}. `rewindow report {job}` names "
            "what that waits for",
            waits=waits(held, "landed record"),
            watermark=instant(job.feed.landings[last - 1].watermark_ms),
            job=command_words(job.name, report.spec.branch),
        )


def _no_rows(
    job: Job, report: RunReport, upstream: list[Node], taken: int, *, output: str, records: str
) -> HintMessage:
    """Return the hint that says why an output got no rows from the records that a run took for it.

    ``upstream`` are the nodes above the output, ``taken`` is the number of the records, ``records`` the same in words.
    """
    nodes = [node for node in upstream if isinstance(node, ProcessorNode)]
    windowed = [node for node in nodes if isinstance(_windows(node), Windows)][:1]
    windows = _windows(windowed[0]) if windowed else None
    # The stores of table joins hold rows of tables, not of these records.
    own = [node for node in nodes if not node.joins_table]
    waiting = sum(report.commit.held.get(store, 0) for node in nodes for store in node.stores)
    is_stored = any(report.commit.rows_in(f"changelog/{store}") for node in windowed or own for store in node.stores)
    filters = [node for node in reversed(nodes) if node.leaves_out]
    below = [node for node in filters if _is_below_store(job.code.topology, node)]
    dropped, text = _dropped(report, {node.name for node in nodes})
    if dropped >= taken and not is_stored:
        return HintMessage(
            "all-records-dropped",
            "{output} got no rows from {records}: all were dropped, {dropped}",
            output=output,
            records=records,
            dropped=text,
        )
    if waiting and is_stored:
        where = "in a suppress" if windows is None else f"for open windows. {_next_close(job, report, windows)}"
        return HintMessage(
            "results-wait",
            "{output} got no rows from {records}: {waits} {where}{others}",
            output=output,
            records=records,
            waits=waits(waiting, "result"),
            where=where,
            others=f". Any others did not pass {_named(below)}" if below else "",
        )
    filters = below if is_stored else [node for node in filters if node not in below] or filters
    others = f"{text}, and no other" if dropped else "none"
    if filters:
        has_join = any(node.leaves_out is LeavesOut.WITHOUT_PARTNER for node in filters)
        why = ". An inner join leaves out records without a partner" if has_join else ""
        return HintMessage(
            "no-record-passed",
            "{output} got no rows from {records}: {others} passed {filters}{why}",
            output=output,
            records=records,
            others=others,
            filters=_named(filters),
            why=why,
        )
    if is_stored and windows is not None:
        return HintMessage(
            "windows-still-open",
            "{output} got no rows from {records}: its windows are still open. {close}",
            output=output,
            records=records,
            close=_next_close(job, report, windows),
        )
    return HintMessage(
        "no-record-led-to-result",
        "{output} got no rows from {records}: {others} led to a result",
        output=output,
        records=records,
        others=others,
    )


def inner_joins(topology: Topology, node: Node) -> Iterator[ProcessorNode]:
    """Yield the inner joins of streams above a node, nearest first. Inner joins leave out records without a partner."""
    nodes = (above for above in topology.above(node) if isinstance(above, ProcessorNode))
    return (above for above in nodes if above.leaves_out is LeavesOut.WITHOUT_PARTNER)


def _windows(node: ProcessorNode) -> Any:
    return getattr(node.supplier, "windows", None)


def _named(filters: list[ProcessorNode]) -> str:
    return " and ".join(f"{node.name!r} ({describe_supplier(node.supplier)})" for node in filters)


def _next_close(job: Job, report: RunReport, windows: Windows) -> str:
    """Return sentences that say how far time has advanced, when a window closes, and what advances time."""
    by_watermark = job.binding.semantics.get("stream_time_from") == "watermark"
    landed = job.feed.landings[report.spec.input.last - 1]
    newest_ms = max((log.max_timestamp for log in landed.ranges.values()), default=-1)
    watermark_ms = report.commit.watermark_ms
    if by_watermark:
        time = f"Time is {instant(watermark_ms)}"
    elif watermark_ms < newest_ms:
        time = f"The feed's watermark is at {instant(watermark_ms)} (the newest record, at {instant(newest_ms)}, waits for it)"
    else:
        time = f"The newest record is at {instant(newest_ms)}"
    sentences = [time]
    if isinstance(windows, TimeWindows):
        grace_ms = windows.final_after_end_ms
        closes = f"{in_words(grace_ms)} after its end" if grace_ms else "at its end"
        sentences = [f"{time}, and a window closes {closes}"]
    elif isinstance(windows, SessionWindows):
        closes = in_words(windows.final_after_end_ms - 1)
        sentences = [f"{time}, and a session closes {closes} after its last record"]
    if not by_watermark:
        sentences.append(
            "Only records of the same partition advance time: `semantics: {stream_time_from: watermark}` lets the landing's "
            "watermark advance it too"
        )
    seals = "closes all, and seals the branch, which then takes no more runs"
    return f"{'. '.join(sentences)}. `rewindow run {command_words(job.name, report.spec.branch)} --final` {seals}"


def _dropped(report: RunReport, nodes: set[str]) -> tuple[int, str]:
    """Return how many records some nodes dropped, and the number for each reason as text, like ``60 late (window-closed)``."""
    own = [measure for measure in report.metrics if measure["level"] == "node" and measure["node"] in nodes]
    counts = [(count, kind, why) for name, kind in DROPS.items() for why, count in sum_by_reason(own, name).items()]
    text = ", ".join(f"{count:,} {kind}{f' ({why})' if why else ''}" for count, kind, why in counts)
    return sum(count for count, _, _ in counts), text


def _is_below_store(topology: Topology, node: Node) -> bool:
    """Return whether any node above a node has a store."""
    return any(isinstance(above, ProcessorNode) and above.stores for above in topology.above(node) if above is not node)
