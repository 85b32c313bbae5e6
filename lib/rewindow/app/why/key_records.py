"""The records of a key: which of them are in the logs and in the window, and what happens to each of them in a replay."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Self

from rewindow.app.why.asked_window import AskedTime, sessions
from rewindow.app.why.history import Candidates, History
from rewindow.app.why.output import Output
from rewindow.app.why.waiting import Holding, holding, open_windows
from rewindow.control.health.phrases import counted, see_quarantined
from rewindow.control.ingest.protocols import LostRows
from rewindow.control.plan.job_state import run_ids
from rewindow.engine.worker.provenance.behind import Search, Wanted
from rewindow.engine.worker.provenance.extent import changes_keys, extents, own_key
from rewindow.engine.worker.provenance.origins import Cause
from rewindow.engine.worker.provenance.task_replay import Drop
from rewindow.engine.worker.provenance.watcher import Entry
from rewindow.engine.worker.worker_errors import as_in_a_worker
from rewindow.errors import ReasonMessage
from rewindow.streams.nodes import ProcessorNode, SourceNode
from rewindow.streams.record import UNKNOWN, TopicPartition, Window, Windowed
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows, sliding_starts
from rewindow.streams.windows.time import GridWindows, Windows
from rewindow.tables.shared.quarantine import Chosen


@dataclass(frozen=True)
class Asked:
    """The request to explain a key of an output: the key, the partition of its task, and its window.

    ``window`` is None if the output has no windows, or if it is unclear which window is meant. ``taken`` has the records of the
    key and window that runs have processed. ``waiting`` has the timestamps of landed records of the key that no run has
    processed.

    If windows are sessions, ``sessions`` has the sessions that all landed records of the key form. After `as_reached`, it has
    only the sessions of records that reached the windows.

    ``still_open`` has the open windows of the records in ``taken``, and ``window`` is the first of them. ``still_open`` is None
    if the user named a window, or if the open windows are unknown.
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
        """The windows to explain: the open windows, or the window that the user named. Empty if any window may be meant."""
        return self.still_open or ([] if self.window is None else [self.window])

    @property
    def key(self) -> Any:
        """The key, with its window if the window is known."""
        return self.own if self.window is None else Windowed(self.own, self.window)


def ask(past: History, key: Mapping[str, Sequence[Any]], start_ms: int | None, at: AskedTime | None) -> Asked:
    """Return the request for a key. If the user's text fits several keys, the first key with records in the logs is chosen.

    ``key`` maps each column to its possible values. ``start_ms`` is the window's start, or the named time ``at`` if only
    records show where its window starts. Raises `UsageError` (2) if several windows contain this time.
    """
    asked = [_asked(past, values, start_ms, at) for values in product(*key.values())]
    return next((one for one in asked if one.taken or one.waiting), asked[0])


def _asked(past: History, values: Sequence[Any], start_ms: int | None, at: AskedTime | None) -> Asked:
    output = past.output
    shape = output.layout.shapes[0]
    own = own_key(shape.decode((*values, 0, 0) if output.is_windowed else tuple(values)))
    partition = partition_of(own, output.job.feed.definition.partitions)
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
    """Return the start of a sentence that says why the logs cannot be searched for the output's keys; None if they can be."""
    layout = output.layout
    nodes = [*layout.topology.above(layout.sink)]
    if any(isinstance(node, SourceNode) and node.is_internal and not node.is_global for node in nodes):
        return "The key is made by a repartition"
    if (maker := next((node.name for node in nodes if changes_keys(node)), None)) is not None:
        return f"The key is made by {maker}"
    return "The job reads a global table" if len(layout.tasks()) > 1 else None


def contains(window: Window, time_ms: int, windows: Windows | None) -> bool:
    """Return whether a window contains a time. Sessions and sliding windows contain their end, windows on a grid do not."""
    return window.start_ms <= time_ms <= window.end_ms - isinstance(windows, GridWindows)


def _times(past: History, start_ms: int | None) -> tuple[int, int] | None:
    """Return the first and last time of the window that starts at ``start_ms``; None if only records show its bounds."""
    windows = past.output.windows if start_ms is not None and past.output.is_windowed else None
    if start_ms is None or not isinstance(windows, GridWindows):
        return None
    return start_ms, windows.window(start_ms).end_ms - 1


