"""What all windowed aggregates share: the node's clock, and results that leave when their window closes (KIP-825).

The clock is the highest timestamp of the records with a key that the node has seen, and where time follows the
watermark (D22) or ends (D18), that too. It alone says which windows are closed: what they take and what is final are
complements of each other.

On window close nothing is sent before a window's result is final, and then exactly once: at the first record (or
watermark) that moves the clock there, in the order (start, key bytes), of sessions (end, start, key bytes), with the
timestamp of the result. What leaves is looked for before the record that moved the clock is put, because that can make
the store forget windows: however far time jumps, none is lost (D11).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Protocol

from rewindow.dsl.operators.aggregates import Aggregator, described
from rewindow.streams.metrics import LATE_RECORD_DROP, RECORD_LATENESS, SKIPPED_RECORDS, WINDOW_FINAL_EMIT
from rewindow.streams.processor import Processor
from rewindow.streams.processor_context import ProcessorContext
from rewindow.streams.record import Change, Record
from rewindow.streams.state.stores import Stamped
from rewindow.streams.windows.time import Windows


class EmitStrategy(StrEnum):
    """When a windowed aggregate sends results (KIP-825)."""

    ON_WINDOW_UPDATE = "window_update"
    ON_WINDOW_CLOSE = "window_close"

    @classmethod
    def on_window_update(cls) -> EmitStrategy:
        """For each record, the result so far."""
        return cls.ON_WINDOW_UPDATE

    @classmethod
    def on_window_close(cls) -> EmitStrategy:
        """Once for each key and window, when it is final: as `suppress` with `until_window_closes`, without its buffer."""
        return cls.ON_WINDOW_CLOSE


class WindowedSettings(Protocol):
    """What every supplier of a windowed aggregate says."""

    @property
    def windows(self) -> Windows:
        """The windows."""

    @property
    def aggregator(self) -> Aggregator:
        """What is computed."""

    @property
    def store(self) -> str:
        """The name of the store."""

    @property
    def emit(self) -> EmitStrategy:
        """When results are sent."""


def described_windows(settings: WindowedSettings) -> str:
    """Return what `topology.describe_supplier` shows, and the fingerprint covers."""
    what, windows, store = described(settings.aggregator), settings.windows, settings.store
    emit = ", emit=window_close" if settings.emit is EmitStrategy.ON_WINDOW_CLOSE else ""
    return f"window({what}, {windows}, store={store}{emit})"


class WindowedProcessor(Processor):
    """The base of a windowed aggregate's processor."""

    def __init__(self, settings: WindowedSettings) -> None:
        self._settings = settings
        self._aggregator = settings.aggregator
        self._sends_updates = settings.emit is EmitStrategy.ON_WINDOW_UPDATE
        self._closed_after_ms = settings.windows.holds_ms

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._store: Any = context.store(self._settings.store)
        self._observe: Callable[[int], int] = context.observe if self._sends_updates else self._observe_and_emit
        self._lateness = context.measure(RECORD_LATENESS)

    def on_watermark(self, watermark_ms: int) -> None:
        self._observe(watermark_ms)

    def _take_time(self, timestamp: int) -> int:
        """Move the node's clock to a record's time, count how late the record is, and return the clock."""
        clock_ms = self._observe(timestamp)
        self._lateness.record(clock_ms - timestamp)
        return clock_ms

    def _observe_and_emit(self, timestamp: int) -> int:
        """Move the node's clock and send what it closes; return the clock."""
        before_ms = self.context.observed_time_ms
        now_ms = self.context.observe(timestamp)
        if now_ms > before_ms:
            after_ms = self._closed_after_ms
            for windowed, kept in self._store.fetch_all(before_ms - after_ms + 1, now_ms - after_ms):
                state, at = kept if kept.__class__ is Stamped else (kept, windowed.window.end_ms)
                self.context.measure(WINDOW_FINAL_EMIT).record()
                self.context.forward(Record(windowed, Change(self._aggregator.result(state)), at))
        return now_ms

    def _skip(self, record: Record) -> None:
        """Drop a record that has no key, or no value where one is needed."""
        reason = "null-key" if record.key is None else "null-value"
        self.context.drop(record, SKIPPED_RECORDS, reason=reason)

    def _drop_late(self, record: Record, times: int = 1) -> None:
        """Drop a record of closed windows; it counts for each."""
        self.context.drop(record, LATE_RECORD_DROP, reason="window-closed", times=times)
