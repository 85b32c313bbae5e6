"""Aggregates by tumbling, hopping and unlimited windows, and by windows in local time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewindow.streams.record import Window, Windowed
from tests.oracle.calendar import calendar_windows, longest
from tests.oracle.closing import Closing
from tests.oracle.folds import Fold
from tests.oracle.memory import Entry, WindowRows
from tests.oracle.nodes import Node, Setting
from tests.oracle.queues import LARGEST
from tests.oracle.scripts import Message, ScriptError


def needed_retention(windows: Mapping[str, Any]) -> int:
    """Return Kafka's default retention of a window, counted from its start (of a session: from its end)."""
    if windows["type"] == "unlimited":
        return LARGEST
    if windows["type"] == "calendar":
        return longest(windows) + int(windows["grace"])
    size: int = windows[{"session": "gap", "sliding": "diff"}.get(windows["type"], "size")]
    grace: int = windows["grace"]
    return size * (2 if windows["type"] == "sliding" else 1) + grace


def retention_of(setting: Setting) -> int:
    """Return the retention of an aggregate's store. Ours is at least 1 ms, so that the store keeps anything at all (D10).

    Raises `ScriptError` if the retention is shorter than the windows need.
    """
    assert setting.windows is not None
    needed = needed_retention(setting.windows)
    retention: int = setting.spec.get("retention", needed)
    if retention < needed:
        raise ScriptError(f"retention {retention}")
    return retention if setting.rules.follow_kafka("D10") else max(1, retention)


class WindowAggregate(Node):
    """One state per key and window. A window accepts records until the node's clock reaches its end plus grace."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        assert setting.windows is not None
        self._windows = setting.windows
        self._fold = Fold(setting.spec["fn"])
        self._clock = -1
        self._emits = setting.windows.get("emit") == "window_close"
        retention = retention_of(setting)
        is_kept = setting.windows["type"] == "sliding" and setting.has_finals and not self.follow_kafka("D10")
        # The store of emit on close is read by time, so a window exactly as old as the retention is still visible.
        self._rows = WindowRows(retention, slack=0 if is_kept or self._emits else 1)
        self._closing = Closing(self, self._rows, retention)

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, value, timestamp = message
        if key is None:
            return
        self._clock = max(self._clock, timestamp)
        close = self._clock - self._windows.get("grace", 0)
        for window in self._windows_of(timestamp):
            if window.end_ms > close:
                self._add(key, window, value, timestamp)
        if self._emits:
            self._emit(close)

    def take_watermark(self, watermark: int) -> None:
        """See `Node`."""
        self._clock = max(self._clock, watermark)
        if self._emits:
            self._emit(self._clock - self._windows.get("grace", 0))

    def get(self, key: Any) -> Entry | None:
        """See `Node`."""
        return self._rows.get(key.key, key.window.start_ms)

    def contents(self) -> list[dict[str, Any]]:
        """See `Node`."""
        return self._rows.contents()

    def _windows_of(self, timestamp: int) -> list[Window]:
        if self._windows["type"] == "unlimited":
            start = self._windows["start"]
            return [Window(start, LARGEST)] if timestamp >= start else []
        if self._windows["type"] == "calendar":
            return calendar_windows(self._windows, timestamp)
        size = self._windows["size"]
        advance = self._windows.get("advance", size)
        first = max(0, timestamp - size + advance) // advance * advance
        return [Window(start, start + size) for start in range(first, timestamp + 1, advance)]

    def _emit(self, close: int) -> None:
        self._closing.emit(self._windows["size"], close)

    def _add(self, key: Any, window: Window, value: Any, timestamp: int) -> None:
        entry = self._rows.get(key, window.start_ms)
        if entry is None:
            old = self._fold.start if self.follow_kafka("D13") else None
            new = self._fold.add(None, value)
        else:
            old, new, timestamp = entry[0], self._fold.add(entry[0], value), max(timestamp, entry[1])
        self._rows.put(key, window.start_ms, new, timestamp)
        if not self._emits:
            self.send((Windowed(key, window), (new, old), timestamp))
