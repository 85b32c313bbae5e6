"""The records of a key: those that the logs have in the window that is asked for, and what a replay does with each."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Self

from rewindow.app.why.history import Candidates, History
from rewindow.app.why.output import AskedTime, Output, sessions, sliding_starts
from rewindow.app.why.waiting import Holding, holding, open_windows
from rewindow.control.health.phrases import counted, see_quarantined
from rewindow.control.plan.job_state import run_ids
from rewindow.engine.worker.failures import as_in_a_worker
from rewindow.engine.worker.provenance.behind import Search, Wanted
from rewindow.engine.worker.provenance.extent import changes_keys, extents, own_key
from rewindow.engine.worker.provenance.origins import Cause
from rewindow.engine.worker.provenance.task_replay import Drop
from rewindow.engine.worker.provenance.watcher import Entry
from rewindow.errors import ReasonMessage
from rewindow.streams.nodes import ProcessorNode, SourceNode
from rewindow.streams.record import UNKNOWN, TopicPartition, Window, Windowed
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import GridWindows, Windows
from rewindow.tables.shared.quarantine import Chosen


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
    windows = output.windows if output.is_windowed else None
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
    windows = past.output.windows if start_ms is not None and past.output.is_windowed else None
    if start_ms is None or not isinstance(windows, GridWindows):
        return None
    return start_ms, windows.window(start_ms).end_ms - 1


def _landed(past: History, own: Any, partition: int, times: tuple[int, int] | None) -> Candidates:
    """Return the landed records of a key, within some times if they are known, if the key's task reads logs."""
    layout, feed = past.output.layout, past.output.job.feed
    if not_looked_for(past.output) is not None or not feed.landings:
        return {}
    landed_records: Candidates = {}
    for source in layout.part.sources:
        landed = feed.landings[-1].ranges.get(TopicPartition(source.topic, partition))
        bounds = 0, landed.end if landed else 0
        landed_records[source.topic, partition] = dict(past.records.of_key(source.topic, partition, own, bounds, times))
    return landed_records


def _window(
    windows: Windows | None, own: Sequence[Window], times: Sequence[int], start_ms: int | None, at: AskedTime | None
) -> Window | None:
    """Return the window that starts at a time, by default that of the newest record; None if it cannot be told.

    ``own`` are the key's sessions. Raises `UsageError` (2) if several sliding windows contain the time.
    """
    if isinstance(windows, SessionWindows):
        if start_ms is None:
            return own[-1] if own else None
        around = [session for session in own if session.start_ms <= start_ms <= session.end_ms]
        return around[0] if around else Window(start_ms, start_ms, is_session=True)
    if isinstance(windows, SlidingWindows) and start_ms is not None and at is not None:
        start = at.only(sliding_starts(times, start_ms, windows.size_ms))
        return Window(start, start + windows.size_ms)
    if isinstance(windows, GridWindows) and start_ms is not None:
        return windows.window(start_ms)
    if isinstance(windows, GridWindows) and times and len(starts := windows.starts(times[-1])) == 1:
        return windows.window(starts[0])
    return None


Where = tuple[str, int]
"""A record of the key's partition: its topic and offset."""


@dataclass
class Outcomes:
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
        windowed = output.windowed_node
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
            drop
            for drop in self.drops
            if not self.reached((drop.dropped.at.topic or "", drop.dropped.at.offset), spans)
        ]


def outcomes_of(past: History, asked: Asked) -> Outcomes:
    """Replay the input of the key's task, and note the outcome of each of the key's records."""
    traced, outcomes = past.output.traced(asked.partition), Outcomes.following(past.output, asked.taken)
    if not asked.taken:
        return outcomes
    nothing = Search(traced, Wanted({}, past.epochs[-1].number + 1))
    oldest = min(time for known in asked.taken.values() for time in known.values())
    extent = extents(traced, asked.key, oldest)[0]
    epochs = past.within(extent, asked.own, asked.partition, past.epochs[-1].number, {})
    reading = past.reading(nothing, extent, asked.own, {})
    with as_in_a_worker():
        traced.replay(epochs, reading, nothing.take, outcomes.drops.append, outcomes.wrote, nothing.follow)
    return outcomes


def among(taken: Candidates, chosen: Collection[Where]) -> list[int]:
    """Return the times of the chosen ones of some records."""
    return [time for (topic, _), known in taken.items() for offset, time in known.items() if (topic, offset) in chosen]


def as_reached(past: History, asked: Asked, outcomes: Outcomes, start_ms: int | None) -> Asked:
    """Return what is asked for, with the sessions or sliding windows of only the records that reached the windows.

    Nothing changes if none did, and for a grid of windows, which no records make.
    """
    windows, times = past.output.windows, among(asked.taken, outcomes.in_windows)
    if not times or not past.output.is_windowed or not isinstance(windows, SessionWindows | SlidingWindows):
        return asked
    own = outcomes.sessions
    still_open = asked.still_open
    if still_open is not None and asked.holding is not None:
        still_open = open_windows(windows, times, asked.holding, own)
    window = asked.window
    if still_open:
        window = still_open[0]
    elif own:
        window = (
            own[-1]
            if start_ms is None
            else next((session for session in own if contains(session, start_ms, windows)), None)
        )
    spans = still_open or ([] if window is None else [window])
    taken = asked.taken if not spans else _within(asked.taken, spans, windows)
    return replace(asked, window=window, taken=taken, sessions=own, still_open=still_open)


