"""Find out what a result waits for: the clock of a node, what stops this clock, and the open windows of a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewindow.app.why.answer_facts import OpenFacts
from rewindow.app.why.asked_window import sessions
from rewindow.app.why.history import Candidates, History
from rewindow.contracts.instants import instant
from rewindow.control.health.inputs import Inputs
from rewindow.control.health.phrases import counted
from rewindow.control.health.waiting_results import BUFFER_TIME, clocks_of, watermark_sentence, why_open
from rewindow.dsl.operators.stream_join import StreamJoin
from rewindow.errors import CheckpointError, ReasonMessage
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.record import UNKNOWN, Window, known_time
from rewindow.streams.timing import TimedNode, holding_nodes
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows, all_sliding_starts
from rewindow.streams.windows.time import GridWindows, Windows
from rewindow.tables.shared.state_query import Stores

_MOST_NAMED = 5
"""The maximum number of open windows that are listed."""


@dataclass(frozen=True, slots=True)
class Waits:
    """What a window's result waits for: a node, the time at which the result is final, and the node's clock (None if unknown).

    ``why`` says in words what prevents the clock from advancing.
    """

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
    """The last node that holds back an output's results, and its clock in one partition."""

    inputs: Inputs
    node: TimedNode
    partition: int
    clock: int
    buffered: Mapping[Window | None, int] | None = None
    """If the node has a time limit: maps each window to the time from which the limit counts for the key's result. In a
    table without windows, the window is None."""

    def closes_at(self, window: Window | None) -> int | None:
        """Return the time at which the result of a window is final; None if the node does not hold this result."""
        after_ms = self.node.final_after_ms or 0
        if self.buffered is not None:
            return self.buffered[window] + after_ms if window in self.buffered else None
        return None if window is None else window.end_ms + after_ms

    def is_open(self, window: Window) -> bool:
        """Return whether the clock has not reached the time at which a window's result is final."""
        closes_at = self.closes_at(window)
        return closes_at is not None and closes_at > self.clock

    def waits(self, window: Window | None) -> Waits | None:
        """Return what the result of a window waits for; None if the node does not hold this result."""
        closes_at = self.closes_at(window)
        if closes_at is None:
            return None
        reason = why_open(self.inputs, self.node, closes_at, {self.partition: self.clock})
        return Waits(self.node.node, closes_at, known_time(self.clock), reason.text)


def holding(past: History, partition: int, values: Sequence[Any]) -> Holding | None:
    """Return the last node that holds back the output's results; None if there is none, or if the last run was final.

    ``values`` are the values of the key's columns, without the window.
    """
    layout = past.output.layout
    # Only nodes before this output are searched, because other outputs of the sub-topology have other windows.
    own = {node.name for node in layout.topology.above(layout.sink)}
    nodes = [node for node in holding_nodes(past.timed) if node.sub_topology == layout.part.index and node.node in own]
    if not nodes or past.last.spec.final:
        return None
    inputs, last = _inputs(past), nodes[-1]
    buffered = _buffered(past, last.store, values) if last.sends_nulls else None
    if buffered is None and not past.output.is_windowed:
        return None
    return Holding(inputs, last, partition, clocks_of(inputs, last).get(partition, UNKNOWN), buffered)


def _buffered(past: History, store: str, own: Sequence[Any]) -> dict[Window | None, int]:
    """Return when the time limit began for each result of a key that a buffer holds, by window.

    The mapping is empty if `gc` has deleted the state after the last run.
    """
    try:
        stores = Stores(past.output.tables, past.output.state, past.last)
    except CheckpointError:
        return {}
    rows, keys = stores.rows(store).to_pylist(), stores.keys(store)
    names = keys[: len(own)]
    mine = [row for row in rows if all(row[name] == value for name, value in zip(names, own, strict=True))]
    is_windowed, is_session = past.output.is_windowed, isinstance(past.output.windows, SessionWindows)
    return {
        Window(row[keys[-2]], row[keys[-1]], is_session=is_session) if is_windowed else None: row[BUFFER_TIME]
        for row in mine
    }


def clock_sentences(past: History, partition: int) -> Iterator[ReasonMessage]:
    """Yield sentences about the clocks and schedules of the output's task after the last run."""
    part = past.output.layout.part.index
    state = _inputs(past).known_tasks.get((part, partition), {})
    stream_ms = state.get("stream_time_ms", UNKNOWN)
    if stream_ms != UNKNOWN:
        yield ReasonMessage(
            "stream-time",
            "Stream time of task {part}_{partition} is {time} after run {run}",
            part=part,
            partition=partition,
            time=instant(stream_ms),
            run=past.last.spec.name,
        )
    for schedule in state.get("schedules", ()):
        if not schedule.get("is_cancelled") and schedule.get("due_ms") is not None:
            yield ReasonMessage(
                "next-punctuation",
                "The next punctuation of {node} is due {time}",
                node=schedule["node"],
                time=instant(schedule["due_ms"]),
            )
    if past.last.spec.final:
        yield ReasonMessage(
            "no-run-follows", "Branch {branch} is sealed: no run follows", branch=past.output.branch.name
        )


