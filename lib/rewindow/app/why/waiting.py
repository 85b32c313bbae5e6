"""What a result waits for: the clock of a node, and what holds the clock back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rewindow.app.hints import above
from rewindow.app.why.history import History
from rewindow.contracts.instants import instant
from rewindow.report.material import Material
from rewindow.report.nodes import TimedNode, timed_nodes
from rewindow.report.windows import clocks_of, why_open
from rewindow.streams.record import UNKNOWN, Window, known_time


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

    def closes_at(self, window: Window) -> int:
        """Return the time at which the result of a window is final."""
        return window.end_ms + (self.node.final_after_ms or 0)

    def waits(self, window: Window) -> Waits:
        """Return what the result of a window waits for."""
        closes_at = self.closes_at(window)
        why = why_open(self.material, self.node, closes_at, {self.partition: self.clock})
        return Waits(self.node.node, closes_at, known_time(self.clock), why)


def holding(past: History, partition: int) -> Holding | None:
    """Return what holds the output's results back; None if nothing does, or no longer, because the branch is sealed."""
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
    return Holding(material, last, partition, clocks_of(material, last).get(partition, UNKNOWN))


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


def _material(past: History) -> Material:
    return Material(
        branch=past.output.branch,
        feed=past.output.job.feed,
        runs=[past.last],
        planned_at={},
        lagging={},
        read_reports=past.output.tables.reports,
        read_store=lambda _store: None,
        lag_ms=past.output.lag_ms,
    )
