"""Aggregation by key, and by key and tumbling, hopping or unlimited window. Every accepted record sends an update.

The store has a state for each key, or each key and window. A result has the largest timestamp of its records. An update also
contains the old result, which is null in the first update (D13). A record updates its windows in the order of their starts.

All windowed aggregates share a base class. It maintains the node's clock, and sends final results when windows close
(KIP-825). The clock is the highest timestamp of the node's records so far; skipped records do not advance it. The watermark
advances the clock, too, if time follows the watermark (D22), and in a final run (D18). The clock alone decides whether a
window is closed, so a window either accepts records or is final.

With the strategy ``ON_WINDOW_CLOSE``, a window's result is sent exactly once. It becomes final, and is sent, when a record or
watermark advances the clock to the closing time. Results are sent in the order of (start, key bytes), or for sessions (end,
start, key bytes), with their own timestamps. They are sent before the record that advanced the clock is stored, because
storing a record can expire windows. So no result is lost, however far time jumps (D11).

Each input of a cogroup has its own aggregate node with its own aggregator. All these nodes share one store, and a merge node
below them passes their results on. If final results are sent further below, the aggregate nodes also share the clock of the
merge node (D10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, ClassVar, Protocol

from rewindow.dsl.operators.builtin_aggregates import Aggregator, described
from rewindow.streams.metrics import (
    GRACE_NEEDED,
    LATE_RECORD_DROP,
    RECORD_LATENESS,
    SKIPPED_RECORDS,
    WINDOW_FINAL_EMIT,
    grace_bucket,
)
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import UNKNOWN, Change, Record, Window, Windowed, make_change, make_record, make_windowed
from rewindow.streams.serde.normalizers import copied
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.stores import Stamped, make_stamped
from rewindow.streams.timing import Timing
from rewindow.streams.windows.calendar import CalendarWindows, Period
from rewindow.streams.windows.time import GridWindows, Windows


@dataclass(frozen=True, slots=True)
class StreamAggregate:
    """Aggregate by key. Records with a null key or value are skipped. If the new state is null, the key is deleted."""

    keeps_key: ClassVar[bool] = True
    asks_own_key: ClassVar[bool] = True

    aggregator: Aggregator
    store: str

    def __call__(self) -> Processor:
        return _StreamAggregate(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"aggregate({described(self.aggregator)}, store={self.store})"


def check_lists(context: ProcessorContext, store: str, key: Any, state: Any) -> None:
    """Raise `LimitError` (71) if a state contains a list with more items than the limit, because each record copies the list."""
    if state.__class__ is list:
        context.check_items(store, key, len(state))
    elif isinstance(state, tuple) and list in map(type, state):
        context.check_items(store, key, max(len(part) for part in state if part.__class__ is list))


def aggregated(aggregator: Aggregator, key: Any, value: Any, old: Stamped | None) -> tuple[Any, Any, Any]:
    """Add a value to the stored state ``old`` (None: no state yet). Return ``(new state, new result, old result)``."""
    # The aggregator may modify its state in place, so it gets a copy. `start` may return the same object in each call.
    if old is None:
        state = aggregator.add(key, value, copied(aggregator.start()))
        return state, None if state is None else aggregator.result(state), None
    old_result = aggregator.result(old.value)
    state = aggregator.add(key, value, copied(old.value))
    return state, None if state is None else aggregator.result(state), old_result


class EmitStrategy(StrEnum):
    """The times at which a windowed aggregate sends results (KIP-825)."""

    ON_WINDOW_UPDATE = "window_update"
    ON_WINDOW_CLOSE = "window_close"

    @classmethod
    def on_window_update(cls) -> EmitStrategy:
        """Send the current result after each record."""
        return cls.ON_WINDOW_UPDATE

    @classmethod
    def on_window_close(cls) -> EmitStrategy:
        """Send the final result of each key and window once, like `suppress(until_window_closes())` but without a buffer."""
        return cls.ON_WINDOW_CLOSE


@dataclass(frozen=True, slots=True)
class WindowAggregate:
    """Aggregate by key and window.

    A window is closed when the node's clock has reached the window's end + grace. A late record is dropped, and counted once
    for each closed window. A record with a null key is skipped and does not advance the clock. A null value is aggregated.

    ``clock`` is the node whose clock is used. If None, this node's own clock is used.
    """

    windows: GridWindows
    aggregator: Aggregator
    store: str
    emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE
    clock: str | None = None

    @property
    def asks_own_key(self) -> bool:
        """See `streams.topology`."""
        return self.emit is EmitStrategy.ON_WINDOW_UPDATE

    def __call__(self) -> Processor:
        return (
            _CalendarAggregate(self, self.windows)
            if isinstance(self.windows, CalendarWindows)
            else _WindowAggregate(self)
        )

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return described_windows(self)

    def timings(self) -> tuple[Timing]:
        """See `streams.timing`."""
        return windowed_timings(self)


def windowed_timings(settings: _WindowedSettings) -> tuple[Timing]:
    """Return the timing of a windowed aggregate (`streams.timing`)."""
    is_held = settings.emit is EmitStrategy.ON_WINDOW_CLOSE
    windows = settings.windows
    final_after_ms = windows.final_after_end_ms if is_held else None
    calendar, zone = (windows.shown, windows.zone) if isinstance(windows, CalendarWindows) else ("", "")
    return (Timing(settings.store, final_after_ms, windows.durations, calendar=calendar, zone=zone),)


class WindowedProcessor(Processor):
    """The base of a windowed aggregate's processor."""

    def __init__(self, settings: _WindowedSettings) -> None:
        self._settings = settings
        self._aggregator = settings.aggregator
        self._sends_updates = settings.emit is EmitStrategy.ON_WINDOW_UPDATE
        self._closed_after_ms = settings.windows.holds_ms

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._store: Any = context.store(self._settings.store)
        observe = partial(context.observe_as, self._settings.clock or context.name)
        self._observe: Callable[[int], int] = observe if self._sends_updates else self._observe_and_emit
        self._lateness = context.measure(RECORD_LATENESS)

    def on_watermark(self, watermark_ms: int) -> None:
        if self._settings.clock is None:
            self._observe(watermark_ms)

    def _take_time(self, timestamp: int) -> int:
        """Advance the clock to a record's timestamp, measure the record's lateness, and return the clock."""
        clock_ms = self._observe(timestamp)
        self._lateness.record(clock_ms - timestamp)
        return clock_ms

    def _count_needed(self, grace_ms: int) -> None:
        """Count a record that arrived after its last window ended. ``grace_ms``: the smallest grace that would accept it."""
        self.context.measure(GRACE_NEEDED, reason=grace_bucket(grace_ms)).record(grace_ms)

    def _observe_and_emit(self, timestamp: int) -> int:
        """Advance the clock, send the final results of the windows that close, and return the clock."""
        before_ms = self.context.observed_time_ms
        now_ms = self.context.observe(timestamp)
        if now_ms > before_ms:
            # Storing the record could expire these windows, so their results are sent first (D11).
            for windowed, kept in self._closing(before_ms, now_ms):
                state, time_ms = kept if kept.__class__ is Stamped else (kept, windowed.window.end_ms)
                self.context.measure(WINDOW_FINAL_EMIT).record()
                self.context.forward(Record(windowed, Change(self._aggregator.result(state)), time_ms))
        return now_ms

    def _closing(self, before_ms: int, now_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Return the stored windows that close when the clock advances from one time to another."""
        rows: Iterator[tuple[Windowed, Any]] = self._store.fetch_all(
            before_ms - self._closed_after_ms + 1, now_ms - self._closed_after_ms
        )
        return rows

    def _skip(self, record: Record) -> None:
        """Drop a record without a key, or without a required value."""
        reason = "null-key" if record.key is None else "null-value"
        self.context.drop(record, SKIPPED_RECORDS, reason=reason)

    def _drop_late(self, record: Record, times: int = 1) -> None:
        """Drop a late record. It is counted ``times`` times, once for each of its closed windows."""
        self.context.drop(record, LATE_RECORD_DROP, reason="window-closed", times=times)


def described_windows(settings: _WindowedSettings) -> str:
    """Describe a windowed aggregate for `explain` and the fingerprint."""
    aggregator, windows, store = described(settings.aggregator), settings.windows, settings.store
    emit = ", emit=window_close" if settings.emit is EmitStrategy.ON_WINDOW_CLOSE else ""
    clock = "" if settings.clock is None else f", clock={settings.clock}"
    return f"window({aggregator}, {windows}, store={store}{emit}{clock})"


@dataclass(frozen=True, slots=True)
class CogroupMerge:
    """Pass on the results of all inputs of a cogroup."""

    keeps_key: ClassVar[bool] = True

    clock: str | None = None
    """The name of this node if the inputs use its clock; None if each input has its own clock."""

    def __call__(self) -> Processor:
        return _Merge() if self.clock is None else _Clocked()

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "cogroup_merge"


class _StreamAggregate(Processor):
    def __init__(self, settings: StreamAggregate) -> None:
        self._settings = settings
        self._aggregator = settings.aggregator

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._store: KeyValueStore = context.store(self._settings.store)

    def process(self, record: Record) -> None:
        key, value, timestamp = record.key, record.value, record.timestamp
        if key is None or value is None:
            self.context.drop(record, SKIPPED_RECORDS, reason="null-key" if key is None else "null-value")
            return
        aggregator = self._aggregator
        old = self._store.get(key)
        state, new_result, old_result = aggregated(aggregator, key, value, old)
        if old is not None:
            timestamp = max(timestamp, old.timestamp)
        check_lists(self.context, self._settings.store, key, state)
        self._store.put(key, None if state is None else Stamped(state, timestamp))
        self.context.forward(Record(key, Change(new_result, old_result), timestamp, record.headers))


class _WindowAggregate(WindowedProcessor):
    def __init__(self, settings: WindowAggregate) -> None:
        super().__init__(settings)
        self._windows = settings.windows
        self._closes_after_ms, self._grace_ms = settings.windows.closes_after_ms, settings.windows.grace_ms

    def process(self, record: Record) -> None:
        timestamp = record.timestamp
        if record.key is None:
            self._skip(record)
            return
        open_from_ms = self._take_time(timestamp) - self._closes_after_ms
        late, start_ms = 0, timestamp
        for start_ms in self._windows.starts(timestamp):
            if start_ms > open_from_ms:
                self._update(record, self._windows.window(start_ms))
            else:
                late += 1
        # `start_ms` is now the start of the record's last window. A grace period that keeps this window open would accept the
        # record.
        ended_from_ms = open_from_ms + self._grace_ms
        if start_ms <= ended_from_ms:
            self._count_needed(ended_from_ms - start_ms + 1)
        if late:
            self._drop_late(record, late)

    def _update(self, record: Record, window: Window) -> None:
        key, timestamp, start_ms = record.key, record.timestamp, window.start_ms
        old = self._store.fetch(key, start_ms)
        state, new_result, old_result = aggregated(self._aggregator, key, record.value, old)
        if old is not None and old.timestamp > timestamp:
            timestamp = old.timestamp
        check_lists(self.context, self._settings.store, key, state)
        self._store.put(key, None if state is None else make_stamped((state, timestamp)), start_ms)
        if self._sends_updates:
            windowed = make_windowed((key, window))
            change = make_change((new_result, old_result))
            self.context.forward(make_record((windowed, change, timestamp, record.headers)))


class _CalendarAggregate(_WindowAggregate):
    """Aggregates by windows in local time. Whether such a window is open depends on its own end, not on its start."""

    def __init__(self, settings: WindowAggregate, windows: CalendarWindows) -> None:
        super().__init__(settings)
        self._calendar = windows
        self._period = Period(UNKNOWN, UNKNOWN, [])
        """The period of the last record. Most records belong to the same one."""

    def process(self, record: Record) -> None:
        timestamp, key = record.timestamp, record.key
        if key is None:
            self._skip(record)
            return
        clock_ms = self._take_time(timestamp)
        if not self._period.from_ms <= timestamp < self._period.until_ms:
            self._period = self._calendar.period(timestamp)
        windows = self._period.windows
        if self._store.restored_ends:
            windows = [self._store.window(window.start_ms, key) for window in windows]
        ended_ms = clock_ms - self._grace_ms
        late = 0
        for window in windows:
            # A window that keeps an earlier end does not include a record after this end.
            if window.end_ms > ended_ms and window.end_ms > timestamp:
                self._update(record, window)
            else:
                late += 1
        last_end_ms = windows[-1].end_ms
        if last_end_ms <= clock_ms:
            self._count_needed(clock_ms - last_end_ms + 1)
        if late:
            self._drop_late(record, late)

    def _closing(self, before_ms: int, now_ms: int) -> Iterator[tuple[Windowed, Any]]:
        rows: Iterator[tuple[Windowed, Any]] = self._store.fetch_ended(
            before_ms - self._grace_ms, now_ms - self._grace_ms
        )
        return rows


class _WindowedSettings(Protocol):
    """The settings of a windowed aggregate."""

    @property
    def windows(self) -> Windows:
        """The windows."""

    @property
    def aggregator(self) -> Aggregator:
        """The aggregator."""

    @property
    def store(self) -> str:
        """The name of the store."""

    @property
    def emit(self) -> EmitStrategy:
        """The emit strategy."""

    @property
    def clock(self) -> str | None:
        """The node whose clock is used. If None, the node's own clock is used."""


class _Merge(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record)


class _Clocked(_Merge):
    def on_watermark(self, watermark_ms: int) -> None:
        self.context.observe(watermark_ms)
