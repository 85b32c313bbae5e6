"""The stores of the operators: dictionaries, and which of their entries are still visible."""

from __future__ import annotations

from typing import Any

from rewindow.streams.record import Windowed

Entry = tuple[Any, int]
"""A value and its timestamp."""

SEGMENT_MS = 60_000
"""Kafka drops expired windows by segment. A segment is at least this long."""


def key_bytes(key: Any) -> bytes:
    """Return the bytes that keys are sorted by: the text; then a session's end; then the start of a session or window."""
    if not isinstance(key, Windowed):
        return str(key).encode()
    times = (key.window.end_ms, key.window.start_ms) if key.window.is_session else (key.window.start_ms,)
    return str(key.key).encode() + b"".join(time.to_bytes(8, "big") for time in times)


class Rows:
    """One entry per key."""

    def __init__(self) -> None:
        self.entries: dict[Any, Entry] = {}

    def get(self, key: Any) -> Entry | None:
        """Return the entry of a key."""
        return self.entries.get(key)

    def put(self, key: Any, value: Any, timestamp: int) -> None:
        """Set a key's entry; a value of None deletes it."""
        if value is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = (value, timestamp)

    def contents(self) -> list[dict[str, Any]]:
        """Return all visible entries, in the format of the recordings."""
        return [{"key": key, "value": value, "ts": at} for key, (value, at) in self.entries.items()]


class WindowRows:
    """One entry per key and start. A window is visible while the newest start is less than ``retention`` later."""

    def __init__(self, retention: int, *, slack: int = 1) -> None:
        self.entries: dict[tuple[int, Any], Entry] = {}
        self.newest = -1
        self._retention = retention
        self._slack = slack

    def is_visible(self, start: int) -> bool:
        """Return whether a window with this start can be read."""
        return start >= self.newest - self._retention + self._slack

    def put(self, key: Any, start: int, value: Any, timestamp: int) -> None:
        """Set a window's entry; a value of None deletes it."""
        self.newest = max(self.newest, start)
        if value is None:
            self.entries.pop((start, key), None)
        else:
            self.entries[(start, key)] = (value, timestamp)

    def get(self, key: Any, start: int) -> Entry | None:
        """Return a window's entry."""
        return self.entries.get((start, key)) if self.is_visible(start) else None

    def between(self, key: Any, first: int, last: int) -> list[tuple[int, Entry]]:
        """Return a key's windows that start in ``[first, last]``, ascending."""
        found = [
            (start, entry) for (start, other), entry in self.entries.items() if other == key and first <= start <= last
        ]
        return sorted((one for one in found if self.is_visible(one[0])), key=lambda one: one[0])

    def contents(self) -> list[dict[str, Any]]:
        """Return all visible entries, in the format of the recordings."""
        return [
            {"key": {"key": key, "start": start}, "value": value, "ts": at}
            for (start, key), (value, at) in self.entries.items()
            if self.is_visible(start)
        ]


class SessionRows:
    """One value per key, start and end. A session is visible while the newest end is less than ``retention`` later."""

    def __init__(self, retention: int, *, slack: int = 1) -> None:
        self.values: dict[tuple[int, int, Any], Any] = {}
        """The key is ``(end, start, key)``."""
        self.newest = -1
        self._retention = retention
        self._slack = slack

    def is_visible(self, end: int) -> bool:
        """Return whether a session with this end can be read."""
        return end >= self.visible_from(self.newest)

    def visible_from(self, newest: int) -> int:
        """Return the smallest end that can be read if the newest end is ``newest``."""
        return newest - self._retention + self._slack

    def is_in_live_segment(self, end: int) -> bool:
        """Return whether Kafka still has the segment of a session with this end."""
        length = max(self._retention // 2, SEGMENT_MS)
        return end // length >= (self.newest - self._retention) // length

    def put(self, key: Any, start: int, end: int, value: Any) -> None:
        """Set a session's value; None deletes it."""
        self.newest = max(self.newest, end)
        if value is None:
            self.values.pop((end, start, key), None)
        else:
            self.values[(end, start, key)] = value

    def near(self, key: Any, earliest_end: int, latest_start: int) -> list[tuple[int, int, Any]]:
        """Return the key's sessions that overlap a range as ``(start, end, value)``, in order of end."""
        found = [
            (end, start, value)
            for (end, start, other), value in self.values.items()
            if other == key and end >= earliest_end and start <= latest_start and self.is_visible(end)
        ]
        return [(start, end, value) for end, start, value in sorted(found, key=lambda one: one[:2])]

    def contents(self) -> list[dict[str, Any]]:
        """Return all visible entries, in the format of the recordings."""
        return [
            {"key": {"key": key, "start": start, "end": end}, "value": value}
            for (end, start, key), value in self.values.items()
            if self.is_visible(end)
        ]
