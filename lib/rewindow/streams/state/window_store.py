"""A store of windows: a key-value store for each window start, forgotten once the newest start is past its retention."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from rewindow.errors import DataError
from rewindow.streams.record import UNKNOWN, Window, Windowed
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.stores import Store, StoreBuilder


class WindowStore(Store):
    """A key-value store for each window start. Its clock is the newest start put; expired windows are gone at once."""

    def __init__(self, builder: StoreBuilder) -> None:
        super().__init__(builder)
        self._windows: dict[int, KeyValueStore] = {}
        self._starts: list[int] = []
        """The starts of the windows, sorted."""
        self._starts_of: Any = None
        """The starts of each key's windows, sorted; kept from the first `fetch_range` on."""
        self._keys = KeyType(builder, lambda: (key for window in self._windows.values() for key in window))
        self._newest_start_ms = UNKNOWN

    @property
    def clock_ms(self) -> int:
        """The newest window start put so far."""
        return self._newest_start_ms

    def put(self, key: Any, value: Any, start_ms: int) -> None:
        """Set the value of a key's window; None deletes it. A window that has expired is not written, but counted.

        Raises `DataError` as `KeyValueStore.put` does, and for a start that is no integer.
        """
        window = self._windows.get(start_ms)
        if window is None:
            window = self._opened(start_ms)
            if window is None:
                self._lose(self._windowed(start_ms, key), value)
                return
        window.put(key, value)
        if self._starts_of is not None:
            self._note_start(self._starts_of, key, start_ms, is_there=value is not None)

    def fetch(self, key: Any, start_ms: int) -> Any:
        """Return the value of a key's window, or None."""
        window = self._windows.get(start_ms)
        return None if window is None else window.get(key)

    def find(self, key: Windowed) -> Any:
        """Return the value of a windowed key, or None."""
        return self.fetch(key.key, key.window.start_ms)

    def fetch_range(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """Iterate over ``(start, value)`` of a key's windows that start in ``[from, to]``, ascending.

        Writing meanwhile is safe and not seen.
        """
        if self._starts_of is None:
            self._starts_of = self._index()
        starts = self._starts_of.get(key) or ()
        inside = starts[bisect_left(starts, from_ms) : bisect_right(starts, to_ms)]
        return iter([(start_ms, self.fetch(key, start_ms)) for start_ms in inside])

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Iterate over all windows that start in ``[from, to]``, by start, then key bytes.

        Writing meanwhile is safe and not seen.
        """
        inside = self._starts[bisect_left(self._starts, from_ms) : bisect_right(self._starts, to_ms)]
        for start_ms, pairs in [(start, self._windows[start].all()) for start in inside]:
            for key, value in pairs:
                yield self._windowed(start_ms, key), value

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`. Rows of windows that have expired at ``clock_ms`` are not taken in."""
        self._newest_start_ms = clock_ms
        for windowed, value in rows:
            start_ms = windowed.window.start_ms
            if not self._is_expired(start_ms):
                self._window(start_ms).restore([(windowed.key, value)])
        self._starts_of = None

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`. What has expired needs no tombstone: the clock tells."""
        return [
            (self._windowed(start_ms, key), value)
            for start_ms in self._starts
            for key, value in self._windows[start_ms].take_changes()
        ]

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        return self.fetch_all(0, self._newest_start_ms)

    def __len__(self) -> int:
        """The number of windows, of all keys."""
        return sum(map(len, self._windows.values()))

    def window(self, start_ms: int) -> KeyValueStore | None:
        """Return a window's own store, if it has one."""
        return self._windows.get(start_ms)

    def mark(self) -> Callable[[], None]:
        """Return what puts windows and clock back as they are now, for `core.undo`; not what is in the windows."""
        windows, starts, newest_ms = self._windows.copy(), self._starts.copy(), self._newest_start_ms

        def put_back() -> None:
            self._windows, self._starts, self._newest_start_ms = windows, starts, newest_ms
            self.forget_starts()

        return put_back

    def forget_starts(self) -> None:
        """Let `fetch_range` look again which windows each key has."""
        self._starts_of = None

    def _let_go(self, window: KeyValueStore) -> None:
        """A window has expired."""

    def _index(self) -> Any:
        """Return the starts of each key's windows."""
        starts_of: dict[Any, list[int]] = {}
        for start_ms in self._starts:
            for one in self._windows[start_ms]:
                starts_of.setdefault(one, []).append(start_ms)
        return starts_of

    def _opened(self, start_ms: int) -> KeyValueStore | None:
        """Return a window that nothing was put into yet, moving the clock; None if it has expired."""
        if start_ms.__class__ is not int:
            message = f"store {self.name!r}: the start of a window is epoch milliseconds, not {start_ms!r}"
            raise DataError(message)
        if start_ms > self._newest_start_ms:
            self._newest_start_ms = start_ms
            self._forget_expired()
        return None if self._is_expired(start_ms) else self._window(start_ms)

    def _window(self, start_ms: int) -> KeyValueStore:
        if start_ms not in self._windows:
            self._windows[start_ms] = self._new_window(start_ms)
            insort(self._starts, start_ms)
        return self._windows[start_ms]

    def _new_window(self, start_ms: int) -> KeyValueStore:
        del start_ms
        return KeyValueStore(self.builder, self._keys)

    def _windowed(self, start_ms: int, key: Any) -> Windowed:
        return Windowed(key, Window(start_ms, start_ms + self.builder.window_size_ms))

    def _is_expired(self, start_ms: int) -> bool:
        return start_ms <= self._newest_start_ms - self.builder.retention_ms

    def _forget_expired(self) -> None:
        expired = bisect_right(self._starts, self._newest_start_ms - self.builder.retention_ms)
        for start_ms in self._starts[:expired]:
            window = self._windows.pop(start_ms)
            self._let_go(window)
            if self._starts_of is not None:
                for key in window:
                    self._note_start(self._starts_of, key, start_ms, is_there=False)
        del self._starts[:expired]

    def _note_start(self, starts_of: Any, key: Any, start_ms: int, *, is_there: bool) -> None:
        starts = starts_of.setdefault(key, [])
        note_start(starts, start_ms, is_there=is_there)
        if not starts:
            del starts_of[key]


def note_start(starts: list[int], start_ms: int, *, is_there: bool) -> bool:
    """Note in sorted starts whether one is there; return whether that is new."""
    place = bisect_left(starts, start_ms)
    was_there = place < len(starts) and starts[place] == start_ms
    if is_there and not was_there:
        starts.insert(place, start_ms)
    elif was_there and not is_there:
        del starts[place]
    return is_there != was_there