def _landed(past: History, own: Any, partition: int, times: tuple[int, int] | None) -> Candidates:
    """Return the landed records of a key. With ``times``, return only records between these two times.

    If the logs cannot be searched for the key, the result is empty.
    """
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
    """Return the window that contains a time, by default the window of the newest record; None if it is unclear.

    ``own``: the key's sessions. ``times``: the timestamps of its records, sorted. Raises `UsageError` (2) if several sliding
    windows contain the time.
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
"""Topic and offset of a record in the key's partition."""


@dataclass
class Outcomes:
    """What happened in a replay to the records in ``followed``.

    ``kept`` has the records that led to an entry in a store before the output. ``in_windows`` maps such a record to the starts
    of its windows. Only stores of the node that makes the windows count; if the output has no windows, all stores count.
    ``sessions`` has the sessions that these records formed, oldest first. Two of them may be closer than the gap, if the clock
    closed the first before the second began. ``drops`` has the records that nodes before the output dropped.
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
        """Return an object that collects what happens to the ``followed`` records on the way to an output."""
        layout = output.layout
        nodes = [node for node in layout.topology.above(layout.sink) if isinstance(node, ProcessorNode)]
        stores = frozenset(store for node in nodes for store in node.stores)
        windowed = output.windowed_node
        of_windows = stores if windowed is None else frozenset(windowed.stores)
        return cls(followed, stores, of_windows, has_windows=windowed is not None)

    def wrote(self, cause: Cause, entry: Entry) -> None:
        """Record that a followed record led to an entry of a store."""
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
        """Add a session in place of the sessions that were merged into it."""
        first = last = bisect_left(self.sessions, Window(session.start_ms, UNKNOWN))
        while last < len(self.sessions) and self.sessions[last].end_ms <= session.end_ms:
            last += 1
        self.sessions[first:last] = [session]

    def reached(self, where: Where, spans: Sequence[Window]) -> bool:
        """Return whether a record is in one of the windows ``spans``; if ``spans`` is empty, whether it is in any window.

        Sessions are not compared. A record is in one session only, whose start changes when the session grows.
        """
        starts, known = self.in_windows.get(where), {span.start_ms for span in spans if not span.is_session}
        return starts is not None and (not known or not known.isdisjoint(starts))

    def all_in(self, window: Window) -> set[tuple[str | None, int, int]]:
        """Return (topic, partition, offset) of the records in a window, including records that came after the row was sent."""
        return {
            (topic, partition, offset)
            for (topic, partition), known in self.followed.items()
            for offset in known
            if self.reached((topic, offset), [window])
        }

    def missed(self, spans: Sequence[Window]) -> list[Drop]:
        """Return the drops of the records that are in none of these windows.

        If windows overlap, a record may be dropped for some windows and still be in others. An output without windows returns
        all drops. For example, a join may have joined a record, and later drop it because it is too late to wait for a partner.
        """
        if not self.has_windows:
            return self.drops
        return [
            drop
            for drop in self.drops
            if not self.reached((drop.dropped.at.topic or "", drop.dropped.at.offset), spans)
        ]


def outcomes_of(past: History, asked: Asked) -> Outcomes:
    """Replay the input of the key's task, and return what happened to each of the key's records."""
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
    """Return the timestamps of the records in ``taken`` that are also in ``chosen``."""
    return [time for (topic, _), known in taken.items() for offset, time in known.items() if (topic, offset) in chosen]


def as_reached(past: History, asked: Asked, outcomes: Outcomes, start_ms: int | None) -> Asked:
    """Return the request with its sessions or sliding windows formed only from records that reached the windows.

    The request is unchanged if no record reached the windows, and for windows on a grid, whose bounds do not depend on records.
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
    """Return the drops of records that are missing in a window. ``used`` are the records that contributed to its row.

    If the code declares no windows, all drops are returned, because it is unknown which records a session lacks.
    """
    drops = [drop for drop in outcomes.missed([window]) if drop.dropped.at not in used]
    windows = output.windows
    if window.is_session and isinstance(windows, SessionWindows):
        return _of_session(window, drops, outcomes.followed, windows.gap_ms)
    return drops


