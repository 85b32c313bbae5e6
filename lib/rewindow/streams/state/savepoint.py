"""Stores of nodes that may fail at a record and go on: what a failed attempt did to them is put back, exactly.

Only such stores are watched: each write first notes what its key had. Values need no copies, for a store never
changes one in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rewindow.streams.record import Windowed
from rewindow.streams.state.join_store import RecordStore, Waiting
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.session_store import SessionStore
from rewindow.streams.state.stores import JOIN, KEY_VALUE, RECORDS, SESSION, VERSIONED, WINDOW, Store
from rewindow.streams.state.versioned_store import Put, VersionedStore
from rewindow.streams.state.window_store import WindowStore

UNDOABLE = (KEY_VALUE, WINDOW, SESSION, VERSIONED, RECORDS, JOIN)
"""The kinds of stores that a node with a policy may have. The others are of nodes that run no code of users."""


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
        elif isinstance(store, RecordStore):
            self._watch_records(store)
        elif isinstance(store, VersionedStore):
            self._watch_versions(store)
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
            self._note(store, session)
            put(session, value)

        def noted_remove(session: Windowed) -> None:
            self._note(store, session)
            remove(session)

        _replace(store, put=noted_put, remove=noted_remove)

    def _watch_records(self, store: RecordStore) -> None:
        put, remove, pop_before = store.put, store.remove, store.pop_before

        def noted_put(key: Any, value: Any, timestamp: int) -> None:
            self._note(store, key, timestamp)
            put(key, value, timestamp)

        def noted_remove(key: Any, timestamp: int) -> None:
            self._note(store, key, timestamp)
            remove(key, timestamp)

        def noted_pop(time_ms: int) -> Iterable[Waiting]:
            if self._log is not None:
                self._log.append(store.mark_before(time_ms))
            return pop_before(time_ms)

        _replace(store, put=noted_put, remove=noted_remove, pop_before=noted_pop)

    def _watch_versions(self, store: VersionedStore) -> None:
        put = store.put

        def noted_put(key: Any, value: Any, timestamp: int) -> Put:
            self._note(store, key, timestamp)
            return put(key, value, timestamp)

        _replace(store, put=noted_put)

    def _note(self, store: KeyValueStore | SessionStore | RecordStore | VersionedStore, *where: Any) -> None:
        if self._log is not None:
            self._log.append(store.mark(*where))


def _replace(store: Store, **methods: Callable[..., Any]) -> None:
    for name, method in methods.items():
        setattr(store, name, method)


def _nothing() -> None:
    pass