def held_sentences(past: History) -> Iterator[ReasonMessage]:
    """If landed records wait for the feed's watermark, yield what the watermark waits for."""
    if reason := watermark_sentence(_inputs(past)):
        yield ReasonMessage("watermark-holds-back", "{reason}", reason=reason)


def partner_sentences(past: History, taken: Candidates) -> Iterator[ReasonMessage]:
    """Yield for which partners the key's processed records wait in joins of streams, and until when."""
    layout = past.output.layout
    newest_ms = max((time for known in taken.values() for time in known.values()), default=UNKNOWN)
    lacking = sorted(set(layout.external) - {topic for (topic, _), known in taken.items() if known})
    for node in layout.topology.above(layout.sink):
        join = node.supplier if isinstance(node, ProcessorNode) else None
        if isinstance(join, StreamJoin) and not join.keeps_left:
            is_known = bool(lacking) and not past.output.is_windowed
            none = f", and none of the key was taken from {' or '.join(lacking)}" if is_known else ""
            yield ReasonMessage(
                "join-needs-partner",
                "{node} sends nothing for a record without a partner{none}",
                node=node.name,
                none=none,
            )
        elif isinstance(join, StreamJoin) and not join.windows.is_eager:
            windows = join.windows
            ahead_ms = max(windows.after_ms, windows.before_ms) if join.keeps_right else windows.after_ms
            until_ms = newest_ms + ahead_ms + windows.grace_ms
            yield ReasonMessage(
                "join-waits-for-partner",
                "{node} sends a record without a partner once stream time is past {time}",
                node=node.name,
                time=instant(until_ms),
            )


def _inputs(past: History) -> Inputs:
    of, run = past.output, past.last
    return Inputs(of.branch, of.job.feed, [run], of.read_rules, {run.spec.run: of.tables.reports(run)})


def open_windows(
    windows: Windows | None, times: Iterable[int], held: Holding, known: Sequence[Window] | None = None
) -> list[Window]:
    """Return the windows of records with these times that the clock has not closed, oldest first.

    ``known``: the sessions that a replay has shown; None if no replay was made.
    """
    newest_first = sorted(set(times), reverse=True)
    made: Iterable[Window]
    if held.buffered is not None:
        made = [window for window in held.buffered if window is not None]
    elif isinstance(windows, SessionWindows):
        made = sessions(newest_first, windows.gap_ms) if known is None else known
    elif isinstance(windows, SlidingWindows):
        made = _sliding(windows.size_ms, newest_first, held)
    elif isinstance(windows, GridWindows):
        made = _on_grid(windows, newest_first, held)
    else:
        made = []
    return sorted(window for window in made if held.is_open(window))


def _sliding(size_ms: int, newest_first: Sequence[int], held: Holding) -> list[Window]:
    """Return the windows that end with a recent record or begin right after one. Other records have no open window."""
    recent = [time for time in newest_first if held.is_open(Window(time + 1, time + 1 + size_ms))]
    return [Window(start, start + size_ms) for start in all_sliding_starts(recent, size_ms)]


def _on_grid(windows: GridWindows, newest_first: Sequence[int], held: Holding) -> set[Window]:
    """Return the open windows of the records. The newest record comes first."""
    open_ones: set[Window] = set()
    for time in newest_first:
        own = [windows.window(start) for start in windows.starts(time)]
        if own and not held.is_open(own[-1]):
            # The newest record comes first, so the windows of all further records are closed, too.
            break
        open_ones.update(own)
    return open_ones


def open_headline(windows: Sequence[OpenFacts]) -> ReasonMessage:
    """Return a sentence that says until what time the windows of a key are open."""
    which, until = f"the window from {instant(windows[0].start_ms)} is open", ""
    if len(windows) > 1:
        which, until = f"{len(windows):,} windows of the key are open", ", the first of them"
    return ReasonMessage(
        "window-still-open",
        "{which}{first} until {time}",
        which=which,
        first=until,
        time=instant(windows[0].closes_at_ms),
    )


def open_sentences(windows: Sequence[OpenFacts]) -> Iterator[ReasonMessage]:
    """If there are several windows, yield for each until when it is open, and how many records it has."""
    for window in windows[:_MOST_NAMED] if len(windows) > 1 else ():
        yield ReasonMessage(
            "open-window",
            "The window from {start} is open until {end}, and has {records} so far",
            start=instant(window.start_ms),
            end=instant(window.closes_at_ms),
            records=counted(window.records, "record"),
        )
    if len(windows) > _MOST_NAMED:
        yield ReasonMessage("more-open-windows", "{count:,} more windows close later", count=len(windows) - _MOST_NAMED)
