"""A store of the present and past values of each key, for the length of the store's history (KIP-889).

Rules of this file:

1. A version is valid from its timestamp until the next version of its key. A tombstone is a version, too: from its timestamp
   on, the key has no value.
2. The store's clock is the highest timestamp that was put. The history starts at ``clock - history``. A version with an earlier
   timestamp is refused and counted. A version with the timestamp of an existing version of its key replaces that version.
3. `get` returns the newest version. `get_as_of` returns the version that was valid at a given time. For a time before the
   history starts it returns None, unless the newest version was valid then.
4. A version that no `get_as_of` can return any more is deleted. Readers cannot notice when this happens.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import timedelta
from enum import Enum
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from rewindow.errors import ConfigError, DataError
from rewindow.streams.duration import to_ms
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.key_bytes import encode_key
from rewindow.streams.serde.normalizers import copied
from rewindow.streams.state.grouped_store import GroupedStore, GroupRows
from rewindow.streams.state.key_rows import note_removal
from rewindow.streams.state.spill import Disk
from rewindow.streams.state.stores import VERSIONED, Stamped, StoreBuilder, name_value, restore_flags

_TIME = itemgetter(0)


class VersionKey(NamedTuple):
    """A key, and the time (epoch ms) from which a version of the key is valid."""

    key: Any
    valid_from: int


class Version(NamedTuple):
    """The value of one version; None is a tombstone."""

    value: Any


class Put(Enum):
    """The outcome of a `VersionedStore.put`."""

    LATEST = "latest"
    """The version is the newest of its key."""
    PAST = "past"
    """The key has a newer version."""
    REFUSED = "refused"
    """The version is older than the start of the history."""


def versioned_store(name: str, *, history: str | timedelta, key: Any = None, value: Any = None) -> StoreBuilder:
    """Declare a store that keeps past versions for the duration ``history`` (``"30d"``). For tables and processors (KIP-889).

    Raises `ConfigError` for a negative history.
    """
    history_ms = to_ms(history)
    if history_ms < 0:
        raise ConfigError(
            "store-history-negative",
            "versioned_store({store!r}, history={history}): the history must be 0 or more",
            store=name,
            history=repr(history),
        )
    return StoreBuilder(name, VERSIONED, key, value, retention_ms=history_ms)


class VersionRows(GroupRows):
    """Versions by key, in memory: see `GroupRows`."""

    def __init__(self) -> None:
        self.versions: dict[Any, list[tuple[int, Any]]] = {}
        """For each key, a list of ``(valid from, value)``, ordered by time."""

    def position(self, row_key: VersionKey) -> tuple[Any, tuple[int, ...]]:
        """See `Rows`."""
        return row_key.key, row_key[1:]

    def due_at(self, row_key: VersionKey, value: Version) -> None:
        """See `Rows`."""

    def get(self, row_key: VersionKey) -> Version | None:
        """See `GroupRows`."""
        versions = self.versions.get(row_key.key, ())
        index = bisect_left(versions, row_key.valid_from, key=_TIME)
        is_found = index < len(versions) and versions[index][0] == row_key.valid_from
        return Version(versions[index][1]) if is_found else None

    def keys(self) -> dict[Any, Any]:
        """See `Rows`."""
        return self.versions

    def rows_of(self, keys: Iterable[Any]) -> Iterator[tuple[VersionKey, Version]]:
        """See `Rows`."""
        return (
            (VersionKey(key, valid_from), Version(value)) for key in keys for valid_from, value in self.versions[key]
        )

    def admit(self, row_key: VersionKey, value: Version) -> None:
        """See `Rows`."""
        insort(self.versions.setdefault(row_key.key, []), (row_key.valid_from, value.value), key=_TIME)

    def clear(self) -> None:
        """See `Rows`."""
        self.versions = {}

    def count(self) -> int:
        """See `Rows`."""
        return sum(map(len, self.versions.values()))


class VersionedStore(GroupedStore):
    """A store of the versions of each key."""

    expired_reason = "history-expired"
    _rows: VersionRows

    def __init__(self, builder: StoreBuilder, disk: Disk | None = None) -> None:
        super().__init__(builder, VersionRows(), disk)
        self._clock_ms = UNKNOWN

    @property
    def clock_ms(self) -> int:
        """The highest timestamp that was put so far."""
        return self._clock_ms

    @property
    def history_ms(self) -> int:
        """The length of the history in milliseconds."""
        return self.builder.retention_ms

    def put(self, key: Any, value: Any, timestamp: int) -> Put:
        """Set the value of a key that is valid from ``timestamp`` on; None is a tombstone.

        A version older than the start of the history is dropped and counted. Raises `DataError` as `KeyValueStore.put` does, and
        for a timestamp that is negative or not an integer.
        """
        if timestamp.__class__ is not int or timestamp < 0:
            raise DataError(
                "version-timestamp-invalid",
                "store {store!r}: a version must start at epoch milliseconds (0 or more), not {timestamp}",
                store=self.name,
                timestamp=repr(timestamp),
            )
        if timestamp < self._oldest_ms:
            self._lose(key, value)
            return Put.REFUSED
        key = self._keys.normalize(key)
        # A key that cannot be encoded must be refused here, not at the checkpoint.
        encode_key(key)
        if value is not None:
            try:
                value = self._normalize(value)
            except DataError as error:
                name_value(error, self.name, key)
                raise
        self._fetch(key)
        self._clock_ms = max(self._clock_ms, timestamp)
        versions = self._rows.versions.setdefault(key, [])
        index = bisect_left(versions, timestamp, key=_TIME)
        is_new = index == len(versions) or versions[index][0] != timestamp
        versions[index : index + (0 if is_new else 1)] = [(timestamp, value)]
        self._changed.setdefault(VersionKey(key, timestamp), is_new)
        is_latest = index == len(versions) - 1
        self._forget(key)
        return Put.LATEST if is_latest else Put.PAST

    def get(self, key: Any) -> Stamped | None:
        """Return the value and timestamp of the newest version; None if there is none or it is a tombstone."""
        self._fetch(key)
        versions = self._rows.versions.get(key)
        return _stamped(versions[-1]) if versions else None

    find = get

    def get_as_of(self, key: Any, timestamp: int) -> Stamped | None:
        """Return the value that was valid at ``timestamp``, with the time from which it was valid.

        Return None if there was no value, or if ``timestamp`` is before the history starts (see the rules of this file).
        """
        self._fetch(key)
        versions = self._rows.versions.get(key)
        if not versions:
            return None
        if versions[-1][0] <= timestamp:
            return _stamped(versions[-1])
        index = bisect_right(versions, timestamp, key=_TIME) if timestamp >= self._oldest_ms else 0
        return _stamped(versions[index - 1]) if index else None

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`. Versions that no read can return are deleted first, so that the checkpoint does not have them."""
        if self._spilled is not None and self._spilled.spill is not None:
            self._spilled.flush()
            self._spilled.remove_unreachable(self._oldest_ms)
        for key in tuple(self._rows.versions):
            self._forget(key)
        return super().take_changes()

    def rows(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`: ``(VersionKey, Version)`` by key bytes and time, without versions that no read can return."""
        groups = (list(group) for _, group in groupby(super().rows(), key=lambda row: row[0].key))
        return iter([row for rows in groups for row in rows[self._unreachable([_version(*row) for row in rows]) :]])

    def savepoint(self, key: Any, timestamp: int) -> Callable[[], None]:
        """Return a function that restores a key's versions and the clock (see `streams.error_policy`)."""
        key, clock_ms = self._keys.as_stored(key), self._clock_ms
        try:
            self._fetch(key)
            versions = list(self._rows.versions.get(key, ()))
        except TypeError:
            # The key is unhashable, so the write will be refused.
            return lambda: None
        row_keys = [VersionKey(key, valid_from) for valid_from in {timestamp: None, **dict(versions)}]
        changed = {row_key: self._changed.get(row_key) for row_key in row_keys}

        def roll_back() -> None:
            self._clock_ms = clock_ms
            self._rows.versions[key] = versions
            if not versions:
                del self._rows.versions[key]
            restore_flags(self._changed, changed)

        return roll_back

    def _load(self, rows: Iterable[tuple[Any, Any]], clock_ms: int) -> None:
        self._clock_ms = clock_ms
        versions_of: dict[Any, dict[int, Any]] = {}
        for (key, valid_from), version in rows:
            own = versions_of.setdefault(self._keys.normalize(key), {})
            if version is None:
                own.pop(valid_from, None)
            else:
                own[valid_from] = version.value
        self._rows.versions = {key: sorted(own.items(), key=_TIME) for key, own in versions_of.items() if own}

    @property
    def _oldest_ms(self) -> int:
        return self._clock_ms - self.builder.retention_ms

    def _unreachable(self, versions: list[tuple[int, Any]]) -> int:
        """Return how many of a key's versions, from the oldest on, no read can return. ``versions`` are ordered by time."""
        started = bisect_right(versions, self._oldest_ms, key=_TIME)
        if not started:
            return 0
        # The version that is valid when the history starts can still be read. If it is a tombstone, a read returns the same as
        # without it.
        return started if versions[started - 1][1] is None else started - 1

    def _forget(self, key: Any) -> None:
        versions = self._rows.versions[key]
        gone = self._unreachable(versions)
        for valid_from, _ in versions[:gone]:
            note_removal(self._changed, VersionKey(key, valid_from))
        del versions[:gone]
        if not versions:
            del self._rows.versions[key]


def _version(row_key: VersionKey, version: Version) -> tuple[int, Any]:
    return row_key.valid_from, version.value


def _stamped(version: tuple[int, Any]) -> Stamped | None:
    valid_from, value = version
    return None if value is None else Stamped(copied(value), valid_from)
