"""Suppress until a window closes (KIP-328): one final result for each key and window.

The node's clock is the highest timestamp of the updates that reach it. An update is held back in the order (window
end, key bytes) until the clock has reached ``end + grace``; only the newest of a key and window leaves, with its own
timestamp. A tombstone is dropped: nothing of its window was sent before.
"""

from __future__ import annotations

from dataclasses import dataclass

from rewindow.core.buffer import TimeOrderedBuffer
from rewindow.core.metrics import SUPPRESSION_BUFFER_COUNT, SUPPRESSION_EMIT
from rewindow.core.processor import Processor, ProcessorContext
from rewindow.core.record import Change, Record


@dataclass(frozen=True, slots=True)
class SuppressUntilWindowCloses:
    """Hold each window's updates back until the window and its grace are over."""

    final_after_end_ms: int
    """See `Windows`."""
    store: str

    def __call__(self) -> Processor:
        return _Suppress(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"suppress(until_window_closes, grace={self.final_after_end_ms}, store={self.store})"


class _Suppress(Processor):
    def __init__(self, settings: SuppressUntilWindowCloses) -> None:
        self._settings = settings

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self._buffer: TimeOrderedBuffer = context.store(self._settings.store)
        self._emitted = context.measure(SUPPRESSION_EMIT)
        self._buffered = context.measure(SUPPRESSION_BUFFER_COUNT)

    def process(self, record: Record) -> None:
        timestamp = record.timestamp
        observed_ms = self.context.observe(timestamp)
        self._buffer.put(record.key, record.value.new, timestamp, record.key.window.end_ms)
        self._buffered.record(len(self._buffer))
        self._evict(observed_ms)

    def on_watermark(self, watermark_ms: int) -> None:
        self._evict(self.context.observe(watermark_ms))

    def _evict(self, observed_ms: int) -> None:
        for key, held in self._buffer.pop_until(observed_ms - self._settings.final_after_end_ms):
            if held.value is not None:
                self._emitted.record()
                self.context.forward(Record(key, Change(held.value), held.timestamp))
