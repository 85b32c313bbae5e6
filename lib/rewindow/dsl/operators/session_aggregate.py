"""Aggregation by key and session: a record and all sessions within the gap are merged into one session.

1. The node's clock advances.
2. A record at ``t`` touches each session with ``end >= t - gap`` and ``start <= t + gap``. The record and the touched sessions
   form the merged session. A session is ignored if, by the node's clock, it is closed and its retention is over. Usually the
   store has already expired it, but watermarks advance only the node's clock, not the store's.
3. The record is late, and is dropped, if the merged session ends before ``clock - gap - grace``. So an old record that touches
   an open session is not late.
4. A tombstone is sent for each touched session, in the order of their ends; its timestamp is the session's end. Then the merged
   session is sent, with its own end as timestamp. This also happens if the record does not change the bounds.
   Exception: if the merged session is a single instant, it is updated without a tombstone.
5. The new state starts with the start state. The states of the sessions are merged into it in the order of their ends, and then
   the record is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rewindow.dsl.operators.builtin_aggregates import Aggregator
from rewindow.dsl.operators.window_aggregate import (
    EmitStrategy,
    WindowedProcessor,
    check_lists,
    described_windows,
    windowed_timings,
)
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import Change, Record, Window, Windowed
from rewindow.streams.serde.normalizers import copied
from rewindow.streams.timing import Timing
from rewindow.streams.windows.session_sliding import SessionWindows

Merger = Callable[[Any, Any, Any], Any]
"""``merger(key, one, later)`` returns the merged state of two sessions. ``one`` is the state of the earlier session."""


@dataclass(frozen=True, slots=True)
class Merging:
    """A `Merger` that calls ``merge`` of an aggregate that is `Mergeable`."""

    aggregate: Any

    def __call__(self, key: Any, earlier: Any, later: Any) -> Any:
        del key
        return self.aggregate.merge(earlier, later)


@dataclass(frozen=True, slots=True)
class SessionAggregate:
    """Aggregate by key and session.

    A record with a null key is skipped and does not advance the clock. A null value is aggregated. ``clock`` is the node
    whose clock is used. If None, this node's own clock is used.
    """

    windows: SessionWindows
    aggregator: Aggregator
    merger: Merger
    store: str
    emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE
    clock: str | None = None

    def __call__(self) -> Processor:
        return _SessionAggregate(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return described_windows(self)

    def timings(self) -> tuple[Timing]:
        """See `streams.timing`."""
        return windowed_timings(self)


class _SessionAggregate(WindowedProcessor):
    def __init__(self, settings: SessionAggregate) -> None:
        super().__init__(settings)
        self._gap_ms, self._grace_ms = settings.windows.gap_ms, settings.windows.grace_ms
        self._merge = settings.merger

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._expired_after_ms = max(self._gap_ms + self._grace_ms, self._store.builder.retention_ms - 1)

    def process(self, record: Record) -> None:
        key, timestamp = record.key, record.timestamp
        if key is None:
            self._skip(record)
            return
        clock_ms = self._take_time(timestamp)
        open_from_ms = clock_ms - self._gap_ms - self._grace_ms
        # A watermark advances the node's clock, but not the store's. So the store may still have sessions that must be ignored.
        ends_from_ms = max(timestamp - self._gap_ms, clock_ms - self._expired_after_ms)
        touched = list(self._store.find_sessions(key, ends_from_ms, timestamp + self._gap_ms))
        bounds = [session.window for session, _ in touched]
        start_ms = min([timestamp, *(window.start_ms for window in bounds)])
        end_ms = max([timestamp, *(window.end_ms for window in bounds)])
        if end_ms + self._gap_ms < clock_ms:
            self._count_needed(clock_ms - self._gap_ms - end_ms)
        # Whether the record is late depends on the end of the merged session. So an old record that touches an open session is
        # not late.
        if end_ms < open_from_ms:
            self._drop_late(record)
            return
        self._merge_sessions(record, touched, Windowed(key, Window(start_ms, end_ms, is_session=True)))

    def _merge_sessions(self, record: Record, touched: list[tuple[Windowed, Any]], merged: Windowed) -> None:
        key, value, timestamp, headers = record
        aggregator, (start_ms, end_ms, _) = self._aggregator, merged.window
        old_result = None
        state = copied(aggregator.start())
        for session, session_state in touched:
            result = aggregator.result(session_state)
            state = self._merge(key, state, session_state)
            # A session of a single instant is updated. Other sessions are replaced by the merged session.
            if start_ms == end_ms == timestamp:
                old_result = result
                continue
            self._store.remove(session)
            self._forward(Record(session, Change(None, result), session.window.end_ms, headers))
        state = aggregator.add(key, value, state)
        check_lists(self.context, self._settings.store, key, state)
        self._store.put(merged, state)
        result = None if state is None else aggregator.result(state)
        self._forward(Record(merged, Change(result, old_result), end_ms, headers))

    def _forward(self, record: Record) -> None:
        if self._sends_updates:
            self.context.forward(record)
