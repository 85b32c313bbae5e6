"""What a result waits for: the clock of a node, and what holds the clock back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewindow.app.hints import above
from rewindow.app.why.history import Candidates, History
from rewindow.app.why.windows import windows_of
from rewindow.contracts.instants import instant
from rewindow.dsl.operators.stream_join import StreamJoin
from rewindow.errors import CheckpointError
from rewindow.report.held_back import waited_for, what_moves, why_open
from rewindow.report.material import Material
from rewindow.report.nodes import TimedNode, timed_nodes
from rewindow.report.windows import BUFFER_TIME, clocks_of
from rewindow.streams.duration import in_words
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.record import UNKNOWN, Window, known_time
from rewindow.streams.windows.session_sliding import SessionWindows
from rewindow.tables.delta.state_query import Stores


@dataclass(frozen=True, slots=True)
class Waits:
    """A window's result: when it is final, the node that decides, its clock (None if unknown), and what holds that back."""

    node: str
    closes_at_ms: int
    clock_ms: int | None
    why: str

    @property
    def is_open(self) -> bool:
        """Whether the clock has not reached the time at which the result is final."""
        return self.clock_ms is None or self.clock_ms < self.closes_at_ms


@dataclass(frozen=True)
class Holding:
    """The last node that holds an output's results back, and its clock in one partition."""

    material: Material
    node: TimedNode
    partition: int
    clock: int
    buffered: Mapping[Window | None, int] | None = None
    """Of a node with a time limit: the buffer times of the key's results, by window; None is the key of a plain table."""

    def closes_at(self, window: Window | None) -> int | None:
        """Return the time at which the result of a window is final; None if the node holds none."""
        after_ms = self.node.final_after_ms or 0
        if self.buffered is not None:
            return self.buffered[window] + after_ms if window in self.buffered else None
        return None if window is None else window.end_ms + after_ms

    def is_open(self, window: Window) -> bool:
        """Return whether the clock has not reached the time at which a window's result is final."""
        closes_at = self.closes_at(window)
        return closes_at is not None and closes_at > self.clock

    def waits(self, window: Window | None) -> Waits | None:
        """Return what the result of a window waits for; None if the node holds none."""
        closes_at = self.closes_at(window)
        if closes_at is None:
            return None
        why = why_open(self.material, self.node, closes_at, {self.partition: self.clock})
        return Waits(self.node.node, closes_at, known_time(self.clock), why)


def holding(past: History, partition: int, values: Sequence[Any]) -> Holding | None:
    """Return what holds the output's results back; None if nothing does, or no longer, because the branch is sealed.

    ``values`` are those of the key's columns, without a window.
    """
    topology, layout = past.last.spec.binding.topology, past.output.layout
    own = {
        node.name for node in above(layout.topology, layout.sink)
    }  # other outputs of the sub-topology have other windows
    nodes = [
        node
        for node in timed_nodes(topology)
        if node.final_after_ms is not None and node.sub_topology == layout.part.index and node.node in own
    ]
    if not nodes or past.last.spec.final:
        return None
    material, last = _material(past), nodes[-1]
    buffered = _buffered(past, last.store, values) if last.sends_nulls else None
    if buffered is None and not past.output.is_windowed:
        return None
    return Holding(material, last, partition, clocks_of(material, last).get(partition, UNKNOWN), buffered)


def _buffered(past: History, store: str, own: Sequence[Any]) -> dict[Window | None, int]:
    """Return the times from which a time limit counts, by window, of the results of a key that a buffer holds.

    Nothing if `gc` has forgotten the state after the last run.
    """
    try:
        stores = Stores(past.output.tables, past.output.state, past.last)
    except CheckpointError:
        return {}
    rows, keys = stores.rows(store).to_pylist(), stores.keys(store)
    names = keys[: len(own)]
    mine = [row for row in rows if all(row[name] == value for name, value in zip(names, own, strict=True))]
    is_windowed, is_session = past.output.is_windowed, isinstance(windows_of(past.output), SessionWindows)
    return {
        Window(row[keys[-2]], row[keys[-1]], is_session=is_session) if is_windowed else None: row[BUFFER_TIME]
        for row in mine
    }


def clock_sentences(past: History, partition: int) -> Iterator[str]:
    """Yield what the clocks and schedules of the output's task are after the last run."""
    part = past.output.layout.part.index
    state: Mapping[str, Any] = _material(past).tasks.get((part, partition), {})
    stream_ms = state.get("stream_time_ms", UNKNOWN)
    if stream_ms != UNKNOWN:
        yield f"Stream time of task {part}_{partition} is {instant(stream_ms)} after run {past.last.spec.name}"
    for schedule in state.get("schedules", ()):
        if not schedule.get("is_cancelled") and schedule.get("due_ms") is not None:
            yield f"The next punctuation of {schedule['node']} is due {instant(schedule['due_ms'])}"
    if past.last.spec.final:
        yield f"Branch {past.output.branch.name} is sealed: no run follows"


def held_sentences(past: History) -> Iterator[str]:
    """Yield what the feed's watermark waits for, if it holds back records that were landed."""
    material = _material(past)
    at = instant(material.feed.landings[-1].watermark_ms)
    if waits := waited_for(material):
        yield f"The feed's watermark is at {at}, which {waits}. {what_moves(material, by_feed=True)}"
    elif material.rules.lag_ms:
        yield f"The feed's watermark is at {at}, `lag: {in_words(material.rules.lag_ms)}` behind its newest record"


def partner_sentences(past: History, taken: Candidates) -> Iterator[str]:
    """Yield what the key's records, those that were taken, wait for in joins of streams, and until when."""
    layout = past.output.layout
    newest_ms = max((time for known in taken.values() for time in known.values()), default=UNKNOWN)
    lacking = sorted(set(layout.external) - {topic for (topic, _), known in taken.items() if known})
    for node in above(layout.topology, layout.sink):
        join = node.supplier if isinstance(node, ProcessorNode) else None
        if isinstance(join, StreamJoin) and not join.keeps_left:
            is_known = bool(lacking) and not past.output.is_windowed
            none = f", and none of the key was taken from {' or '.join(lacking)}" if is_known else ""
            yield f"{node.name} sends nothing for a record without a partner{none}"
        elif isinstance(join, StreamJoin) and not join.windows.is_eager:
            windows = join.windows
            ahead_ms = max(windows.after_ms, windows.before_ms) if join.keeps_right else windows.after_ms
            until_ms = newest_ms + ahead_ms + windows.grace_ms
            yield f"{node.name} sends a record without a partner once stream time is past {instant(until_ms)}"


def _material(past: History) -> Material:
    of = past.output
    return Material.of_reports(of.branch, of.job.feed, [past.last], of.tables.reports, rules=of.rules)
