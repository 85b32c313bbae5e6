"""A store of sessions: values by key and bounds ``[start, end]``. A session expires one retention after its end."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

from rewindow.errors import ConfigError, DataError
from rewindow.streams.duration import to_ms
from rewindow.streams.record import MAX_MS, UNKNOWN, Window, Windowed
from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.serde.normalizers import copied
from rewindow.streams.state.grouped_store import GroupedStore, GroupRows
from rewindow.streams.state.key_rows import note_removal
from rewindow.streams.state.spill import Disk
from rewindow.streams.state.stores import SESSION, Stamped, StoreBuilder, name_value, restore_flags

Bounds = tuple[int, int]
"""End and start of a session, in this order, because sessions are sorted by end, then start."""


class SessionRows(GroupRows):
    """Values by session, with indexes by key and by end: see `GroupRows`."""

    def __init__(self) -> None:
        self.values: dict[Windowed, Any] = {}
        self._bounds_of: dict[Any, list[Bounds]] = {}
        """For each key, the sorted bounds of its sessions."""
        self._keys_at: dict[Bounds, dict[Any, None]] = {}
        """For each pair of bounds, the keys that have a session with these bounds."""
        self._all_bounds: list[Bounds] = []
        """The sorted bounds of all sessions."""

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

    def admit(self, row_key: Windowed, value: Any) -> None:
        """See `Rows`."""
        self.put(row_key, value)

    def drop(self, session: Windowed) -> None:
        """Remove a session, if it exists."""
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
        """Return the sessions of a key with an end of at least ``earliest_end_ms`` and a start of at most ``latest_start_ms``.

        They are ordered by end, then start.
        """
        bounds = self._bounds_of.get(key, [])
        start = bisect_left(bounds, (earliest_end_ms, UNKNOWN))
        return [
            session_of(key, window_bounds) for window_bounds in bounds[start:] if window_bounds[1] <= latest_start_ms
        ]

    def ending_in(self, from_ms: int, to_ms: int) -> list[Windowed]:
        """Return the sessions of all keys that end in ``[from_ms, to_ms]``, by end, then start, then key bytes."""
        low = bisect_left(self._all_bounds, (from_ms, UNKNOWN))
        high = bisect_right(self._all_bounds, (to_ms, MAX_MS))
        return [
            session_of(key, window_bounds)
            for window_bounds in self._all_bounds[low:high]
            for key in by_bytes(self._keys_at[window_bounds])
        ]

    def drop_ending_until(self, until_ms: int) -> Iterator[Windowed]:
        """Remove the sessions that end at or before a time, and yield them."""
        while self._all_bounds and self._all_bounds[0][0] <= until_ms:
            bounds = self._all_bounds[0]
            for key in list(self._keys_at[bounds]):
                session = session_of(key, bounds)
                self.drop(session)
                yield session

    def position(self, row_key: Windowed) -> tuple[Any, tuple[int, ...]]:
        """See `Rows`."""
        return row_key.key, (row_key.window.end_ms, row_key.window.start_ms)

    def due_at(self, row_key: Windowed, value: Any) -> int:
        """See `Rows`."""
        del value
        return row_key.window.end_ms

    def get(self, row_key: Windowed) -> Any:
        """See `GroupRows`."""
        return self.values.get(row_key)

    def keys(self) -> dict[Any, Any]:
        """See `Rows`."""
        return self._bounds_of

    def rows_of(self, keys: Iterable[Any]) -> Iterator[tuple[Windowed, Any]]:
        """See `Rows`."""
        sessions = (session_of(key, bounds) for key in keys for bounds in self._bounds_of[key])
        return ((session, self.values[session]) for session in sessions)

    def clear(self) -> None:
        """See `Rows`."""
        self.values, self._bounds_of, self._keys_at, self._all_bounds = {}, {}, {}, []

    def count(self) -> int:
        """See `Rows`."""
        return len(self.values)


def session_of(key: Any, bounds: Bounds) -> Windowed:
    """Return the session of a key with these bounds."""
    return Windowed(key, Window(bounds[1], bounds[0], is_session=True))


def session_store(name: str, *, retention: str | timedelta, key: Any = None, value: Any = None) -> StoreBuilder:
    """Declare a session store. A session expires when the latest session in the store ends ``retention`` or more after it.

    The retention is a duration (``"1h"``). Give at least gap plus grace, because a session can change for that time. Raises
    `ConfigError` for a negative retention.
    """
    retention_ms = to_ms(retention)
    if retention_ms < 0:
        raise ConfigError(
            "session-retention-negative",
            "store {store!r}: the retention ({retention}) must be 0 or more",
            store=name,
            retention=repr(retention),
        )
    return StoreBuilder(name, SESSION, key, value, retention_ms=retention_ms)


class SessionStore(GroupedStore):
    """A store of sessions. Its clock is the latest end of a session that was put. Expired sessions are deleted at once."""

    _rows: SessionRows

    def __init__(self, builder: StoreBuilder, disk: Disk | None = None) -> None:
        super().__init__(builder, SessionRows(), disk)
        self._latest_end_ms = UNKNOWN

    @property
    def clock_ms(self) -> int:
        """The latest end of a session that was put so far."""
        return self._latest_end_ms

    def put(self, session: Windowed, value: Any) -> None:
        """Set the value of a session; None removes it. A write to an expired session is dropped and counted.

        Raises `DataError` for bounds that are not times, and for a key or value as `KeyValueStore.put` does.
        """
        session = self._taken(session)
        end_ms = session.window.end_ms
        if end_ms > self._latest_end_ms:
            self._latest_end_ms = end_ms
            self._forget_expired()
        if end_ms <= self._expired_until():
            self._lose(session, value)
            return
        if value is None:
            self._remove(session)
            return
        try:
            value = self._normalize(value)
        except DataError as error:
            name_value(error, self.name, session)
            raise
        if session not in self._changed:
            self._changed[session] = session not in self._rows.values
        self._rows.put(session, value)

    def remove(self, session: Windowed) -> None:
        """Remove a session, if it exists. Raises `DataError` as `put` does."""
        self._remove(self._taken(session))

    def fetch_session(self, key: Any, start_ms: int, end_ms: int) -> Any:
        """Return the value of a key's session with exactly these bounds, or None."""
        self._fetch(key)
        return copied(self._rows.values.get(session_of(key, (end_ms, start_ms))))

    def find(self, key: Windowed) -> Stamped | None:
        """Return the value of a session with the session's end as timestamp, or None if there is no such session."""
        self._fetch(key.key)
        value = self._rows.values.get(key)
        return None if value is None else Stamped(copied(value), key.window.end_ms)

    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """Iterate over all sessions of a key, by end, then start."""
        return self.find_sessions(key, 0, MAX_MS)

    def find_sessions(self, key: Any, earliest_end_ms: int, latest_start_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Iterate over ``(session, value)`` of a key's sessions, ordered by end, then start.

        The sessions end at ``earliest_end_ms`` or later, and start at ``latest_start_ms`` or earlier. Writes during the iteration
        are safe and do not affect it.
        """
        self._fetch(key)
        values = self._rows.values
        sessions = self._rows.find(key, earliest_end_ms, latest_start_ms)
        return iter([(session, copied(values[session])) for session in sessions])

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Iterate over ``(session, value)`` of all sessions that end in ``[from_ms, to_ms]``, by end, start and key bytes.

        Writes during the iteration are safe and do not affect it, because all these sessions are loaded into memory first.
        """
        values = self._rows.values
        sessions = [(session, copied(values[session])) for session in self._rows.ending_in(from_ms, to_ms)]
        if self._spilled is not None and self._spilled.spill is not None:
            sessions = sorted([*sessions, *self._spilled.between(from_ms, to_ms)], key=_by_end)
        return iter(sessions)

    def rows(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        return self.fetch_all(0, MAX_MS)

    def savepoint(self, session: Windowed) -> Callable[[], None]:
        """Return a function that restores what a write to this session will change (see `streams.error_policy`)."""
        clock_ms, end_ms = self._latest_end_ms, session.window.end_ms
        changing = [session]
        try:
            # The write will load the key's sessions, and may then delete some of them as expired. Loading them here makes sure
            # that `changing` lists them, too.
            self._fetch(session.key)
            if end_ms.__class__ is int and end_ms > clock_ms:
                changing += self._rows.ending_in(UNKNOWN, end_ms - self.builder.retention_ms)
            values = {changing_session: self._rows.values.get(changing_session) for changing_session in changing}
        except TypeError:
            # The key is unhashable, so the write will be refused.
            return lambda: None
        changed = {changing_session: self._changed.get(changing_session) for changing_session in changing}

        def roll_back() -> None:
            self._latest_end_ms = clock_ms
            for changing_session, value in values.items():
                if value is None:
                    self._rows.drop(changing_session)
                else:
                    self._rows.put(changing_session, value)
            restore_flags(self._changed, changed)

        return roll_back

    def _load(self, rows: Iterable[tuple[Any, Any]], clock_ms: int) -> None:
        self._latest_end_ms = clock_ms
        for row, value in rows:
            session = self._taken(row)
            if value is None:
                self._rows.drop(session)
            elif session.window.end_ms > self._expired_until():
                self._rows.put(session, copied(value))

    def _taken(self, session: Windowed) -> Windowed:
        """Return a session as a checkpoint would restore it, and load the rows of its key into memory."""
        key, (start_ms, end_ms, _) = session
        if start_ms.__class__ is not int or end_ms.__class__ is not int or not 0 <= start_ms <= end_ms:
            raise DataError(
                "session-bounds-invalid",
                "store {store!r}: a session must have a start and an end in epoch milliseconds, not {session}",
                store=self.name,
                session=repr(session),
            )
        if key.__class__ is not self._keys.exact_class:
            key = self._keys.normalize(key)
        if key not in self._rows.keys():  # noqa: SIM118 - the rows are not a mapping
            # A key that cannot be encoded must be refused here, not at the checkpoint.
            encode_key(key)
        self._fetch(key)
        return session_of(key, (end_ms, start_ms))

    def _remove(self, session: Windowed) -> None:
        if session in self._rows.values:
            note_removal(self._changed, session)
            self._rows.drop(session)

    def _expired_until(self) -> int:
        return self._latest_end_ms - self.builder.retention_ms

    def _forget_expired(self) -> None:
        for session in self._rows.drop_ending_until(self._expired_until()):
            self._changed.pop(session, None)


def _by_end(row: tuple[Windowed, Any]) -> tuple[int, int, bytes]:
    key, (start_ms, end_ms, _) = row[0]
    return end_ms, start_ms, encode_key(key)
