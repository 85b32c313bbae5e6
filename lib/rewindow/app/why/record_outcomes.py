"""Replay the records of a key, and note which of them reached a store and which were dropped."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from rewindow.app.why.asked import Asked, contains
from rewindow.app.why.history import Candidates, History
from rewindow.app.why.output import Output
from rewindow.app.why.waiting import open_windows
from rewindow.app.why.windows import windowed_node, windows_of
from rewindow.engine.worker.code_of_users import as_in_a_worker
from rewindow.engine.worker.provenance.behind import Search, Wanted
from rewindow.engine.worker.provenance.extent import extents
from rewindow.engine.worker.provenance.origins import Cause
from rewindow.engine.worker.provenance.task_replay import Drop
from rewindow.engine.worker.provenance.watcher import Entry
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.record import UNKNOWN, Window
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import Windows

Where = tuple[str, int]
"""A record of the key's partition: its topic and offset."""


@dataclass
class Fate:
    """The outcomes of the ``followed`` records in a replay. Each record is given as its topic and offset.

    ``kept`` are those that a store above the output took, ``in_windows`` those that the store of its windows took, each with the
    starts of these windows: any store if it has none. ``sessions`` are those that they made, oldest first. Records within the
    gap may be in two, if the clock had closed the first before the second began. ``drops`` are what nodes that lead to the
    output dropped.
    """

    followed: Candidates = field(default_factory=dict)
    stores: frozenset[str] = frozenset()
    of_windows: frozenset[str] = frozenset()
    has_windows: bool = False
    kept: set[Where] = field(default_factory=set)
    in_windows: dict[Where, set[int]] = field(default_factory=dict)
    sessions: list[Window] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)

    @classmethod
    def following(cls, output: Output, followed: Candidates) -> Self:
        """Return what follows records to an output."""
        layout = output.layout
        nodes = [node for node in layout.topology.above(layout.sink) if isinstance(node, ProcessorNode)]
        stores = frozenset(store for node in nodes for store in node.stores)
        windowed = windowed_node(output)
        of_windows = stores if windowed is None else frozenset(windowed.stores)
        return cls(followed, stores, of_windows, has_windows=windowed is not None)

    def wrote(self, cause: Cause, entry: Entry) -> None:
        """Note that a record led to an entry of a store."""
        store, _, position = entry
        if cause.topic is None or cause.offset not in self.followed.get((cause.topic, cause.partition), {}):
            return
        where = cause.topic, cause.offset
        if store in self.stores:
            self.kept.add(where)
        if store in self.of_windows:
            start_ms = position
            if isinstance(position, tuple):
                start_ms, end_ms = position
                self._add_session(Window(start_ms, end_ms, is_session=True))
            self.in_windows.setdefault(where, set()).add(start_ms)

    def _add_session(self, session: Window) -> None:
        """Replace the sessions that are merged into one by that one."""
        first = last = bisect_left(self.sessions, Window(session.start_ms, UNKNOWN))
        while last < len(self.sessions) and self.sessions[last].end_ms <= session.end_ms:
            last += 1
        self.sessions[first:last] = [session]

    def reached(self, where: Where, spans: Sequence[Window]) -> bool:
        """Whether a record is in one of some windows, or in any if there are none. It has one session, which may grow."""
        starts, known = self.in_windows.get(where), {span.start_ms for span in spans if not span.is_session}
        return starts is not None and (not known or not known.isdisjoint(starts))

    def all_in(self, window: Window) -> set[tuple[str | None, int, int]]:
        """Return the topic, partition and offset of the records that are in a window, also those after a row was sent."""
        return {
            (topic, partition, offset)
            for (topic, partition), known in self.followed.items()
            for offset in known
            if self.reached((topic, offset), [window])
        }

    def missed(self, spans: Sequence[Window]) -> list[Drop]:
        """Return the drops of records that are in none of these windows. A record may miss some of several overlapping ones.

        Without windows, these are all: a join drops what is too late to wait for a partner, but looks for one before.
        """
        if not self.has_windows:
            return self.drops
        return [
            one for one in self.drops if not self.reached((one.dropped.at.topic or "", one.dropped.at.offset), spans)
        ]


def fate_of(past: History, asked: Asked) -> Fate:
    """Replay the input of the key's task, and note the outcome of each of the key's records."""
    traced, fate = past.output.traced(asked.partition), Fate.following(past.output, asked.taken)
    if not asked.taken:
        return fate
    nothing = Search(traced, Wanted({}, past.epochs[-1].number + 1))
    oldest = min(time for known in asked.taken.values() for time in known.values())
    extent = extents(traced, asked.key, oldest)[0]
    epochs = past.within(extent, asked.own, asked.partition, past.epochs[-1].number, {})
    reading = past.reading(nothing, extent, asked.own, {})
    with as_in_a_worker():
        traced.replay(epochs, reading, nothing.take, fate.drops.append, fate.wrote, nothing.follow)
    return fate


def among(taken: Candidates, chosen: Collection[Where]) -> list[int]:
    """Return the times of the chosen ones of some records."""
    return [time for (topic, _), known in taken.items() for offset, time in known.items() if (topic, offset) in chosen]


def as_reached(past: History, asked: Asked, fate: Fate, start_ms: int | None) -> Asked:
    """Return what is asked for, with the sessions or sliding windows of only the records that reached the windows.

    Nothing changes if none did, and for a grid of windows, which no records make.
    """
    windows, times = windows_of(past.output), among(asked.taken, fate.in_windows)
    if not times or not past.output.is_windowed or not isinstance(windows, SessionWindows | SlidingWindows):
        return asked
    own = fate.sessions
    still_open = asked.still_open
    if still_open is not None and asked.holding is not None:
        still_open = open_windows(windows, times, asked.holding, own)
    window = asked.window
    if still_open:
        window = still_open[0]
    elif own:
        window = own[-1] if start_ms is None else next((one for one in own if contains(one, start_ms, windows)), None)
    spans = still_open or ([] if window is None else [window])
    taken = asked.taken if not spans else _within(asked.taken, spans, windows)
    return replace(asked, window=window, taken=taken, sessions=own, still_open=still_open)


def _within(taken: Candidates, spans: Iterable[Window], windows: Windows | None) -> Candidates:
    return {
        where: {offset: time for offset, time in known.items() if any(contains(one, time, windows) for one in spans)}
        for where, known in taken.items()
    }


def missed(output: Output, fate: Fate, window: Window, used: Collection[tuple[str | None, int, int]]) -> list[Drop]:
    """Return the drops of the followed records that a window lacks. ``used``: those that its row is made of.

    If the code declares no windows, the records that a session lacks are unknown: all that were dropped are returned.
    """
    drops = [one for one in fate.missed([window]) if one.dropped.at not in used]
    windows = windows_of(output)
    if window.is_session and isinstance(windows, SessionWindows):
        return _of_session(window, drops, fate.followed, windows.gap_ms)
    return drops


def _of_session(session: Window, drops: Sequence[Drop], followed: Candidates, gap_ms: int) -> list[Drop]:
    """Return the drops of records that would have made a session longer, or of times within it."""
    timed = []
    for one in drops:
        topic, partition, offset = one.dropped.at
        if (time := followed.get((topic or "", partition), {}).get(offset)) is not None:
            timed.append((one, time))
    times = sorted(time for _, time in timed)
    start_ms, end_ms, _ = session
    for time in reversed(times):
        if start_ms - gap_ms <= time < start_ms:
            start_ms = time
    for time in times:
        if end_ms < time <= end_ms + gap_ms:
            end_ms = time
    return [one for one, time in timed if start_ms <= time <= end_ms]
