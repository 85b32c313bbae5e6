"""Savepoints: if a node with an error policy fails at a record, the writes of this attempt to the node's stores are undone.

Only the stores of such nodes are slower, because each write first saves the rows that it changes. Saved values need not be
copied, because a store never changes a value in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rewindow.streams.state.join_store import RecordStore
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.session_store import SessionStore
from rewindow.streams.state.stores import JOIN, KEY_VALUE, RECORDS, SESSION, VERSIONED, WINDOW, Store
from rewindow.streams.state.versioned_store import VersionedStore
from rewindow.streams.state.window_store import WindowStore

UNDOABLE = (KEY_VALUE, WINDOW, SESSION, VERSIONED, RECORDS, JOIN)
"""The kinds of stores that a node with an error policy may have. Stores of other kinds belong to nodes without user code."""

RollBack = Callable[[], None]


class Undo:
    """The undo log of one store. Its constructor wraps the store's writing methods, so that they save what they change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._log: list[RollBack] | None = None
        self._reset: RollBack = _nothing
        for name, savepoint in _savepoints(store).items():
            setattr(store, name, self._saving(savepoint, getattr(store, name)))
        self._keys: Any = getattr(store, "_keys", None)

    def begin(self) -> None:
        """Begin an attempt. From now on, writes are logged."""
        self._log = []
        self._reset = self._keys.savepoint()
        self._store.hold(is_held=True)

    def end(self) -> None:
        """End an attempt and keep its writes."""
        self._log = None
        self._store.hold(is_held=False)

    def roll_back(self) -> None:
        """End an attempt and undo its writes."""
        log, self._log = self._log or [], None
        for roll_back in reversed(log):
            roll_back()
        self._reset()
        self._store.hold(is_held=False)

    def _saving(self, savepoint: Callable[..., RollBack], write: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the method ``write``, so that a call first takes a savepoint while an attempt is running."""

        def saving(*args: Any, **kwargs: Any) -> Any:
            if self._log is not None:
                self._log.append(savepoint(*args, **kwargs))
            return write(*args, **kwargs)

        return saving


def _savepoints(store: Store) -> dict[str, Callable[..., RollBack]]:
    """Return, by name of each writing method, the function that saves what a call with the same arguments will change."""
    if isinstance(store, KeyValueStore):
        return {
            "put": lambda key, value: store.savepoint(key),  # noqa: ARG005
            "put_if_absent": lambda key, value: store.savepoint(key),  # noqa: ARG005 - it calls its own `put`
            "delete": store.savepoint,
            "put_many": lambda rows: _all_of([store.savepoint(key) for key in rows]),
            "delete_many": lambda keys: _all_of([store.savepoint(key) for key in keys]),
        }
    if isinstance(store, SessionStore):
        return {"put": lambda session, value: store.savepoint(session), "remove": store.savepoint}  # noqa: ARG005
    if isinstance(store, WindowStore):
        return {"put": lambda key, value, start_ms: store.savepoint(key, start_ms)}  # noqa: ARG005
    if isinstance(store, VersionedStore):
        return {"put": lambda key, value, timestamp: store.savepoint(key, timestamp)}  # noqa: ARG005
    if isinstance(store, RecordStore):
        return {
            "put": lambda key, value, timestamp: store.savepoint(key, timestamp),  # noqa: ARG005
            "remove": store.savepoint,
            "pop_before": store.savepoint_before,
        }
    return {}


def _all_of(savepoints: list[RollBack]) -> RollBack:
    def roll_back() -> None:
        for savepoint in reversed(savepoints):
            savepoint()

    return roll_back


def _nothing() -> None:
    pass