def _within(taken: Candidates, spans: Iterable[Window], windows: Windows | None) -> Candidates:
    return {
        where: {
            offset: time for offset, time in known.items() if any(contains(window, time, windows) for window in spans)
        }
        for where, known in taken.items()
    }


def missed(
    output: Output, outcomes: Outcomes, window: Window, used: Collection[tuple[str | None, int, int]]
) -> list[Drop]:
    """Return the drops of the followed records that a window lacks. ``used``: those that its row is made of.

    If the code declares no windows, the records that a session lacks are unknown: all that were dropped are returned.
    """
    drops = [drop for drop in outcomes.missed([window]) if drop.dropped.at not in used]
    windows = output.windows
    if window.is_session and isinstance(windows, SessionWindows):
        return _of_session(window, drops, outcomes.followed, windows.gap_ms)
    return drops


def _of_session(session: Window, drops: Sequence[Drop], followed: Candidates, gap_ms: int) -> list[Drop]:
    """Return the drops of records that would have made a session longer, or of times within it."""
    timed = []
    for drop in drops:
        topic, partition, offset = drop.dropped.at
        if (time := followed.get((topic or "", partition), {}).get(offset)) is not None:
            timed.append((drop, time))
    times = sorted(time for _, time in timed)
    start_ms, end_ms, _ = session
    for time in reversed(times):
        if start_ms - gap_ms <= time < start_ms:
            start_ms = time
    for time in times:
        if end_ms < time <= end_ms + gap_ms:
            end_ms = time
    return [drop for drop, time in timed if start_ms <= time <= end_ms]


def quarantined(past: History, own: Any) -> Iterator[ReasonMessage]:
    """Yield how many quarantined rows of the feed's landings have the key, and why the last of them; nothing if none has it."""
    feed, topics = past.output.job.feed, past.output.layout.external
    if not any((landing.counts or {}).get("quarantined") for landing in feed.landings):
        return
    of_feed = Chosen(feed.definition.feed, is_landing=True)
    key, logs = _parts(own), feed.definition.logs
    reasons = [
        row["reason"]
        for row in _rows(past, of_feed, own)
        if row["topic"] in topics and _has(row["record"], [column.name for column in logs[row["topic"]].key], key)
    ]
    yield from _told(reasons, feed.definition.feed, "row", "is in the quarantine", "are in the quarantine")


def dropped_by_runs(past: History, own: Any, times: tuple[int, int] | None) -> Iterator[ReasonMessage]:
    """Yield how many records of a key the branch's runs put into the quarantine (`dropped: quarantine`), and why the last one.

    ``times``: the first and the last time that count. The drops of a repartitioned key are only in the quarantine. A record
    counts once, and only if a node that leads to the output dropped it.
    """
    runs, nodes = [*run_ids(past.output.branch.runs)], sorted(past.output.layout.leads_to_output())
    of_runs = Chosen(past.output.job.name, runs=runs, nodes=nodes, times=times)
    reasons = {
        (row["topic"], row["partition"], number if row["topic"] is None else row["offset"]): row["reason"]
        for number, row in enumerate(_rows(past, of_runs, own))  # a punctuation's records have no place
        if _key(row["record"]) == _parts(own)
    }
    yield from _told([*reasons.values()], past.output.job.name, "record", "was dropped", "were dropped")


def _told(reasons: Sequence[str], of: str, noun: str, singular: str, plural: str) -> Iterator[ReasonMessage]:
    """Yield their number, their outcome, and the last reason; nothing if there are none. ``of`` is the job or feed."""
    if reasons:
        verb, which = (singular, "") if len(reasons) == 1 else (plural, "the last one ")
        yield ReasonMessage(
            "key-in-quarantine",
            "{records} with this key {verb}, {which}because of: {reason} (`{command}`)",
            records=counted(len(reasons), noun),
            verb=verb,
            which=which,
            reason=reasons[-1],
            command=see_quarantined(of),
        )


def _rows(past: History, chosen: Chosen, own: Any) -> Iterator[dict[str, Any]]:
    """Yield the place, reason and record of the chosen rows that contain the texts of a key."""
    quarantine = past.output.tables.quarantine([past.output.job.feed.definition.feed])
    if quarantine is None:
        return
    parts = own if isinstance(own, tuple) else (own,)
    # numbers may be written in other ways
    texts = [json.dumps(part, ensure_ascii=False)[1:-1] for part in parts if isinstance(part, str)]
    for batch in quarantine.batches(replace(chosen, texts=texts)):
        yield from batch.select(["topic", "partition", "offset", "reason", "record"]).to_pylist()


def _parts(own: Any) -> list[str]:
    return [*map(str, own if isinstance(own, tuple) else (own,))]


def _key(record: str | None) -> list[str]:
    """Return the parts of the key of a record that a run dropped."""
    key: Any = json.loads(record or "{}").get("key")
    parts = key.values() if isinstance(key, dict) else key if isinstance(key, list) else [key]
    return [*map(str, parts)]


def _has(record: str | None, names: Sequence[str], parts: list[str]) -> bool:
    """Whether a quarantined row has the parts of a key in the key's columns, or in its text if it could not be parsed."""
    columns: Any = json.loads(record or "{}")
    if isinstance(columns, dict) and columns.keys() >= set(names):
        return [str(columns[name]) for name in names] == parts
    texts = [str(value) for value in (columns.values() if isinstance(columns, dict) else [columns])]
    return all(part in texts or (len(texts) == 1 and part in texts[0]) for part in parts)
