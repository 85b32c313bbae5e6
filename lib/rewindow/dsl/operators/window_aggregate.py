"""Aggregation by key and window on a grid: tumbling, hopping and unlimited windows.

A result has the largest timestamp of the records in its window. An update also carries the old result, null at first
(D13). A record updates its windows in the order of their starts.
"""

from __future__ import annotations

from dataclasses import dataclass

from rewindow.dsl.operators.aggregate import aggregated, check_lists
from rewindow.dsl.operators.aggregates import Aggregator
from rewindow.dsl.operators.windowed import EmitStrategy, WindowedProcessor, described_windows
from rewindow.streams.processor import Processor
from rewindow.streams.record import Record, make_change, make_record, make_windowed
from rewindow.streams.state.stores import make_stamped
from rewindow.streams.windows.time import GridWindows


@dataclass(frozen=True, slots=True)
class WindowAggregate:
    """Aggregate by key and window.

    A window is closed when the node's clock has reached its end + grace. A late record is dropped, and counted for each
    closed window. A null key is skipped and does not advance the clock; a null value is aggregated.
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
        return _WindowAggregate(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return described_windows(self)


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
                self._update(record, start_ms)
            else:
                late += 1
        ended_from_ms = open_from_ms + self._grace_ms
        if start_ms <= ended_from_ms:
            self._count_needed(ended_from_ms - start_ms + 1)
        if late:
            self._drop_late(record, late)

    def _update(self, record: Record, start_ms: int) -> None:
        key, timestamp = record.key, record.timestamp
        old = self._store.fetch(key, start_ms)
        state, new_result, old_result = aggregated(self._aggregator, key, record.value, old)
        if old is not None and old.timestamp > timestamp:
            timestamp = old.timestamp
        check_lists(self.context, self._settings.store, key, state)
        self._store.put(key, None if state is None else make_stamped((state, timestamp)), start_ms)
        if self._sends_updates:
            windowed = make_windowed((key, self._windows.window(start_ms)))
            change = make_change((new_result, old_result))
            self.context.forward(make_record((windowed, change, timestamp, record.headers)))
