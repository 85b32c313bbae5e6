"""What became of the records of a key: a replay tells which of them reached a store, and which were dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from rewindow.app.hints import above
from rewindow.app.why.asked import Asked, contains
from rewindow.app.why.history import History
from rewindow.app.why.open_windows import open_windows
from rewindow.app.why.row import Candidates
from rewindow.app.why.windows import sessions, windowed_node, windows_of
from rewindow.engine.worker.inline import as_in_a_worker
from rewindow.engine.worker.provenance.behind import Search, Wanted
from rewindow.engine.worker.provenance.extent import extents
from rewindow.engine.worker.provenance.origins import Cause
from rewindow.engine.worker.provenance.replay import Drop
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.record import Window
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import Windows


@dataclass
class Fate:
    """What became of the records of a key, each given as its topic and offset.

    ``kept`` are those that a store above the output took, ``in_windows`` those that the store of its windows took: any store if
    it has none.
    """

    kept: set[tuple[str, int]] = field(default_factory=set)
    in_windows: set[tuple[str, int]] = field(default_factory=set)
    drops: list[Drop] = field(default_factory=list)


def fate_of(past: History, asked: Asked) -> Fate:
    """Replay what the key's task took, and note what became of the key's records."""
    traced, fate, layout = past.output.traced(asked.partition), Fate(), past.output.layout
    if not asked.taken:
        return fate
    nodes = [node for node in above(layout.topology, layout.sink) if isinstance(node, ProcessorNode)]
    stores = {store for node in nodes for store in node.stores}
    windowed = windowed_node(past.output)
    of_windows = stores if windowed is None else set(windowed.stores)

    def wrote(cause: Cause, store: str) -> None:
        if cause.topic is not None and cause.offset in asked.taken.get((cause.topic, cause.partition), {}):
            where = cause.topic, cause.offset
            if store in stores:
                fate.kept.add(where)
            if store in of_windows:
                fate.in_windows.add(where)

    nothing = Search(traced, Wanted({}, past.epochs[-1].number + 1))
    oldest = min(time for known in asked.taken.values() for time in known.values())
    extent = extents(traced, asked.key, oldest)[0]
    epochs = past.within(extent, asked.own, asked.partition, past.epochs[-1].number, {})
    reading = past.reading(nothing, extent, asked.own, {})
    with as_in_a_worker():
        traced.replay(epochs, reading, nothing.take, fate.drops.append, wrote, nothing.follow)
    return fate


def among(taken: Candidates, chosen: set[tuple[str, int]]) -> list[int]:
    """Return the times of the chosen ones of some records."""
    return [time for (topic, _), known in taken.items() for offset, time in known.items() if (topic, offset) in chosen]


def as_reached(past: History, asked: Asked, fate: Fate, start_ms: int | None) -> Asked:
    """Return what is asked for, with the sessions or sliding windows of only the records that reached the windows.

    Nothing changes if none did, and for a grid of windows, which no records make.
    """
    windows, times = windows_of(past.output), among(asked.taken, fate.in_windows)
    if not times or not past.output.is_windowed or not isinstance(windows, SessionWindows | SlidingWindows):
        return asked
    own = sessions(times, windows.gap_ms) if isinstance(windows, SessionWindows) else []
    still_open = asked.still_open
    if still_open is not None and asked.holding is not None:
        still_open = open_windows(windows, times, asked.holding)
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
