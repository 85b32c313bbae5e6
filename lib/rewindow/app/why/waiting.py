"""What a result waits for: the clock of a node, and what holds the clock back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rewindow.app.hints import above
from rewindow.app.why.history import History
from rewindow.contracts.instants import instant
from rewindow.report.material import Material
from rewindow.report.nodes import timed_nodes
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


def waits_for(past: History, partition: int, window: Window | None) -> Waits | None:
    """Return what the result of a window waits for; None without a window, or if nothing holds results back."""
    topology, layout = past.last.spec.binding.topology, past.output.layout
    own = {
        node.name for node in above(layout.topology, layout.sink)
    }  # other outputs of the sub-topology have other windows
    holding = [
        node
        for node in timed_nodes(topology)
        if node.final_after_ms is not None and node.sub_topology == layout.part.index and node.node in own
    ]
    if window is None or not holding or past.last.spec.final:
        return None
    material, last = _material(past), holding[-1]
    closes_at = window.end_ms + (last.final_after_ms or 0)
    clock = clocks_of(material, last).get(partition, UNKNOWN)
    why = why_open(material, last, closes_at, {partition: clock})
    return Waits(last.node, closes_at, known_time(clock), why)


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
    )
