"""The key and window that `why --missing` asks for, and the records that the logs have of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rewindow.app.why.history import History
from rewindow.app.why.row import Candidates
from rewindow.engine.worker.provenance.extent import own_key
from rewindow.report.nodes import TimedNode, timed_nodes
from rewindow.streams.record import TopicPartition, Window, Windowed
from rewindow.streams.serde.key_bytes import partition_of


@dataclass(frozen=True)
class Asked:
    """A key of an output, the partition of its task, and its window; None without windows, or if it could be any.

    ``taken`` are the records of the key and window that runs have taken, ``waiting`` how many others are landed.
    """

    own: Any
    partition: int
    window: Window | None
    taken: Candidates
    waiting: int

    @property
    def key(self) -> Any:
        """The key, windowed if the window is known."""
        return self.own if self.window is None else Windowed(self.own, self.window)


def ask(past: History, key: Mapping[str, Sequence[Any]], start_ms: int | None) -> Asked:
    """Return what is asked for: of the keys that a text may mean, the first one that the logs have."""
    asked = [_asked(past, values, start_ms) for values in product(*key.values())]
    return next((one for one in asked if one.taken or one.waiting), asked[0])


def _asked(past: History, values: Sequence[Any], start_ms: int | None) -> Asked:
    output = past.output
    shape = output.layout.shapes[0]
    own = own_key(shape.decode((*values, 0, 0) if output.is_windowed else tuple(values)))
    partition = 0 if own is None else partition_of(own, output.job.feed.definition.partitions)
    landed = _landed(past, own, partition, _times(past, start_ms))
    times = sorted(time for known in landed.values() for time in known.values())
    window = _window(past, times, start_ms) if output.is_windowed else None
    if window is not None:
        last_ms = window.end_ms if window.is_session else window.end_ms - 1
        landed = {
            where: {offset: time for offset, time in known.items() if window.start_ms <= time <= last_ms}
            for where, known in landed.items()
        }
    ends = {where: past.end(*where) for where in landed}
    taken = {
        where: {offset: time for offset, time in known.items() if offset < ends[where]}
        for where, known in landed.items()
    }
    waiting = sum(len(known) - len(taken[where]) for where, known in landed.items())
    return Asked(own, partition, window, {where: known for where, known in taken.items() if known}, waiting)


def _times(past: History, start_ms: int | None) -> tuple[int, int] | None:
    """Return the times of the window that starts at a time; None if that depends on the key's records."""
    node = windowed_node(past) if start_ms is not None and past.output.is_windowed else None
    if start_ms is None or node is None or node.size_ms is None:
        return None
    return start_ms, start_ms + node.size_ms - 1


def _landed(past: History, own: Any, partition: int, times: tuple[int, int] | None) -> Candidates:
    """Return the landed records of a key, within some times if they are known, if the key's task reads logs."""
    layout, feed = past.output.layout, past.output.job.feed
    if len(layout.tasks()) > 1 or not feed.landings:
        return {}
    found: Candidates = {}
    for source in layout.part.sources:
        landed = feed.landings[-1].ranges.get(TopicPartition(source.topic, partition))
        bounds = 0, landed.end if landed else 0
        found[source.topic, partition] = dict(past.records.of_key(source.topic, partition, own, bounds, times))
    return found


def _window(past: History, times: Sequence[int], start_ms: int | None) -> Window | None:
    """Return the window that starts at a time, by default that of the newest record; None if it cannot be told."""
    node = windowed_node(past)
    anchor = start_ms if start_ms is not None else max(times, default=None)
    if node is None or anchor is None:
        return None
    if node.gap_ms is not None:
        return _session(times, anchor, node.gap_ms)
    if node.size_ms is None or (start_ms is None and not node.has_one_window):
        return None
    start = anchor if start_ms is not None else anchor - anchor % node.size_ms
    return Window(start, start + node.size_ms)


def windowed_node(past: History) -> TimedNode | None:
    """Return the last node of the output's sub-topology that makes windows."""
    part = past.output.layout.part.index
    nodes = timed_nodes(past.last.spec.binding.topology)
    own = [node for node in nodes if node.sub_topology == part and (node.size_ms or node.gap_ms) is not None]
    return own[-1] if own else None


def _session(times: Iterable[int], anchor: int, gap_ms: int) -> Window:
    """Return the session around a time, given the times of the key's records."""
    start = end = anchor
    ordered = sorted(times)
    for time in reversed([one for one in ordered if one < anchor]):
        start = time if start - time <= gap_ms else start
    for time in [one for one in ordered if one > anchor]:
        end = time if time - end <= gap_ms else end
    return Window(start, end, is_session=True)
