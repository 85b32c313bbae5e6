"""Aggregation by key and sliding window (KIP-450): one window for each distinct set of records whose times are close.

Windows include both bounds. Let ``d`` be the largest time difference between the records of a window. A record at ``t`` has a
left window ``[t - d, t]``, which ends at the record, and a right window ``[t + 1, t + 1 + d]``, which starts after it. The right
window exists only if it contains records. The steps for each record:

1. The node's clock advances. If ``t + d < clock - grace``, the record is late and dropped. Otherwise, the record is dropped
   only from those of its windows that end before ``clock - grace``. These windows are neither updated nor created. The record
   is counted as late once for each of them.
2. Each existing window that contains ``t`` is updated, newest first.
3. The right window of the preceding record is created, if it is missing and contains ``t``.
4. The record's left window is created, if it is missing. If it contains the preceding record, it starts with the state of the
   newest window that ends before ``t``.
5. The record's right window is created, if it is missing and there is a newer record. It is a copy of the newest window that
   contained ``t``, before this record was added.

If steps 3 and 4 create the same window, it is sent twice. No window starts before 0: records before ``d`` share the left
window ``[0, d]``. For such records, the other windows are updated first, oldest first, and the left window is updated last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rewindow.dsl.operators.builtin_aggregates import Aggregator
from rewindow.dsl.operators.window_aggregate import (
    EmitStrategy,
    WindowedProcessor,
    aggregated,
    check_lists,
    described_windows,
    windowed_timings,
)
from rewindow.streams.processor import Processor
from rewindow.streams.record import UNKNOWN, Change, Record, Window, Windowed
from rewindow.streams.state.stores import Stamped
from rewindow.streams.timing import Timing
from rewindow.streams.windows.session_sliding import SlidingWindows


@dataclass(frozen=True, slots=True)
class SlidingAggregate:
    """Aggregate by key and sliding window.

    A record with a null key or value is skipped and does not advance the clock. ``clock`` is the node whose clock is used. If
    None, this node's own clock is used.
    """

    windows: SlidingWindows
    aggregator: Aggregator
    store: str
    emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE
    clock: str | None = None

    def __call__(self) -> Processor:
        return _SlidingAggregate(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return described_windows(self)

    def timings(self) -> tuple[Timing]:
        """See `streams.timing`."""
        return windowed_timings(self)


@dataclass(slots=True)
class _Around:
    """The part of the store around a record: window starts, the preceding record, and states with which new windows start."""

    starts: list[int] = field(default_factory=list)
    before_ms: int = UNKNOWN
    """The timestamp of the key's preceding record."""
    left: Stamped | None = None
    """The state of the newest window that ends before the record."""
    left_ms: int = UNKNOWN
    """The start of that window."""
    right: Stamped | None = None
    """The state of the newest window that contains the record's time and ends after it. This state does not include the
    record."""
    right_ms: int = UNKNOWN
    """The start of that window."""