def _of_session(session: Window, drops: Sequence[Drop], followed: Candidates, gap_ms: int) -> list[Drop]:
    """Return the drops of records whose time is within a session, or that would have extended the session."""
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
    """If landings of the feed quarantined rows with the key, yield their number and the reason for the last one."""
    feed, topics = past.output.job.feed, past.output.layout.external
    if not any((landing.counts or {}).get("quarantined") for landing in feed.landings):
        return
    of_feed = Chosen(feed.definition.feed, is_landing=True)
    key, logs, lost = _parts(own), feed.definition.logs, list[LostRows]()
    reasons = [
        row["reason"]
        for row in _rows(past, of_feed, own, lost)
        if row["topic"] in topics and _has(row["record"], [column.name for column in logs[row["topic"]].key], key)
    ]
    for path, rows in lost:
        yield ReasonMessage(
            "quarantined-rows-unknown",
            "whether the key is in the quarantine is not known: {path} is gone or damaged, and had {rows}",
            path=path,
            rows=counted(rows, "row"),
        )
    yield from _told(reasons, feed.definition.feed, "row", "is in the quarantine", "are in the quarantine")


def dropped_by_runs(past: History, own: Any, times: tuple[int, int] | None) -> Iterator[ReasonMessage]:
    """If runs quarantined records of a key (`dropped: quarantine`), yield their number and the reason for the last one.

    Only records between the two ``times`` count. A record counts once, and only if a node before the output dropped it. For a
    repartitioned key, only the quarantine has the dropped records.
    """
    runs, nodes = [*run_ids(past.output.branch.runs)], sorted(past.output.layout.leads_to_output())
    of_runs = Chosen(past.output.job.name, runs=runs, nodes=nodes, times=times)
    reasons = {
        (row["topic"], row["partition"], number if row["topic"] is None else row["offset"]): row["reason"]
        for number, row in enumerate(_rows(past, of_runs, own))  # the records of a punctuation have no position
        if _key(row["record"]) == _parts(own)
    }
    yield from _told([*reasons.values()], past.output.job.name, "record", "was dropped", "were dropped")


def _told(reasons: Sequence[str], of: str, noun: str, singular: str, plural: str) -> Iterator[ReasonMessage]:
    """If there are records, yield a sentence with their number, what happened to them, and the last of the reasons.

    ``of`` is the job or feed.
    """
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


def _rows(past: History, chosen: Chosen, own: Any, lost: list[LostRows] | None = None) -> Iterator[dict[str, Any]]:
    """Yield position, reason and record of those chosen rows that contain the texts of a key. Add lost files to ``lost``."""
    quarantine = past.output.tables.quarantine([past.output.job.feed.definition.feed])
    if quarantine is None:
        return
    parts = own if isinstance(own, tuple) else (own,)
    # Only texts of the key are searched for, because a number may be written in several ways.
    texts = [json.dumps(part, ensure_ascii=False)[1:-1] for part in parts if isinstance(part, str)]
    for batch in quarantine.batches(replace(chosen, texts=texts)):
        yield from batch.select(["topic", "partition", "offset", "reason", "record"]).to_pylist()
    if lost is not None:
        lost += quarantine.lost


def _parts(own: Any) -> list[str]:
    return [*map(str, own if isinstance(own, tuple) else (own,))]


def _key(record: str | None) -> list[str]:
    """Return the parts of the key of a record that a run dropped."""
    key: Any = json.loads(record or "{}").get("key")
    parts = key.values() if isinstance(key, dict) else key if isinstance(key, list) else [key]
    return [*map(str, parts)]


def _has(record: str | None, names: Sequence[str], parts: list[str]) -> bool:
    """Return whether a quarantined row has the parts of a key: in the key's columns, or in its text if it was not parsed."""
    columns: Any = json.loads(record or "{}")
    if isinstance(columns, dict) and columns.keys() >= set(names):
        return [str(columns[name]) for name in names] == parts
    texts = [str(value) for value in (columns.values() if isinstance(columns, dict) else [columns])]
    return all(part in texts or (len(texts) == 1 and part in texts[0]) for part in parts)
