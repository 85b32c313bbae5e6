"""Aggregation by key and sliding window (KIP-450): one window for each distinct set of records within the difference.

Both ends of a window are inclusive. With ``d`` for the difference, a record at ``t`` has a left window ``[t - d, t]``, which
ends with it, and a right window ``[t + 1, t + 1 + d]``, which starts after it and exists if it has any record. For each
record:

1. The node's clock advances. The record is late if ``t + d < clock - grace``. Otherwise, each window that it affects is late
   if the window ends before ``clock - grace``.
2. Each existing window that contains ``t`` is updated, newest first.
3. The right window of the preceding record is created, if it is missing and contains ``t``.
4. The record's left window is created, if it is missing: from the newest window that ends before ``t``, if the preceding
   record is in the left window.
5. The record's right window is created, if it is missing and there is a newer record: a copy of the newest window that
   contained ``t``, without this record.

If 3 and 4 create the same window, it is sent twice. No window starts before 0: records before ``d`` share ``[0, d]`` as their
left window, which is updated last, while the other windows are updated oldest first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rewindow.dsl.operators.aggregate import (
    EmitStrategy,
    WindowedProcessor,
    aggregated,
    check_lists,
    described_windows,
    windowed_timings,
)
from rewindow.dsl.operators.aggregates import Aggregator
from rewindow.streams.processor import Processor
from rewindow.streams.record import UNKNOWN, Change, Record, Window, Windowed
from rewindow.streams.state.stores import Stamped
from rewindow.streams.timing import Timing
from rewindow.streams.windows.session_sliding import SlidingWindows


@dataclass(frozen=True, slots=True)
class SlidingAggregate:
    """Aggregate by key and sliding window. A null key or value is skipped and does not advance the clock."""

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
    """The windows around a record: their starts, the preceding record, and the bases of the record's own windows."""

    starts: list[int] = field(default_factory=list)
    before_ms: int = UNKNOWN
    """The newest timestamp before the record's."""
    left: Stamped | None = None
    """The newest window that ends before the record."""
    right: Stamped | None = None
    """The newest window that contains the record's time and ends after it, without the record."""


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
        # Windows with a record in the left window start at most twice the size before this record.
        windows = self._store.fetch_range(record.key, max(0, timestamp - 2 * size_ms), timestamp + 1)
        for start_ms, held in reversed(list(windows)):
            end_ms = start_ms + size_ms
            around.starts.append(start_ms)
            if end_ms < timestamp:
                around.before_ms, around.left = held.timestamp, held
                break
            # The record's own right window exists already, and does not contain the record.
            if start_ms > timestamp:
                continue
            if end_ms > timestamp:
                around.right = around.right or held
            elif held.timestamp < timestamp:
                around.before_ms = held.timestamp
            self._add(record, start_ms, held)
        # The order of these three is Kafka's: right of the record before, left, right.
        self._make_right_of_before(record, around)
        left_ms = timestamp - size_ms
        if left_ms not in around.starts:
            has_preceding = around.left is not None and around.before_ms >= left_ms
            self._make(record, left_ms, around.left if has_preceding else None)
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
                around.right = held
                self._add(record, start_ms, held)
        around.right = around.right or first_window
        # Kafka sends these two in the opposite order for later records.
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

    def _make(self, record: Record, start_ms: int, base: Stamped | None) -> None:
        """Create a window from the record alone, or from the record added to another window's state."""
        if not self._is_open(start_ms):
            return
        key, timestamp = record.key, record.timestamp
        made = self._store.fetch(key, start_ms)
        state, result, _ = aggregated(self._aggregator, key, record.value, base)
        self._write(record, start_ms, None if state is None else Stamped(state, timestamp), result, made)

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
            self._write(record, start_ms, right, self._aggregator.result(right.value), None, right.timestamp)

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
    ) -> None:
        if now is not None:
            check_lists(self.context, self._settings.store, record.key, now.value)
        self._store.put(record.key, now, start_ms)
        if self._sends_updates:
            windowed = Windowed(record.key, Window(start_ms, start_ms + self._size_ms))
            old = None if was is None else self._aggregator.result(was.value)
            time_ms = record.timestamp if time_ms is None else time_ms
            self.context.forward(Record(windowed, Change(result, old), time_ms, record.headers))
