"""Stores of nodes that may fail at a record and go on: what a failed attempt did to them is put back, exactly.

Only such stores are watched: each write first notes what its key had. Values need no copies, for a store never
changes one in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rewindow.core.key_value_store import KeyValueStore
from rewindow.core.record import Windowed
from rewindow.core.session_store import SessionStore
from rewindow.core.stores import KEY_VALUE, SESSION, WINDOW, Store
from rewindow.core.window_store import WindowStore

UNDOABLE = (KEY_VALUE, WINDOW, SESSION)
"""The kinds of stores that a node with a policy may have."""


class Undo:
    """What one store had before an attempt."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._log: list[Callable[[], None]] | None = None
        self._reset: Callable[[], None] = _nothing
        if isinstance(store, KeyValueStore):
            self._watch_key_value(store)
        elif isinstance(store, WindowStore):
            self._watch_windows(store)
        elif isinstance(store, SessionStore):
            self._watch_sessions(store)
        self._keys: Any = getattr(store, "_keys", None)

    def begin(self) -> None:
        """Begin an attempt."""
        self._log = []
        self._reset = self._keys.mark()
        self._store.hold(is_held=True)

    def end(self) -> None:
        """End an attempt; what it did counts."""
        self._log = None
        self._store.hold(is_held=False)

    def roll_back(self) -> None:
        """End an attempt; it never was."""
        log, self._log = self._log or [], None
        for put_back in reversed(log):
            put_back()
        self._reset()
        self._store.hold(is_held=False)

    def _watch_key_value(self, store: KeyValueStore) -> None:
        put, delete = store.put, store.delete

        def noted_put(key: Any, value: Any) -> None:
            self._note(store, key)
            put(key, value)

        def noted_delete(key: Any) -> Any:
            self._note(store, key)
            return delete(key)

        _replace(store, put=noted_put, delete=noted_delete)

    def _watch_windows(self, store: WindowStore) -> None:
        put = store.put

        def noted_put(key: Any, value: Any, start_ms: int) -> None:
            if self._log is not None:
                window = store.window(start_ms)
                if window is None:
                    self._log.append(store.mark())
                else:
                    self._note(window, key)
                    self._log.append(store.forget_starts)
            put(key, value, start_ms)

        _replace(store, put=noted_put)

    def _watch_sessions(self, store: SessionStore) -> None:
        put, remove = store.put, store.remove

        def noted_put(session: Windowed, value: Any) -> None:
            if self._log is not None:
                self._log.append(store.mark(session))
            put(session, value)

        def noted_remove(session: Windowed) -> None:
            if self._log is not None:
                self._log.append(store.mark(session))
            remove(session)

        _replace(store, put=noted_put, remove=noted_remove)

    def _note(self, store: KeyValueStore, key: Any) -> None:
        if self._log is not None:
            self._log.append(store.mark(key))


def _replace(store: Store, **methods: Callable[..., Any]) -> None:
    for name, method in methods.items():
        setattr(store, name, method)


def _nothing() -> None:
    pass
