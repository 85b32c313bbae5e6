"""The base of all windowed aggregates: the node's clock, and final results when windows close (KIP-825).

The clock is the highest timestamp of the records with a key that the node has seen (the inputs of a cogroup above a final
result share one, D10); where time follows the watermark (D22),
and in a final run (D18), the watermark advances it, too. The clock alone decides whether a window is closed, so a window
either accepts records or is final.

On window close, a window's result is sent exactly once, when it is final: at the first record or watermark that advances the
clock that far, in the order of (start, key bytes), for sessions (end, start, key bytes), and with the timestamp of the
result. Final results are sent before the record that advanced the clock is stored, because storing it can expire windows.
So no result is lost, however far time jumps (D11).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

from rewindow.dsl.operators.aggregates import Aggregator, described
from rewindow.streams.metrics import (
    GRACE_NEEDED,
    LATE_RECORD_DROP,
    RECORD_LATENESS,
    SKIPPED_RECORDS,
    WINDOW_FINAL_EMIT,
    grace_bucket,
)
from rewindow.streams.processor import Processor, ProcessorContext
from rewindow.streams.record import Change, Record
from rewindow.streams.state.stores import Stamped
from rewindow.streams.windows.time import Windows


class EmitStrategy(StrEnum):
    """When a windowed aggregate sends results (KIP-825)."""

    ON_WINDOW_UPDATE = "window_update"
    ON_WINDOW_CLOSE = "window_close"

    @classmethod
    def on_window_update(cls) -> EmitStrategy:
        """Send the current result for each record."""
        return cls.ON_WINDOW_UPDATE

    @classmethod
    def on_window_close(cls) -> EmitStrategy:
        """Send the final result of each key and window once: as `suppress(until_window_closes())`, without its buffer."""
        return cls.ON_WINDOW_CLOSE


class WindowedSettings(Protocol):
    """The settings of a windowed aggregate."""

    @property
    def windows(self) -> Windows:
        """The windows."""

    @property
    def aggregator(self) -> Aggregator:
        """The aggregate."""

    @property
    def store(self) -> str:
        """The name of the store."""

    @property
    def emit(self) -> EmitStrategy:
        """When results are sent."""

    @property
    def clock(self) -> str | None:
        """The node whose clock decides, if it is not this node's own."""


def described_windows(settings: WindowedSettings) -> str:
    """Describe a windowed aggregate for `explain` and the fingerprint."""
    what, windows, store = described(settings.aggregator), settings.windows, settings.store
    emit = ", emit=window_close" if settings.emit is EmitStrategy.ON_WINDOW_CLOSE else ""
    clock = "" if settings.clock is None else f", clock={settings.clock}"
    return f"window({what}, {windows}, store={store}{emit}{clock})"


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
        """Count a record that arrived after the end of its last window, by the smallest grace that keeps it."""
        self.context.measure(GRACE_NEEDED, reason=grace_bucket(grace_ms)).record(grace_ms)

    def _observe_and_emit(self, timestamp: int) -> int:
        """Advance the clock, send the results of the windows that it closes, and return the clock."""
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
        """Drop a record without a key, or without a required value."""
        reason = "null-key" if record.key is None else "null-value"
        self.context.drop(record, SKIPPED_RECORDS, reason=reason)

    def _drop_late(self, record: Record, times: int = 1) -> None:
        """Drop a record of closed windows, counted for each."""
        self.context.drop(record, LATE_RECORD_DROP, reason="window-closed", times=times)