class _SlidingAggregate(WindowedProcessor):
    def __init__(self, settings: SlidingAggregate) -> None:
        super().__init__(settings)
        self._size_ms, self._grace_ms = settings.windows.size_ms, settings.windows.grace_ms

    def process(self, record: Record) -> None:
        timestamp = record.timestamp
        if record.key is None or record.value is None:
            self._skip(record)
            return
        clock_ms = self._take_time(timestamp)
        self._open_from_ms = clock_ms - self._grace_ms
        if clock_ms > timestamp + self._size_ms:
            self._count_needed(clock_ms - timestamp - self._size_ms)
        if timestamp + self._size_ms < self._open_from_ms:
            self._drop_late(record)
            return
        self._late = 0
        if timestamp < self._size_ms:
            self._take_early(record)
        else:
            self._take(record)
        if self._late:
            self._drop_late(record, self._late)

    def _take(self, record: Record) -> None:
        timestamp, size_ms = record.timestamp, self._size_ms
        around = _Around()
        # A window that ends in the record's left window starts at most twice the size before the record.
        windows = self._store.fetch_range(record.key, max(0, timestamp - 2 * size_ms), timestamp + 1)
        for start_ms, held in reversed(list(windows)):
            end_ms = start_ms + size_ms
            around.starts.append(start_ms)
            if end_ms < timestamp:
                around.before_ms, around.left, around.left_ms = held.timestamp, held, start_ms
                break
            # This is the record's right window, which does not contain the record.
            if start_ms > timestamp:
                continue
            if end_ms > timestamp:
                if around.right is None:
                    around.right, around.right_ms = held, start_ms
            elif held.timestamp < timestamp:
                around.before_ms = held.timestamp
            self._add(record, start_ms, held)
        # Kafka's order is the right window of the preceding record, then the record's left window, then its right window.
        self._make_right_of_before(record, around)
        left_ms = timestamp - size_ms
        if left_ms not in around.starts:
            has_preceding = around.left is not None and around.before_ms >= left_ms
            self._make(record, left_ms, around.left if has_preceding else None, around.left_ms)
        self._copy_to_the_right(record, around)

    def _take_early(self, record: Record) -> None:
        timestamp = record.timestamp
        around, first_window = _Around(), None
        for start_ms, held in self._store.fetch_range(record.key, 0, timestamp + 1):
            around.starts.append(start_ms)
            if start_ms == 0:
                first_window = held
                if held.timestamp < timestamp:
                    around.before_ms = held.timestamp
            elif start_ms <= timestamp:
                around.right, around.right_ms = held, start_ms
                self._add(record, start_ms, held)
        if around.right is None:
            around.right, around.right_ms = first_window, 0
        # For early records, Kafka sends these two windows in the opposite order.
        self._copy_to_the_right(record, around)
        self._make_right_of_before(record, around)
        if first_window is None:
            self._make(record, 0, None)
        else:
            self._add(record, 0, first_window)

    def _make_right_of_before(self, record: Record, around: _Around) -> None:
        start_ms = around.before_ms + 1
        if (
            around.before_ms != UNKNOWN
            and start_ms not in around.starts
            and start_ms + self._size_ms >= record.timestamp
        ):
            self._make(record, start_ms, None)

    def _make(self, record: Record, start_ms: int, base: Stamped | None, base_ms: int = UNKNOWN) -> None:
        """Create a window.

        Its first state is ``base``, the state of the window that starts at ``base_ms``. Then the record is added. If ``base``
        is None, the window contains only the record.
        """
        if not self._is_open(start_ms):
            return
        key, timestamp = record.key, record.timestamp
        made = self._store.fetch(key, start_ms)
        state, result, _ = aggregated(self._aggregator, key, record.value, base)
        now = None if state is None else Stamped(state, timestamp)
        self._write(record, start_ms, now, result, made, base_ms=UNKNOWN if base is None else base_ms)

    def _add(self, record: Record, start_ms: int, held: Stamped) -> None:
        """Add the record to an existing window."""
        if self._is_open(start_ms):
            state, result, _ = aggregated(self._aggregator, record.key, record.value, held)
            time_ms = max(held.timestamp, record.timestamp)
            self._write(record, start_ms, None if state is None else Stamped(state, time_ms), result, held, time_ms)

    def _copy_to_the_right(self, record: Record, around: _Around) -> None:
        """Create the record's right window, if it is missing, as a copy of the newest window without the record."""
        start_ms, right = record.timestamp + 1, around.right
        if start_ms not in around.starts and right is not None and right.timestamp >= start_ms:
            result = self._aggregator.result(right.value)
            self._write(record, start_ms, right, result, None, right.timestamp, base_ms=around.right_ms)

    def _is_open(self, start_ms: int) -> bool:
        is_open = start_ms + self._size_ms >= self._open_from_ms
        self._late += not is_open
        return is_open

    def _write(
        self,
        record: Record,
        start_ms: int,
        now: Stamped | None,
        result: Any,
        was: Stamped | None,
        time_ms: int | None = None,
        *,
        base_ms: int = UNKNOWN,
    ) -> None:
        if now is not None:
            check_lists(self.context, self._settings.store, record.key, now.value)
        if base_ms == UNKNOWN:
            self._store.put(record.key, now, start_ms)
        else:
            self._store.derive(record.key, now, start_ms, base_ms)
        if self._sends_updates:
            windowed = Windowed(record.key, Window(start_ms, start_ms + self._size_ms))
            old = None if was is None else self._aggregator.result(was.value)
            time_ms = record.timestamp if time_ms is None else time_ms
            self.context.forward(Record(windowed, Change(result, old), time_ms, record.headers))
