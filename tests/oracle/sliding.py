"""Aggregates by sliding window (KIP-450): one window ends at each record, and one starts right after it."""

from __future__ import annotations

from typing import Any

from rewindow.streams.record import Window, Windowed
from tests.oracle.memory import Entry
from tests.oracle.scripts import Message
from tests.oracle.windows import WindowAggregate


class SlidingAggregate(WindowAggregate):
    """One state per key and window.

    Both ends belong to a window, which accepts records until the clock is past its end plus grace.
    """

    def take(self, message: Message, _side: int, /) -> None:
        """See `Node`."""
        key, value, timestamp = message
        if key is None or value is None:
            return
        self._clock = max(self._clock, timestamp)
        self._close = self._clock - self._windows["grace"]
        self._record = message
        difference = self._windows["diff"]
        if timestamp + 1 + difference <= self._close:
            return
        if timestamp < difference:
            self._take_early(key, timestamp)
            return
        self._take(key, timestamp)
        if self._emits:
            self._emit(self._close)

    def _take(self, key: Any, timestamp: int) -> None:
        difference = self._windows["diff"]
        known = self._rows.between(key, max(0, timestamp - 2 * difference), timestamp + 1)
        starts, right, before = [start for start, _ in known], None, None
        previous: int | None = None
        for start, entry in reversed(known):
            end = start + difference
            if end < timestamp:
                before, previous = entry, entry[1]
                break
            if start <= timestamp:
                if end > timestamp and right is None:
                    right = entry
                if end == timestamp and entry[1] < timestamp:
                    previous = entry[1]
                self._into(start, entry)
        if previous is not None and previous + 1 not in starts and previous + 1 + difference >= timestamp:
            self._into(previous + 1, None)
        if timestamp - difference not in starts:
            is_empty = before is None or previous is None or previous < timestamp - difference
            self._into(timestamp - difference, None if is_empty else before)
        self._after(starts, right)

    def _take_early(self, key: Any, timestamp: int) -> None:
        """Process a record before the first full window. Such records share the window that starts at 0."""
        known = self._rows.between(key, 0, timestamp + 1)
        starts, right, shared = [start for start, _ in known], None, None
        for start, entry in known:
            if start == 0:
                shared = entry
            elif start <= timestamp:
                right = entry
                self._into(start, entry)
        if right is None and shared is not None and shared[1] > timestamp:
            right = shared
        self._after(starts, right)
        if shared is not None and shared[1] < timestamp and shared[1] + 1 not in starts:
            self._into(shared[1] + 1, None)
        self._into(0, shared)

    def _after(self, starts: list[int], right: Entry | None) -> None:
        """Create the window that starts right after the record, without the record, if later ones are in it."""
        key, _, timestamp = self._record
        if timestamp + 1 not in starts and right is not None and right[1] > timestamp:
            self._rows.put(key, timestamp + 1, *right)
            self._update(timestamp + 1, right[0], None, right[1])

    def _emit(self, close: int) -> None:
        self._closing.emit(self._windows["diff"], close - 1)

    def _into(self, start: int, entry: Entry | None) -> None:
        """Add the record to a window that has this content."""
        key, value, timestamp = self._record
        if start + self._windows["diff"] < self._close:
            return
        was = self._rows.get(key, start)
        old = was and was[0]
        if self.follow_kafka("D13"):
            old = self._fold.start if entry is None else entry[0]
        new = self._fold.add(None if entry is None else entry[0], value)
        timestamp = timestamp if entry is None else max(timestamp, entry[1])
        self._rows.put(key, start, new, timestamp)
        self._update(start, new, old, timestamp)

    def _update(self, start: int, new: Any, old: Any, timestamp: int) -> None:
        if not self._emits:
            key = Windowed(self._record[0], Window(start, start + self._windows["diff"]))
            self.send((key, (new, old), timestamp))
