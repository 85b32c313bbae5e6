"""What the result of a window waits for: the clock of a node, and what holds the clock back."""

from __future__ import annotations

from dataclasses import dataclass

from rewindow.app.why.history import History
from rewindow.report.material import Material
from rewindow.report.nodes import TimedNode, timed_nodes
from rewindow.report.windows import clocks_of, why_open
from rewindow.streams.record import UNKNOWN


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


def waits_for(past: History, partition: int, times: tuple[int, int] | None) -> Waits | None:
    """Return what the window of records with these times waits for; None without a window, or if nothing holds results."""
    output, run = past.output, past.last
    nodes = [node for node in timed_nodes(run.spec.binding.topology) if node.final_after_ms is not None]
    own = [node for node in nodes if node.sub_topology == output.traced(0).part.index]
    if times is None or not own:
        return None
    material = Material(
        branch=output.branch,
        feed=output.job.feed,
        runs=[run],
        planned_at={},
        lagging={},
        read_reports=output.tables.reports,
        read_store=lambda _store: None,
    )
    last = own[-1]
    closes_at = times[1] + 1 + (last.final_after_ms or 0)
    clock = clocks_of(material, last).get(partition, UNKNOWN)
    return Waits(
        last.node, closes_at, None if clock == UNKNOWN else clock, _why(material, last, closes_at, partition, clock)
    )


def _why(material: Material, node: TimedNode, closes_at: int, partition: int, clock: int) -> str:
    return why_open(material, node, closes_at, {partition: clock})
