"""Hints on a run: why it took no records, or an output got no rows of those, and stores that did not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rewindow.contracts.instants import instant
from rewindow.control.plan.spec import MAIN
from rewindow.control.run import Job, RunReport
from rewindow.report.nodes import topics_read
from rewindow.report.text import asked, counted
from rewindow.streams.duration import in_words
from rewindow.streams.metrics import DROPS, sum_by_reason
from rewindow.streams.nodes import Node, ProcessorNode, SinkNode, SourceNode
from rewindow.streams.topology import Topology, describe_supplier
from rewindow.streams.windows.session_sliding import SessionWindows
from rewindow.streams.windows.time import TimeWindows, Windows

_INNER_JOINS = ("stream_table_join(inner", "global_table_join(inner", "stream_join(inner")
_FILTERS = ("where(", "filter", "table_filter", "split(", *_INNER_JOINS)
"""What leaves records out. An inner join leaves out those without a partner."""
_TABLE_JOINS = ("stream_table_join(", "global_table_join(")
"""The stores of these nodes have the rows of tables, not of the records that pass."""


def hints(job: Job, report: RunReport) -> Iterator[str]:
    """Yield a sentence for stores that spilled, a run without records, and each output without rows of those it took for it."""
    if report.spilled:
        have = "has" if len(report.spilled) == 1 else "have"
        yield (
            f"{', '.join(report.spilled)} {have} exceeded `store_memory` and spilled to disk: the rows are the same, but the run "
            f"is slower. Raise `limits: {{store_memory: ...}}` in conf/jobs/{job.name}.yaml"
        )
    yield from _held(job, report)
    topology = job.code.topology
    for node in topology.nodes.values():
        if not isinstance(node, SinkNode) or node.is_internal or _rows(report, f"output/{node.topic}"):
            continue
        upstream = list(above(topology, node))
        sources = [one.topic for one in upstream if isinstance(one, SourceNode)]
        taken = sum(report.commit.consumed.get(topic, 0) for topic in sources)
        if taken and not report.spec.final:
            what = "its 1 record" if taken == 1 else f"its {taken:,} records"
            yield f"{node.topic} got no rows from {what}: {_reason(job, report, upstream, taken)}"


def _held(job: Job, report: RunReport) -> Iterator[str]:
    """Yield that a run took no records, if the feed's watermark holds back what was landed."""
    landed, topics = job.feed.landings[report.spec.input.last - 1], topics_read(report.spec.binding.topology)
    held = sum(one.end - one.release for where, one in landed.ranges.items() if where.topic in topics)
    if held and not any(report.commit.consumed.get(topic) for topic in topics):
        verb = "waits" if held == 1 else "wait"
        yield (
            f"The run took no records: {counted(held, 'landed record')} {verb} for the feed's watermark, which is at "
            f"{instant(landed.watermark_ms)}. `rewindow report {asked(job.name, report.spec.branch)}` names what that waits for"
        )


def _reason(job: Job, report: RunReport, upstream: list[Node], taken: int) -> str:
    nodes = [node for node in upstream if isinstance(node, ProcessorNode)]
    windowed = [node for node in nodes if isinstance(_windows(node), Windows)][:1]
    windows = _windows(windowed[0]) if windowed else None
    own = [one for one in nodes if not _is(one, _TABLE_JOINS)]
    waiting = sum(report.commit.held.get(store, 0) for node in nodes for store in node.stores)
    is_stored = any(_rows(report, f"changelog/{store}") for node in windowed or own for store in node.stores)
    filters = [node for node in reversed(nodes) if _is(node, _FILTERS)]
    below = [one for one in filters if any(_has_store(job.code.topology, one))]
    dropped, text = _dropped(report, {node.name for node in nodes})
    if dropped >= taken and not is_stored:
        return f"all were dropped, {text}"
    if waiting and is_stored:
        what = "1 result waits" if waiting == 1 else f"{waiting:,} results wait"
        where = "in a suppress" if windows is None else f"for open windows. {_next_close(job, report, windows)}"
        return f"{what} {where}" + (f". Any others did not pass {_named(below)}" if below else "")
    filters = below if is_stored else [one for one in filters if one not in below] or filters
    others = f"{text}, and no other" if dropped else "none"
    if filters:
        has_join = any(_is(one, _INNER_JOINS) for one in filters)
        why = ". An inner join leaves out records without a partner" if has_join else ""
        return f"{others} passed {_named(filters)}{why}"
    if is_stored and windows is not None:
        return f"its windows are still open. {_next_close(job, report, windows)}"
    return f"{others} led to a result"


def inner_joins(topology: Topology, node: Node) -> Iterator[ProcessorNode]:
    """Yield the inner joins of streams above a node, nearest first: they leave out records without a partner."""
    nodes = (one for one in above(topology, node) if isinstance(one, ProcessorNode))
    return (one for one in nodes if _is(one, _INNER_JOINS))


def _is(node: ProcessorNode, kinds: tuple[str, ...]) -> bool:
    return describe_supplier(node.supplier).startswith(kinds)


def _windows(node: ProcessorNode) -> Any:
    return getattr(node.supplier, "windows", None)


def _named(filters: list[ProcessorNode]) -> str:
    return " and ".join(f"{one.name!r} ({describe_supplier(one.supplier)})" for one in filters)


def _next_close(job: Job, report: RunReport, windows: Windows) -> str:
    """Return where time is, when a window closes, and how time gets there."""
    by_watermark = job.binding.semantics.get("stream_time_from") == "watermark"
    landed = job.feed.landings[report.spec.input.last - 1]
    newest_ms = max((one.max_timestamp for one in landed.ranges.values()), default=-1)
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
    branch = "" if report.spec.branch == MAIN else f" --branch {report.spec.branch}"
    seals = "closes all, and seals the branch, which then takes no more runs"
    return f"{'. '.join(sentences)}. `rewindow run {job.name}{branch} --final` {seals}"


def _dropped(report: RunReport, nodes: set[str]) -> tuple[int, str]:
    """Return how many records some nodes dropped, and by reason as text: ``60 late (window-closed)``."""
    own = [measure for measure in report.metrics if measure["level"] == "node" and measure["node"] in nodes]
    counts = [(one, kind, reason) for name, kind in DROPS.items() for reason, one in sum_by_reason(own, name).items()]
    text = ", ".join(f"{one:,} {kind}{f' ({reason})' if reason else ''}" for one, kind, reason in counts)
    return sum(one for one, _, _ in counts), text


def _rows(report: RunReport, target: str) -> int:
    total = report.commit.targets.get(target)
    return total.rows if total else 0


def _has_store(topology: Topology, node: Node) -> Iterator[bool]:
    """Yield for each node above whether it has a store."""
    return (bool(one.stores) for one in above(topology, node) if isinstance(one, ProcessorNode) and one is not node)


def above(topology: Topology, node: Node) -> Iterator[Node]:
    """Yield a node and all nodes above it, nearest first, through repartitions."""
    waiting, seen = [node], {node.name}
    while waiting:
        one = waiting.pop(0)
        yield one
        parents = list(one.parents)
        if isinstance(one, SourceNode) and one.is_internal:
            sinks = (sink for sink in topology.nodes.values() if isinstance(sink, SinkNode))
            parents += [sink.name for sink in sinks if sink.topic == one.topic]
        waiting += [topology.nodes[name] for name in parents if name not in seen]
        seen.update(parents)
