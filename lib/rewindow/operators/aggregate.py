"""Aggregations: one state a key, or a key and window; every accepted record sends an update downstream.

The timestamp of a result is the largest of the records in it. An update carries the old result too, null at first (D13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rewindow.core.metrics import LATE_RECORD_DROP, SKIPPED_RECORDS
from rewindow.core.plain import copied
from rewindow.core.processor import Processor, ProcessorContext
from rewindow.core.record import Change, Record, make_change, make_record, make_windowed
from rewindow.core.stores import KeyValueStore, Stamped, make_stamped
from rewindow.core.window_store import WindowStore
from rewindow.core.windows import TimeWindows
from rewindow.operators.aggregates import Aggregator, described


@dataclass(frozen=True, slots=True)
class StreamAggregate:
    """Aggregate by key. A null key or value is skipped; a null state deletes the key."""

    aggregator: Aggregator
    store: str

    def __call__(self) -> Processor:
        return _StreamAggregate(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"aggregate({described(self.aggregator)}, store={self.store})"


@dataclass(frozen=True, slots=True)
class WindowAggregate:
    """Aggregate by key and window.

    The node's clock is the highest timestamp of a record with a key that it has seen. A window takes a record unless
    the clock has reached its end + grace; a record that no window takes is late, dropped and counted for each window.
    """

    windows: TimeWindows
    aggregator: Aggregator
    store: str

    def __call__(self) -> Processor:
        return _WindowAggregate(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        w = self.windows
        what = described(self.aggregator)
        return f"window({what}, size={w.size_ms}, advance={w.advance_ms}, grace={w.grace_ms}, store={self.store})"


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
        state, new_result, old_result = _aggregated(aggregator, key, value, old)
        if old is not None:
            timestamp = max(timestamp, old.timestamp)
        self._store.put(key, None if state is None else Stamped(state, timestamp))
        self.context.forward(Record(key, Change(new_result, old_result), timestamp, record.headers))


class _WindowAggregate(Processor):
    def __init__(self, settings: WindowAggregate) -> None:
        self._windows, self._aggregator, self._store_name = settings.windows, settings.aggregator, settings.store

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._store: WindowStore = context.store(self._store_name)

    def process(self, record: Record) -> None:
        key, timestamp = record.key, record.timestamp
        if key is None:
            self.context.drop(record, SKIPPED_RECORDS, reason="null-key")
            return
        windows = self._windows
        open_from_ms = self.context.observe(timestamp) - windows.closes_after_ms
        late = 0
        for start_ms in windows.starts(timestamp):
            if start_ms > open_from_ms:
                self._update(record, start_ms)
            else:
                late += 1
        if late:
            self.context.drop(record, LATE_RECORD_DROP, reason="window-closed", times=late)

    def on_watermark(self, watermark_ms: int) -> None:
        self.context.observe(watermark_ms)

    def _update(self, record: Record, start_ms: int) -> None:
        key, timestamp = record.key, record.timestamp
        old = self._store.fetch(key, start_ms)
        state, new_result, old_result = _aggregated(self._aggregator, key, record.value, old)
        if old is not None and old.timestamp > timestamp:
            timestamp = old.timestamp
        self._store.put(key, None if state is None else make_stamped((state, timestamp)), start_ms)
        windowed = make_windowed((key, self._windows.window(start_ms)))
        change = make_change((new_result, old_result))
        self.context.forward(make_record((windowed, change, timestamp, record.headers)))


def _aggregated(aggregator: Aggregator, key: Any, value: Any, old: Stamped | None) -> tuple[Any, Any, Any]:
    """Return the new state, its result and the old result.

    The aggregator may change in place what it is given: the state is a copy of its own, and the old result is taken
    before. What it starts with may be the same object each time, so that is copied too.
    """
    if old is None:
        state = aggregator.add(key, value, copied(aggregator.start()))
        return state, None if state is None else aggregator.result(state), None
    old_result = aggregator.result(old.value)
    state = aggregator.add(key, value, copied(old.value))
    return state, None if state is None else aggregator.result(state), old_result
