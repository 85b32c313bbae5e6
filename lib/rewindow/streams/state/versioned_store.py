"""A store that keeps each key's past: what a table said at a time, as far back as its history goes (KIP-889).

Rules of this file:

1. A version begins at its timestamp and lasts until the next one of its key. A tombstone is a version too: from it on
   the key has no value.
2. The store's clock is the highest timestamp put. What is older than ``clock - history`` is refused and counted; the
   bound itself is taken. A version of the same timestamp replaces.
3. `get` gives the newest version, `get_as_of` the one that held at a time; of a time before the bound it says nothing,
   unless the newest version is that old.
4. A version that no `get_as_of` can reach any more is gone; when that is noticed makes no difference to any reader.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import timedelta
from enum import Enum
from operator import itemgetter
from typing import Any, NamedTuple

from rewindow.errors import ConfigError, DataError
from rewindow.streams.duration import to_ms
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.serde.values import copied
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.stores import VERSIONED, Stamped, Store, StoreBuilder, refused, restore_flags

_TIME = itemgetter(0)


class VersionKey(NamedTuple):
    """A key and the time from which a version of it holds."""

    key: Any
    valid_from: int


class Version(NamedTuple):
    """What a key's value is in one version; None: it has none."""

    value: Any


class Put(Enum):
    """What became of a version that was put."""

    LATEST = "latest"
    """It is the newest of its key."""
    PAST = "past"
    """A newer one was there."""
    REFUSED = "refused"
    """It is older than the history."""


def versioned_store(name: str, *, history: str | timedelta, key: Any = None, value: Any = None) -> StoreBuilder:
    """Declare a store that keeps the versions of the last ``history`` (``"30d"``), for tables and processors (KIP-889).

    Raises `ConfigError` for a negative history.
    """
    history_ms = to_ms(history)
    if history_ms < 0:
        message = f"versioned_store({name!r}, history={history!r}): the history is 0 or more"
        raise ConfigError(message)
    return StoreBuilder(name, VERSIONED, key, value, retention_ms=history_ms)


