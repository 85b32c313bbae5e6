"""Aggregates by session: neighbouring records of a key are at most the gap apart."""

from __future__ import annotations

from typing import Any

from rewindow.streams.record import Window, Windowed
from tests.oracle.closing import SessionClosing
from tests.oracle.folds import Fold
from tests.oracle.memory import Entry, SessionRows
from tests.oracle.nodes import Node, Setting
from tests.oracle.scripts import Message
from tests.oracle.windows import retention_of


class SessionAggregate(Node):
    """One state per key and session. A merge withdraws the merged sessions, then sends the new one."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        assert setting.windows is not None
        self._windows = setting.windows
        self._fold = Fold(setting.spec["fn"])
        self._clock = -1
        self._emits = setting.windows.get("emit") == "window_close"
        is_kept = setting.has_finals and not self.follow_kafka("D10")
        self._rows = SessionRows(retention_of(setting), slack=0 if is_kept else 1)
        self._closing = SessionClosing(self, self._rows)

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, value, timestamp = message
        if key is None:
            return
        gap = self._windows["gap"]
        self._clock = max(self._clock, timestamp)
        close = self._clock - self._windows["grace"] - gap
        seen_from = min(close, self._rows.visible_from(self._clock))  # a watermark advances the clock, but adds no rows
        near = self._rows.near(key, max(timestamp - gap, seen_from), timestamp + gap)
        state, start, end = self._fold.start, timestamp, timestamp
        for other_start, other_end, other in near:
            state = self._fold.merge(state, other)
            start, end = min(start, other_start), max(end, other_end)
        if end >= close:
            if (start, end) != (timestamp, timestamp):
                for other_start, other_end, other in near:
                    self._rows.put(key, other_start, other_end, None)
                    self._update(key, other_start, other_end, None, other)
            old = near[0][2] if near and (start, end) == (timestamp, timestamp) else None
            state = self._fold.add(state, value)
            self._rows.put(key, start, end, state)
            self._update(key, start, end, state, None if self.follow_kafka("D13") else old)
        if self._emits:
            self._closing.emit(close)

    def take_watermark(self, watermark: int) -> None:
        """See `Node`."""
        self._clock = max(self._clock, watermark)
        if self._emits:
            self._closing.emit(self._clock - self._windows["grace"] - self._windows["gap"])

    def get(self, key: Any) -> Entry | None:
        """See `Node`."""
        value = self._rows.values.get((key.window.end_ms, key.window.start_ms, key.key))
        return None if value is None or not self._rows.is_visible(key.window.end_ms) else (value, key.window.end_ms)

    def contents(self) -> list[dict[str, Any]]:
        """See `Node`."""
        return self._rows.contents()

    def _update(self, key: Any, start: int, end: int, new: Any, old: Any) -> None:
        if not self._emits:
            self.send((Windowed(key, Window(start, end, True)), (new, old), end))
