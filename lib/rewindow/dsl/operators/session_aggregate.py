"""Aggregates by key and session: a record joins the sessions that it touches, and they become one.

1. The node's clock moves.
2. A record at ``t`` touches each session with ``end >= t - gap`` and ``start <= t + gap``: exactly the gap apart is
   still together. Together with the record they are one session. What is closed and past its retention by the node's
   clock is not there: the store has forgotten it, unless a watermark moved the clock, of which the store does not know.
3. That is late, and dropped, if its end lies before ``clock - gap - grace``. So an old record that joins an open session is
   not late.
4. A tombstone is sent for each session that was touched, by end, with its end for a timestamp; then the new session, with
   its own end. A record that changes no bounds of a session sends both too, but for one of a single time: that is
   just updated.
5. The state is folded from the start: the sessions by end, then the record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rewindow.dsl.operators.aggregates import Aggregator
from rewindow.dsl.operators.windowed import EmitStrategy, WindowedProcessor, described_windows
from rewindow.streams.processor import Processor
from rewindow.streams.processor_context import ProcessorContext
from rewindow.streams.record import Change, Record, Window, Windowed
from rewindow.streams.serde.values import copied
from rewindow.streams.windows.session_sliding import SessionWindows

Merger = Callable[[Any, Any, Any], Any]
"""Takes the key and the states of two sessions that meet, the earlier one first; returns the state of both."""


@dataclass(frozen=True, slots=True)
class Merging:
    """The merger that an aggregate brings itself (`Mergeable`)."""

    aggregate: Any

    def __call__(self, key: Any, one: Any, later: Any) -> Any:
        del key
        return self.aggregate.merge(one, later)


@dataclass(frozen=True, slots=True)
class SessionAggregate:
    """Aggregate by key and session. A null key is skipped and moves no clock; a null value is aggregated."""

    windows: SessionWindows
    aggregator: Aggregator
    merger: Merger
    store: str
    emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE

    def __call__(self) -> Processor:
        return _SessionAggregate(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return described_windows(self)


class _SessionAggregate(WindowedProcessor):
    def __init__(self, settings: SessionAggregate) -> None:
        super().__init__(settings)
        self._gap_ms, self._grace_ms = settings.windows.gap_ms, settings.windows.grace_ms
        self._merge = settings.merger

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._gone_after_ms = max(self._gap_ms + self._grace_ms, self._store.builder.retention_ms - 1)

    def process(self, record: Record) -> None:
        key, timestamp = record.key, record.timestamp
        if key is None:
            self._skip(record)
            return
        clock_ms = self._take_time(timestamp)
        open_from_ms = clock_ms - self._gap_ms - self._grace_ms
        ends_from_ms = max(timestamp - self._gap_ms, clock_ms - self._gone_after_ms)
        touched = list(self._store.find_sessions(key, ends_from_ms, timestamp + self._gap_ms))
        bounds = [session.window for session, _ in touched]
        start_ms = min([timestamp, *(one.start_ms for one in bounds)])
        end_ms = max([timestamp, *(one.end_ms for one in bounds)])
        if end_ms < open_from_ms:
            self._drop_late(record)
            return
        self._join(record, touched, Windowed(key, Window(start_ms, end_ms, is_session=True)))

    def _join(self, record: Record, touched: list[tuple[Windowed, Any]], joined: Windowed) -> None:
        key, value, timestamp, headers = record
        aggregator, (start_ms, end_ms, _) = self._aggregator, joined.window
        old_result = None
        state = copied(aggregator.start())
        for session, one in touched:
            result = aggregator.result(one)
            state = self._merge(key, state, one)
            if start_ms == end_ms == timestamp:
                old_result = result
                continue
            self._store.remove(session)
            self._forward(Record(session, Change(None, result), session.window.end_ms, headers))
        state = aggregator.add(key, value, state)
        self._store.put(joined, state)
        result = None if state is None else aggregator.result(state)
        self._forward(Record(joined, Change(result, old_result), end_ms, headers))

    def _forward(self, record: Record) -> None:
        if self._sends_updates:
            self.context.forward(record)