class VersionedStore(Store):
    """The versions of each key, in memory."""

    expired_reason = "history-expired"

    def __init__(self, builder: StoreBuilder) -> None:
        super().__init__(builder)
        self._versions: dict[Any, list[tuple[int, Any]]] = {}
        """Of each key ``(valid from, value)``, ascending."""
        self._keys, self._keep = KeyType(builder, self._live_keys), builder.kept.value
        self._clock_ms = UNKNOWN

    @property
    def clock_ms(self) -> int:
        """The highest timestamp put so far."""
        return self._clock_ms

    @property
    def history_ms(self) -> int:
        """How far back it knows."""
        return self.builder.retention_ms

    def put(self, key: Any, value: Any, timestamp: int) -> Put:
        """Set the value that holds from a time on; None is a tombstone. One older than the history is not kept, but counted.

        Raises `DataError` as `KeyValueStore.put` does, and for a timestamp that is negative or no integer.
        """
        if timestamp.__class__ is not int or timestamp < 0:
            message = f"store {self.name!r}: a version begins at epoch milliseconds, never negative, not {timestamp!r}"
            raise DataError(message)
        if timestamp < self._oldest_ms:
            self._lose(key, value)
            return Put.REFUSED
        key = self._keys.take(key)
        encode_key(key)  # a key without bytes is refused here and not at the checkpoint
        if value is not None:
            try:
                value = self._keep(value)
            except DataError as error:
                raise refused(self.name, key, error) from error
        self._touch(key)
        self._clock_ms = max(self._clock_ms, timestamp)
        versions = self._versions.setdefault(key, [])
        place = bisect_left(versions, timestamp, key=_TIME)
        is_new = place == len(versions) or versions[place][0] != timestamp
        versions[place : place + (0 if is_new else 1)] = [(timestamp, value)]
        self._changed.setdefault(VersionKey(key, timestamp), is_new)
        is_latest = place == len(versions) - 1
        self._forget(key)
        return Put.LATEST if is_latest else Put.PAST

    def get(self, key: Any) -> Stamped | None:
        """Return the newest version's value and timestamp, or None."""
        self._touch(key)
        versions = self._versions.get(key)
        return _stamped(versions[-1]) if versions else None

    find = get

    def get_as_of(self, key: Any, timestamp: int) -> Stamped | None:
        """Return the value that held at a time and when it began, or None: there was none, or the history is shorter."""
        self._touch(key)
        versions = self._versions.get(key)
        if not versions:
            return None
        if versions[-1][0] <= timestamp:
            return _stamped(versions[-1])
        place = bisect_right(versions, timestamp, key=_TIME) if timestamp >= self._oldest_ms else 0
        return _stamped(versions[place - 1]) if place else None

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`. Rows are ``(VersionKey, Version)``."""
        self._clock_ms = clock_ms
        found: dict[Any, dict[int, Any]] = {}
        for (key, valid_from), version in rows:
            own = found.setdefault(self._keys.take(key), {})
            if version is None:
                own.pop(valid_from, None)
            else:
                own[valid_from] = version.value
        self._versions = {key: sorted(own.items(), key=_TIME) for key, own in found.items() if own}

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`. What no reader can reach any more leaves the checkpoint here."""
        for key in tuple(self._versions):
            self._forget(key)
        changed, self._changed = self._changed, {}
        return [(one, self._version(one)) for one in sorted(changed, key=_by_key)]

    def __len__(self) -> int:
        """The number of versions, of all keys."""
        return sum(map(len, self._versions.values()))

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`: ``(VersionKey, Version)`` by key bytes and time, as far as a reader can reach."""
        return iter(
            [
                (VersionKey(key, valid_from), Version(copied(value)))
                for key in by_bytes(self._versions)
                for valid_from, value in self._versions[key][self._unreachable(self._versions[key]) :]
            ]
        )

    def _rows(self, keys: Iterable[Any]) -> Iterator[tuple[VersionKey, Version]]:
        return ((VersionKey(key, at), Version(value)) for key in keys for at, value in self._versions[key])

    def _insert(self, one: VersionKey, value: Any) -> None:
        insort(self._versions.setdefault(one.key, []), (one.valid_from, value), key=_TIME)

    def mark(self, key: Any, timestamp: int) -> Callable[[], None]:
        """Return what puts a key and the clock back as they are now, for `core.undo`; it is written at this time."""
        key, clock_ms = self._keys.like_known(key), self._clock_ms
        try:
            self._touch(key)
            versions = list(self._versions.get(key, ()))
        except TypeError:  # no key at all: it will be refused
            return lambda: None
        ones = [VersionKey(key, at) for at in {timestamp: None, **dict(versions)}]
        changed = {one: self._changed.get(one) for one in ones}

        def put_back() -> None:
            self._clock_ms = clock_ms
            self._versions[key] = versions
            if not versions:
                del self._versions[key]
            restore_flags(self._changed, changed)

        return put_back

    def _live_keys(self) -> Iterable[Any]:
        return self._versions

    def _version(self, one: VersionKey) -> Version | None:
        versions = self._versions.get(one.key, ())
        place = bisect_left(versions, one.valid_from, key=_TIME)
        is_there = place < len(versions) and versions[place][0] == one.valid_from
        return Version(versions[place][1]) if is_there else None

    @property
    def _oldest_ms(self) -> int:
        return self._clock_ms - self.builder.retention_ms

    def _unreachable(self, versions: list[tuple[int, Any]]) -> int:
        """Return how many versions, the oldest ones, ended before the history begins."""
        place = bisect_right(versions, self._oldest_ms, key=_TIME)
        if not place:
            return 0
        # The one that holds where the history begins can still be asked for, unless it says that there is nothing.
        return place if versions[place - 1][1] is None else place - 1

    def _forget(self, key: Any) -> None:
        versions = self._versions[key]
        gone = self._unreachable(versions)
        for valid_from, _ in versions[:gone]:
            self._note_removal(VersionKey(key, valid_from))
        del versions[:gone]
        if not versions:
            del self._versions[key]


def _by_key(one: VersionKey) -> tuple[bytes, int]:
    return encode_key(one.key), one.valid_from


def _stamped(version: tuple[int, Any]) -> Stamped | None:
    valid_from, value = version
    return None if value is None else Stamped(copied(value), valid_from)
