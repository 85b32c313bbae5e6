"""The rows of a session store that are in memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from rewindow.streams.record import MAX_MS, UNKNOWN, Window, Windowed
from rewindow.streams.serde.key_bytes import by_bytes

Bounds = tuple[int, int]
"""End and start of a session: sessions are read in this order."""


class SessionRows:
    """See `GroupRows`: values by session, found by key and by end."""

    def __init__(self) -> None:
        self.values: dict[Windowed, Any] = {}
        self._bounds_of: dict[Any, list[Bounds]] = {}
        """The sessions of each key, sorted."""
        self._keys_at: dict[Bounds, dict[Any, None]] = {}
        """The keys that have a session with these bounds."""
        self._all_bounds: list[Bounds] = []
        """The bounds that any key has, sorted."""

    def put(self, session: Windowed, value: Any) -> None:
        """Insert or replace a session."""
        if session not in self.values:
            key, (start_ms, end_ms, _) = session
            bounds = (end_ms, start_ms)
            insort(self._bounds_of.setdefault(key, []), bounds)
            if bounds not in self._keys_at:
                self._keys_at[bounds] = {}
                insort(self._all_bounds, bounds)
            self._keys_at[bounds][key] = None
        self.values[session] = value

    admit = put

    def drop(self, session: Windowed) -> None:
        """Remove a session, if there is one."""
        if self.values.pop(session, None) is None:
            return
        key, (start_ms, end_ms, _) = session
        bounds = (end_ms, start_ms)
        own, keys = self._bounds_of[key], self._keys_at[bounds]
        del own[bisect_left(own, bounds)]
        del keys[key]
        if not own:
            del self._bounds_of[key]
        if not keys:
            del self._keys_at[bounds]
            del self._all_bounds[bisect_left(self._all_bounds, bounds)]

    def find(self, key: Any, earliest_end_ms: int, latest_start_ms: int) -> list[Windowed]:
        """Return the sessions of a key that end and start within these limits, by end, then start."""
        bounds = self._bounds_of.get(key, [])
        first = bisect_left(bounds, (earliest_end_ms, UNKNOWN))
        return [session_of(key, one) for one in bounds[first:] if one[1] <= latest_start_ms]

    def ending_in(self, from_ms: int, to_ms: int) -> list[Windowed]:
        """Return the sessions of all keys that end in ``[from, to]``, by end, then start, then key bytes."""
        low = bisect_left(self._all_bounds, (from_ms, UNKNOWN))
        high = bisect_right(self._all_bounds, (to_ms, MAX_MS))
        return [session_of(key, one) for one in self._all_bounds[low:high] for key in by_bytes(self._keys_at[one])]

    def drop_ending_until(self, until_ms: int) -> Iterator[Windowed]:
        """Remove the sessions that end at or before a time, and yield them."""
        while self._all_bounds and self._all_bounds[0][0] <= until_ms:
            bounds = self._all_bounds[0]
            for key in list(self._keys_at[bounds]):
                session = session_of(key, bounds)
                self.drop(session)
                yield session

    def position(self, row_key: Windowed) -> tuple[Any, tuple[int, ...]]:
        """See `GroupRows`."""
        return row_key.key, (row_key.window.end_ms, row_key.window.start_ms)

    def due_at(self, row_key: Windowed, value: Any) -> int:
        """See `GroupRows`."""
        del value
        return row_key.window.end_ms

    def get(self, row_key: Windowed) -> Any:
        """See `GroupRows`."""
        return self.values.get(row_key)

    def keys(self) -> Collection[Any]:
        """See `GroupRows`."""
        return self._bounds_of

    def rows_of(self, keys: Iterable[Any]) -> Iterator[tuple[Windowed, Any]]:
        """See `GroupRows`."""
        sessions = (session_of(key, bounds) for key in keys for bounds in self._bounds_of[key])
        return ((session, self.values[session]) for session in sessions)

    def clear(self) -> None:
        """See `GroupRows`."""
        self.values, self._bounds_of, self._keys_at, self._all_bounds = {}, {}, {}, []

    def __len__(self) -> int:
        return len(self.values)


def session_of(key: Any, bounds: Bounds) -> Windowed:
    """Return the session of a key with these bounds."""
    return Windowed(key, Window(bounds[1], bounds[0], is_session=True))
