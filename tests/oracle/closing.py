"""Emit on window close (KIP-825): each window's result is sent once, when the window accepts no more records."""

from __future__ import annotations

from rewindow.streams.record import Window, Windowed
from tests.oracle.memory import SessionRows, WindowRows, key_bytes
from tests.oracle.nodes import Node


class Closing:
    """Sends the windows that have closed since the last call, ordered by start and key.

    Kafka scans a store from which some of them have expired (D11).
    """

    def __init__(self, node: Node, rows: WindowRows, retention: int) -> None:
        self._node = node
        self._rows = rows
        self._retention = retention
        self._clip = 1 if node.setting.in_memory else 0
        self._last_end: int | None = None

    def emit(self, size: int, last_closed_end: int) -> None:
        """Send the windows that end at ``last_closed_end`` or earlier and were not sent before."""
        if last_closed_end - size < 0 or (self._last_end is not None and last_closed_end <= self._last_end):
            return
        first = 0 if self._last_end is None else self._last_end - size + 1
        if self._node.follow_kafka("D11"):
            first = max(first, self._rows.newest - self._retention + self._clip)
        due = [one for one in self._rows.entries if first <= one[0] <= last_closed_end - size]
        for start, key in sorted(due, key=lambda one: (one[0], key_bytes(one[1]))):
            value, timestamp = self._rows.entries[(start, key)]
            self._node.send((Windowed(key, Window(start, start + size)), (value, None), timestamp))
        self._last_end = last_closed_end


class SessionClosing:
    """The same for sessions, ordered by end, start and key."""

    def __init__(self, node: Node, rows: SessionRows) -> None:
        self._node = node
        self._rows = rows
        self._last: int | None = None

    def emit(self, close: int) -> None:
        """Send the sessions that end before ``close`` and were not sent before."""
        if close < 1 or (self._last is not None and close <= self._last):
            return
        due = [one for one in self._rows.values if (self._last or 0) <= one[0] < close]
        for end, start, key in sorted(due, key=lambda one: (one[0], one[1], key_bytes(one[2]))):
            is_lost = not self._rows.is_in_live_segment(end)
            if self._node.setting.in_memory:
                is_lost = not self._rows.is_visible(end)
            if not (is_lost and self._node.follow_kafka("D11")):
                value = self._rows.values[(end, start, key)]
                self._node.send((Windowed(key, Window(start, end, True)), (value, None), end))
        self._last = close
