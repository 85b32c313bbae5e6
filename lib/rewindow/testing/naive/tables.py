"""Aggregates, windows and suppress by definition: the whole history is looked at again for each record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rewindow.core.record import Window, Windowed
from rewindow.testing.naive.scripts import Message
from rewindow.testing.vocabulary import concat, reducer

Forward = Callable[[Message], None]


def fold(name: str, values: list[tuple[Any, int]]) -> tuple[Any, int]:
    """Return the aggregate of ``(value, timestamp)`` pairs, and the timestamp of the result. None starts anew."""
    state: Any = None
    timestamp = -1
    for value, at in values:
        timestamp = at if state is None else max(timestamp, at)
        if name == "count":
            state = (state or 0) + 1
        elif name == "concat":
            state = concat(state or "", value)
        else:
            state = value if state is None else reducer(name)(state, value)
    return state, timestamp


class Aggregate:
    """One state a key, or a key and window."""

    def __init__(self, name: str, windows: Mapping[str, Any] | None, forward: Forward) -> None:
        self._name = name
        self._windows = windows
        self._forward = forward
        self._taken: dict[Any, list[tuple[Any, int]]] = {}
        self._clock = -1

    def process(self, message: Message) -> None:
        """Take a record into each window that takes it."""
        key, value, timestamp = message
        if key is None or (self._windows is None and value is None):
            return
        self._clock = max(self._clock, timestamp)
        for place in self._places(key, timestamp):
            history = self._taken.setdefault(place, [])
            old = fold(self._name, history)[0]
            history.append((value, timestamp))
            new, at = fold(self._name, history)
            self._forward((place, (new, old), at))

    def contents(self) -> dict[Any, tuple[Any, int]]:
        """Return what the store shows: a window goes when a newer one started its retention later."""
        results = {place: fold(self._name, history) for place, history in self._taken.items()}
        if self._windows is not None and results:
            newest = max(place.window.start_ms for place in results)
            kept = self._windows["size"] + self._windows["grace"]
            results = {place: one for place, one in results.items() if place.window.start_ms > newest - kept}
        return {place: one for place, one in results.items() if one[0] is not None}

    def _places(self, key: Any, timestamp: int) -> list[Any]:
        if self._windows is None:
            return [key]
        size, grace = self._windows["size"], self._windows["grace"]
        advance = self._windows.get("advance", size)
        starts = [start for start in range(0, timestamp + 1, advance) if timestamp < start + size]
        return [Windowed(key, Window(s, s + size)) for s in starts if s + size + grace > self._clock]


class UntilWindowCloses:
    """Holds results back until their window is over."""

    def __init__(self, grace: int, forward: Forward) -> None:
        self._grace = grace
        self._forward = forward
        self._held: dict[Any, tuple[Any, int]] = {}
        self._clock = -1

    def process(self, message: Message) -> None:
        """Hold an update; send what is final now."""
        key, (new, _old), timestamp = message
        self._clock = max(self._clock, timestamp)
        self._held[key] = (new, timestamp)
        due = [one for one in self._held if one.window.end_ms + self._grace <= self._clock]
        for one in sorted(due, key=lambda w: (w.window.end_ms, w.key.encode(), w.window.start_ms)):
            value, at = self._held.pop(one)
            if value is not None:
                self._forward((one, (value, None), at))
