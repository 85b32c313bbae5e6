"""A store of sessions: values by key and ``[start, end]``, forgotten once the latest end is past its retention."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import timedelta
from typing import Any

from rewindow.errors import ConfigError, DataError
from rewindow.streams.duration import to_ms
from rewindow.streams.record import MAX_MS, UNKNOWN, Window, Windowed
from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.serde.values import copied
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.stores import SESSION, Stamped, Store, StoreBuilder, refused

Bounds = tuple[int, int]
"""End and start of a session, in the order in which sessions are read."""


def session_store(name: str, *, retention: str | int | timedelta, key: Any = None, value: Any = None) -> StoreBuilder:
    """Declare a session store. A session is forgotten once the latest end is ``retention`` past its own end.

    The retention is a duration (``"1h"``; an int is milliseconds), of sessions that still may change at least gap and
    grace. Raises `ConfigError` if it is negative.
    """
    retention_ms = to_ms(retention)
    if retention_ms < 0:
        message = f"store {name!r}: the retention ({retention!r}) is 0 or more"
        raise ConfigError(message)
    return StoreBuilder(name, SESSION, key, value, retention_ms=retention_ms)


class SessionStore(Store):
    """Sessions of keys. Its clock is the latest end put; what ended its retention before that, or earlier, is gone."""

    def __init__(self, builder: StoreBuilder) -> None:
        super().__init__(builder)
        self._values: dict[Windowed, Any] = {}
        self._sessions_of: dict[Any, list[Bounds]] = {}
        """The sessions of each key, sorted."""
        self._keys_at: dict[Bounds, dict[Any, None]] = {}
        """The keys that have these bounds."""
        self._all_bounds: list[Bounds] = []
        """The bounds that any key has, sorted."""
        self._keys = KeyType(builder, self._live_keys)
        self._keep = builder.kept.value
        self._latest_end_ms = UNKNOWN

    @property
    def clock_ms(self) -> int:
        """The latest session end put so far."""
        return self._latest_end_ms

    def put(self, session: Windowed, value: Any) -> None:
        """Set the value of a session; None removes it. A session that has expired is not written, but counted.

        Raises `DataError` for bounds that are no times, and for a key or value as `KeyValueStore.put` does.
        """
        session = self._taken(session)
        end_ms = session.window.end_ms
        if end_ms > self._latest_end_ms:
            self._latest_end_ms = end_ms
            self._forget_expired()
        if self._is_expired(end_ms):
            self._lose(session, value)
            return
        if value is None:
            self._remove(session)
            return
        try:
            value = self._keep(value)
        except DataError as error:
            raise refused(self.name, session, error) from error
        if session not in self._changed:
            self._changed[session] = session not in self._values
        self._set(session, value)

    def remove(self, session: Windowed) -> None:
        """Remove a session; nothing happens if there is none. Raises `DataError` as `put` does."""
        self._remove(self._taken(session))

    def fetch_session(self, key: Any, start_ms: int, end_ms: int) -> Any:
        """Return the value of exactly this session of a key, or None."""
        self._touch(key)
        return copied(self._values.get(_session(key, (end_ms, start_ms))))

    def find(self, key: Windowed) -> Stamped | None:
        """Return the value of a session with its timestamp, which is the session's end; or None."""
        self._touch(key.key)
        value = self._values.get(key)
        return None if value is None else Stamped(copied(value), key.window.end_ms)

    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """Iterate over all sessions of a key, by end, then start."""
        return self.find_sessions(key, 0, MAX_MS)

    def find_sessions(self, key: Any, earliest_end_ms: int, latest_start_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Iterate over the sessions of a key that end at or after one time and start at or before another.

        They come by end, then start. Writing meanwhile is safe and not seen.
        """
        self._touch(key)
        bounds = self._sessions_of.get(key, [])
        found = [one for one in bounds[bisect_left(bounds, (earliest_end_ms, UNKNOWN)) :] if one[1] <= latest_start_ms]
        sessions = [_session(key, one) for one in found]
        return iter([(session, copied(self._values[session])) for session in sessions])

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Iterate over all sessions that end in ``[from, to]``, by end, then start, then key bytes.

        Writing meanwhile is safe and not seen.
        """
        low = bisect_left(self._all_bounds, (from_ms, UNKNOWN))
        high = bisect_right(self._all_bounds, (to_ms, MAX_MS))
        sessions = [_session(key, one) for one in self._all_bounds[low:high] for key in by_bytes(self._keys_at[one])]
        return iter([(session, copied(self._values[session])) for session in sessions])

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`. Sessions that have expired at ``clock_ms`` are not taken in."""
        self._latest_end_ms = clock_ms
        for row, value in rows:
            session = self._taken(row)
            if value is None:
                self._drop(session)
            elif not self._is_expired(session.window.end_ms):
                self._set(session, copied(value))

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`. What has expired needs no tombstone: the clock tells."""
        changed, self._changed = self._changed, {}
        return [(session, self._values.get(session)) for session in sorted(changed, key=_by_key)]

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        return self.fetch_all(0, MAX_MS)

    def __len__(self) -> int:
        """The number of sessions."""
        return len(self._values)

    def mark(self, session: Windowed) -> Callable[[], None]:
        """Return what puts a session, the clock and what expires by it back as they are now, for `core.undo`."""
        clock_ms, end_ms = self._latest_end_ms, session.window.end_ms
        gone = [session]
        if end_ms.__class__ is int and end_ms > clock_ms:
            last = bisect_right(self._all_bounds, (end_ms - self.builder.retention_ms, MAX_MS))
            gone += [_session(key, bounds) for bounds in self._all_bounds[:last] for key in self._keys_at[bounds]]
        try:
            self._touch(session.key)
            states = [(one, self._values.get(one), self._changed.get(one)) for one in gone]
        except TypeError:  # no key at all: it will be refused
            return lambda: None

        def put_back() -> None:
            self._latest_end_ms = clock_ms
            for one, value, changed in states:
                if value is None:
                    self._drop(one)
                else:
                    self._set(one, value)
                self._changed.pop(one, None)
                if changed is not None:
                    self._changed[one] = changed

        return put_back

    def _taken(self, session: Windowed) -> Windowed:
        """Return a session as a checkpoint gives it back."""
        key, (start_ms, end_ms, _) = session
        if start_ms.__class__ is not int or end_ms.__class__ is not int or not 0 <= start_ms <= end_ms:
            message = f"store {self.name!r}: a session is from a start to an end of epoch milliseconds, not {session!r}"
            raise DataError(message)
        if key.__class__ is not self._keys.cls:
            key = self._keys.take(key)
        if key not in self._sessions_of:
            encode_key(key)  # a key without bytes is refused here and not at the checkpoint
        self._touch(key)
        return _session(key, (end_ms, start_ms))

    def _set(self, session: Windowed, value: Any) -> None:
        if session not in self._values:
            key, (start_ms, end_ms, _) = session
            bounds = (end_ms, start_ms)
            insort(self._sessions_of.setdefault(key, []), bounds)
            if bounds not in self._keys_at:
                self._keys_at[bounds] = {}
                insort(self._all_bounds, bounds)
            self._keys_at[bounds][key] = None
        self._values[session] = value

    def _remove(self, session: Windowed) -> None:
        if session in self._values:
            self._note_removal(session)
            self._drop(session)

    def _drop(self, session: Windowed) -> None:
        if self._values.pop(session, None) is None:
            return
        key, (start_ms, end_ms, _) = session
        bounds = (end_ms, start_ms)
        own, keys = self._sessions_of[key], self._keys_at[bounds]
        del own[bisect_left(own, bounds)]
        del keys[key]
        if not own:
            del self._sessions_of[key]
        if not keys:
            del self._keys_at[bounds]
            del self._all_bounds[bisect_left(self._all_bounds, bounds)]

    def _rows(self, keys: Iterable[Any]) -> Iterator[tuple[Windowed, Any]]:
        sessions = (_session(key, bounds) for key in keys for bounds in self._sessions_of[key])
        return ((session, self._values[session]) for session in sessions)

    def _live_keys(self) -> Iterable[Any]:
        return self._sessions_of

    def _is_expired(self, end_ms: int) -> bool:
        return end_ms <= self._latest_end_ms - self.builder.retention_ms

    def _forget_expired(self) -> None:
        while self._all_bounds and self._is_expired(self._all_bounds[0][0]):
            bounds = self._all_bounds[0]
            for key in list(self._keys_at[bounds]):
                session = _session(key, bounds)
                self._changed.pop(session, None)
                self._drop(session)


def _by_key(session: Windowed) -> tuple[bytes, int, int]:
    return encode_key(session.key), session.window.end_ms, session.window.start_ms


def _session(key: Any, bounds: Bounds) -> Windowed:
    return Windowed(key, Window(bounds[1], bounds[0], is_session=True))
