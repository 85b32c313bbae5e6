"""The key and window that `why --missing` asks for, and the records that the logs have of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rewindow.app.why.history import Candidates, History
from rewindow.app.why.output import Output
from rewindow.app.why.waiting import Holding, holding, open_windows
from rewindow.app.why.windows import AskedTime, sessions, sliding_starts, windows_of
from rewindow.engine.worker.provenance.extent import changes_keys, own_key
from rewindow.streams.nodes import SourceNode
from rewindow.streams.record import TopicPartition, Window, Windowed
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import GridWindows, Windows


@dataclass(frozen=True)
class Asked:
    """A key of an output, the partition of its task, and its window; None without windows, or if it could be any.

    ``taken`` are the records of the key and window that runs have taken, ``waiting`` the times of others that are landed.
    ``sessions`` are those that all landed records of the key make, if its windows are sessions. `record_outcomes.as_reached`
    leaves out records that reach no window. ``still_open`` are the open windows that the taken records make, of which
    ``window`` is the first; None if a window was asked for, or if they are unknown.
    """

    own: Any
    partition: int
    window: Window | None
    taken: Candidates
    waiting: Sequence[int]
    sessions: Sequence[Window]
    still_open: Sequence[Window] | None
    holding: Holding | None

    @property
    def spans(self) -> Sequence[Window]:
        """The windows that it is about: the open ones, or the one that is asked for; none if it could be any."""
        return self.still_open or ([] if self.window is None else [self.window])

    @property
    def key(self) -> Any:
        """The key, windowed if the window is known."""
        return self.own if self.window is None else Windowed(self.own, self.window)


def ask(past: History, key: Mapping[str, Sequence[Any]], start_ms: int | None, at: AskedTime | None) -> Asked:
    """Return what is asked for: of the keys that a text may mean, the first one that the logs have.

    ``start_ms``: the window's start, or the time ``at`` in it if only records tell where it starts. Raises `UsageError` (2) if
    several windows contain that time.
    """
    asked = [_asked(past, values, start_ms, at) for values in product(*key.values())]
    return next((one for one in asked if one.taken or one.waiting), asked[0])


def _asked(past: History, values: Sequence[Any], start_ms: int | None, at: AskedTime | None) -> Asked:
    output = past.output
    shape = output.layout.shapes[0]
    own = own_key(shape.decode((*values, 0, 0) if output.is_windowed else tuple(values)))
    partition = 0 if own is None else partition_of(own, output.job.feed.definition.partitions)
    landed = _landed(past, own, partition, _times(past, start_ms))
    times = sorted(time for known in landed.values() for time in known.values())
    windows = windows_of(output) if output.is_windowed else None
    own_sessions = sessions(times, windows.gap_ms) if isinstance(windows, SessionWindows) else []
    ends = {where: past.end(*where) for where in landed}
    held = holding(past, partition, values)
    still_open = None
    if start_ms is None and held is not None and landed and output.is_windowed:
        taken_times = [
            time for where, known in landed.items() for offset, time in known.items() if offset < ends[where]
        ]
        still_open = open_windows(windows, taken_times, held)
    window = still_open[0] if still_open else _window(windows, own_sessions, times, start_ms, at)
    spans = still_open or ([] if window is None else [window])
    taken: dict[tuple[str, int], dict[int, int]] = {}
    waiting: list[int] = []
    for where, known in landed.items():
        for offset, time in known.items():
            is_inside = not spans or any(contains(one, time, windows) for one in spans)
            if offset >= ends[where]:
                waiting += [time] if is_inside or start_ms is None else []
            elif is_inside:
                taken.setdefault(where, {})[offset] = time
    return Asked(own, partition, window, taken, waiting, own_sessions, still_open, held)


def not_looked_for(output: Output) -> str | None:
    """Return why the logs are not asked for the output's keys, as the start of a sentence; None if they are."""
    layout = output.layout
    nodes = [*layout.topology.above(layout.sink)]
    if any(isinstance(node, SourceNode) and node.is_internal and not node.is_global for node in nodes):
        return "The key is made by a repartition"
    if (maker := next((node.name for node in nodes if changes_keys(node)), None)) is not None:
        return f"The key is made by {maker}"
    return "The job reads a global table" if len(layout.tasks()) > 1 else None


def contains(window: Window, time_ms: int, windows: Windows | None) -> bool:
    """Whether a window contains a time. The ends of sessions and of sliding windows belong to them."""
    return window.start_ms <= time_ms <= window.end_ms - isinstance(windows, GridWindows)


def _times(past: History, start_ms: int | None) -> tuple[int, int] | None:
    """Return the times of the window that starts at a time; None if that depends on the key's records."""
    windows = windows_of(past.output) if start_ms is not None and past.output.is_windowed else None
    if start_ms is None or not isinstance(windows, GridWindows):
        return None
    return start_ms, windows.window(start_ms).end_ms - 1


def _landed(past: History, own: Any, partition: int, times: tuple[int, int] | None) -> Candidates:
    """Return the landed records of a key, within some times if they are known, if the key's task reads logs."""
    layout, feed = past.output.layout, past.output.job.feed
    if not_looked_for(past.output) is not None or not feed.landings:
        return {}
    found: Candidates = {}
    for source in layout.part.sources:
        landed = feed.landings[-1].ranges.get(TopicPartition(source.topic, partition))
        bounds = 0, landed.end if landed else 0
        found[source.topic, partition] = dict(past.records.of_key(source.topic, partition, own, bounds, times))
    return found


def _window(
    windows: Windows | None, own: Sequence[Window], times: Sequence[int], start_ms: int | None, at: AskedTime | None
) -> Window | None:
    """Return the window that starts at a time, by default that of the newest record; None if it cannot be told.

    ``own`` are the key's sessions. Raises `UsageError` (2) if several sliding windows contain the time.
    """
    if isinstance(windows, SessionWindows):
        if start_ms is None:
            return own[-1] if own else None
        around = [one for one in own if one.start_ms <= start_ms <= one.end_ms]
        return around[0] if around else Window(start_ms, start_ms, is_session=True)
    if isinstance(windows, SlidingWindows) and start_ms is not None and at is not None:
        start = at.only(sliding_starts(times, start_ms, windows.size_ms))
        return Window(start, start + windows.size_ms)
    if isinstance(windows, GridWindows) and start_ms is not None:
        return windows.window(start_ms)
    if isinstance(windows, GridWindows) and times and len(starts := windows.starts(times[-1])) == 1:
        return windows.window(starts[0])
    return None
