"""Hints after a run: stores that spilled to disk, a run without records, and outputs without rows, with probable reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rewindow.contracts.instants import instant
from rewindow.control.health.inputs import held_records, topics_read
from rewindow.control.health.phrases import command_words, waits
from rewindow.errors import HintMessage
from rewindow.streams.duration import in_words
from rewindow.streams.metrics import DROPS, sum_by_reason
from rewindow.streams.nodes import LeavesOut, Node, ProcessorNode, SinkNode, SourceNode
from rewindow.streams.topology import Topology, describe_supplier
from rewindow.streams.windows.calendar import CalendarWindows
from rewindow.streams.windows.session_sliding import SessionWindows
from rewindow.streams.windows.time import TimeWindows, Windows

if TYPE_CHECKING:
    from rewindow.control.run import Job, RunReport


def hints(job: Job, report: RunReport) -> Iterator[HintMessage]:
    """Yield hints on stores that spilled to disk, a run without records, and outputs that got no rows from their records."""
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
    """Yield a hint if a run processed no records because the feed's watermark holds back all landed records."""
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
    """Return the hint that says why an output got no rows from the records that a run processed for it.

    ``upstream`` are the nodes from which records reach the output. ``taken`` is the number of the processed records, and
    ``records`` is this number in words.
    """
    nodes = [node for node in upstream if isinstance(node, ProcessorNode)]
    windowed = [node for node in nodes if isinstance(_windows(node), Windows)][:1]
    windows = _windows(windowed[0]) if windowed else None
    # Stores of joins with tables contain rows of the tables, not these records.
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
    """Yield the inner joins of streams upstream of a node, nearest first. An inner join drops records without a partner."""
    nodes = (above for above in topology.above(node) if isinstance(above, ProcessorNode))
    return (above for above in nodes if above.leaves_out is LeavesOut.WITHOUT_PARTNER)


def _windows(node: ProcessorNode) -> Any:
    return getattr(node.supplier, "windows", None)


def _named(filters: list[ProcessorNode]) -> str:
    return " and ".join(f"{node.name!r} ({describe_supplier(node.supplier)})" for node in filters)


def _next_close(job: Job, report: RunReport, windows: Windows) -> str:
    """Return sentences that say which time the clock has reached, when a window closes, and what advances the clock."""
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
    if isinstance(windows, TimeWindows | CalendarWindows):
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
    """Return how many records the nodes dropped, and the number for each reason as text, like ``60 late (window-closed)``."""
    own = [measure for measure in report.metrics if measure["level"] == "node" and measure["node"] in nodes]
    counts = [(count, kind, why) for name, kind in DROPS.items() for why, count in sum_by_reason(own, name).items()]
    text = ", ".join(f"{count:,} {kind}{f' ({why})' if why else ''}" for count, kind, why in counts)
    return sum(count for count, _, _ in counts), text


def _is_below_store(topology: Topology, node: Node) -> bool:
    """Return whether any node upstream of a node has a store."""
    return any(isinstance(above, ProcessorNode) and above.stores for above in topology.above(node) if above is not node)
