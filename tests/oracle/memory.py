"""What operators remember, by definition: a dictionary, and what may still be seen of it."""

from __future__ import annotations

from typing import Any

from rewindow.streams.record import Windowed

Entry = tuple[Any, int]
"""A value and its timestamp."""

SEGMENT_MS = 60_000
"""Kafka drops expired windows by segments, at least this long."""


def key_bytes(key: Any) -> bytes:
    """Return what orders keys: the text, then for a window its start, and before that for a session its end."""
    if not isinstance(key, Windowed):
        return str(key).encode()
    times = (key.window.end_ms, key.window.start_ms) if key.window.is_session else (key.window.start_ms,)
    return str(key.key).encode() + b"".join(time.to_bytes(8, "big") for time in times)


class Rows:
    """One entry per key."""

    def __init__(self) -> None:
        self.entries: dict[Any, Entry] = {}

    def get(self, key: Any) -> Entry | None:
        """Return a key's entry."""
        return self.entries.get(key)

    def put(self, key: Any, value: Any, timestamp: int) -> None:
        """Set a key's entry; a value of None deletes it."""
        if value is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = (value, timestamp)

    def contents(self) -> list[dict[str, Any]]:
        """Return all, as the format has it."""
        return [{"key": key, "value": value, "ts": at} for key, (value, at) in self.entries.items()]


class WindowRows:
    """One entry per key and start. What started ``retention`` before the newest start cannot be seen any more."""

    def __init__(self, retention: int, *, slack: int = 1) -> None:
        self.entries: dict[tuple[int, Any], Entry] = {}
        self.newest = -1
        self._retention = retention
        self._slack = slack

    def is_visible(self, start: int) -> bool:
        """Say whether a window that starts then can be read."""
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
        """Return all, as the format has it."""
        return [
            {"key": {"key": key, "start": start}, "value": value, "ts": at}
            for (start, key), (value, at) in self.entries.items()
            if self.is_visible(start)
        ]


class SessionRows:
    """One value a key, start and end. What ended ``retention`` before the newest end cannot be seen any more."""

    def __init__(self, retention: int, *, slack: int = 1) -> None:
        self.values: dict[tuple[int, int, Any], Any] = {}
        """By end, start and key."""
        self.newest = -1
        self._retention = retention
        self._slack = slack

    def is_visible(self, end: int) -> bool:
        """Say whether a session that ends then can be read."""
        return end >= self.visible_from(self.newest)

    def visible_from(self, newest: int) -> int:
        """Return the first end that can be read once the newest is this."""
        return newest - self._retention + self._slack

    def is_in_live_segment(self, end: int) -> bool:
        """Say whether Kafka has not dropped the segment of a session that ends then."""
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
        """Return ``(start, end, value)`` of a key's sessions that reach into a range, by end."""
        found = [
            (end, start, value)
            for (end, start, other), value in self.values.items()
            if other == key and end >= earliest_end and start <= latest_start and self.is_visible(end)
        ]
        return [(start, end, value) for end, start, value in sorted(found, key=lambda one: one[:2])]

    def contents(self) -> list[dict[str, Any]]:
        """Return all, as the format has it."""
        return [
            {"key": {"key": key, "start": start, "end": end}, "value": value}
            for (end, start, key), value in self.values.items()
            if self.is_visible(end)
        ]
