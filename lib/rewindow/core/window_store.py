"""A store of windows: a key-value store for each window start, forgotten once the newest start is past its retention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rewindow.core.keys import KeyForm
from rewindow.core.record import UNKNOWN, Window, Windowed
from rewindow.core.stores import KeyValueStore, Store, StoreBuilder
from rewindow.errors import DataError


class WindowStore(Store):
    """A key-value store for each window start. Its clock is the newest start put; expired windows are gone at once."""

    def __init__(self, builder: StoreBuilder) -> None:
        super().__init__(builder)
        self._windows: dict[int, KeyValueStore] = {}
        self._keys = KeyForm(builder, lambda: (key for window in self._windows.values() for key in window))
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

    def fetch(self, key: Any, start_ms: int) -> Any:
        """Return the value of a key's window, or None."""
        window = self._windows.get(start_ms)
        return None if window is None else window.get(key)

    def find(self, key: Windowed) -> Any:
        """Return the value of a windowed key, or None."""
        return self.fetch(key.key, key.window.start_ms)

    def fetch_range(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """Iterate over ``(start, value)`` of a key's windows that start in ``[from, to]``, ascending."""
        inside = sorted(start for start in self._windows if from_ms <= start <= to_ms)
        found = [(start_ms, self.fetch(key, start_ms)) for start_ms in inside]
        return iter([(start_ms, value) for start_ms, value in found if value is not None])

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Iterate over all windows that start in ``[from, to]``, by start, then key bytes.

        Writing meanwhile is safe and not seen.
        """
        inside = sorted(start for start in self._windows if from_ms <= start <= to_ms)
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

    def take_changes(self) -> list[tuple[Any, Any]]:
        """See `Store`. What has expired needs no tombstone: the clock tells."""
        return [
            (self._windowed(start_ms, key), value)
            for start_ms, window in sorted(self._windows.items())
            for key, value in window.take_changes()
        ]

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        return self.fetch_all(0, self._newest_start_ms)

    def _opened(self, start_ms: int) -> KeyValueStore | None:
        """Return a window that nothing was put into yet, moving the clock; None if it has expired."""
        if start_ms.__class__ is not int:
            message = f"store {self.name!r}: the start of a window is epoch milliseconds, not {start_ms!r}"
            raise DataError(message)
        if self._is_expired(start_ms):
            return None
        if start_ms > self._newest_start_ms:
            self._newest_start_ms = start_ms
            self._forget_expired()
        return self._window(start_ms)

    def _window(self, start_ms: int) -> KeyValueStore:
        if start_ms not in self._windows:
            self._windows[start_ms] = KeyValueStore(self.builder, self._keys)
        return self._windows[start_ms]

    def _windowed(self, start_ms: int, key: Any) -> Windowed:
        return Windowed(key, Window(start_ms, start_ms + self.builder.window_size_ms))

    def _is_expired(self, start_ms: int) -> bool:
        return start_ms <= self._newest_start_ms - self.builder.retention_ms

    def _forget_expired(self) -> None:
        for start_ms in [start for start in self._windows if self._is_expired(start)]:
            del self._windows[start_ms]
