"""Stores of records by key and time, including duplicates: for the sides of a join, and for records held until a time.

Rules of this file:

1. Records of a key are ordered by timestamp. Records with the same key and timestamp are ordered by arrival; their number in
   this order is part of the row key, so a restart restores the order.
2. A `RecordStore` keeps a record until the record is removed.
3. A `JoinStore` keeps a record while the store's clock is less than the record's timestamp plus the retention. The clock is the
   highest timestamp that was put. Expired records are deleted at once. They need no tombstones, because the restored clock
   shows that they have expired. A record that has already expired when it is put is dropped and counted.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from heapq import merge
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
from rewindow.streams.state.stores import JOIN, StoreBuilder, name_value, restore_flags

_TIME = itemgetter(0)


class RecordKey(NamedTuple):
    """A record's key, its timestamp, and its number among the records with the same key and timestamp."""

    key: Any
    timestamp: int
    number: int


class RecordRows(GroupRows):
    """Records by key and time, with an index by time: see `GroupRows`."""

    def __init__(self) -> None:
        self.records: dict[Any, list[tuple[int, Any]]] = {}
        """For each key, a list of ``(timestamp, value)``, ordered by timestamp, then arrival."""
        self.keys_at: dict[int, dict[Any, None]] = {}
        """For each timestamp, the keys that have records with this timestamp."""
        self._times: list[int] = []
        """The timestamps in ``keys_at``, as a heap."""

    def insert(self, key: Any, timestamp: int, value: Any) -> int:
        """Add a record and return its number (see `RecordKey`). Raises `DataError` as `encode_key` does."""
        if not (key.__class__ is str and key.isascii()):
            encode_key(key)
        keys = self.keys_at.get(timestamp)
        if keys is None:
            keys = self.keys_at[timestamp] = {}
            heapq.heappush(self._times, timestamp)
        keys[key] = None
        records = self.records.setdefault(key, [])
        position = bisect_right(records, timestamp, key=_TIME)
        records.insert(position, (timestamp, value))
        return position - bisect_left(records, timestamp, key=_TIME)

    def between(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[int, Any]]:
        """Return ``(timestamp, value)`` of a key's records whose timestamps are in ``[from_ms, to_ms]``."""
        records = self.records.get(key)
        if records is None:
            return []
        return records[bisect_left(records, from_ms, key=_TIME) : bisect_right(records, to_ms, key=_TIME)]

    def cut(self, key: Any, timestamp: int) -> list[RecordKey]:
        """Remove the records with this key and timestamp; return their row keys."""
        keys = self.keys_at.get(timestamp, {})
        if key not in keys:
            return []
        # The timestamp stays in the heap and in `keys_at`, even if it has no keys left.
        del keys[key]
        return [row_key for row_key, _ in self._cut_out(key, timestamp)]

    def pop_before(self, time_ms: int) -> list[tuple[RecordKey, Any]]:
        """Remove all records before a time and return them, ordered by time.

        Records of equal times are in no particular order.
        """
        gone: list[tuple[RecordKey, Any]] = []
        while self._times and self._times[0] < time_ms:
            timestamp = heapq.heappop(self._times)
            for key in self.keys_at.pop(timestamp):
                gone += self._cut_out(key, timestamp)
        return gone

    def _cut_out(self, key: Any, timestamp: int) -> list[tuple[RecordKey, Any]]:
        records = self.records[key]
        start, end = bisect_left(records, timestamp, key=_TIME), bisect_right(records, timestamp, key=_TIME)
        gone = records[start:end]
        del records[start:end]
        if not records:
            del self.records[key]
        return [(RecordKey(key, timestamp, number), value) for number, (_, value) in enumerate(gone)]

    def position(self, row_key: RecordKey) -> tuple[Any, tuple[int, ...]]:
        """See `Rows`."""
        return row_key.key, row_key[1:]

    def due_at(self, row_key: RecordKey, value: Any) -> int:
        """See `Rows`."""
        del value
        return row_key.timestamp

    def admit(self, row_key: RecordKey, value: Any) -> None:
        """See `Rows`."""
        self.insert(row_key.key, row_key.timestamp, value)

    def get(self, row_key: RecordKey) -> Any:
        """See `GroupRows`."""
        records = self.between(row_key.key, row_key.timestamp, row_key.timestamp)
        return records[row_key.number][1] if row_key.number < len(records) else None

    def keys(self) -> dict[Any, Any]:
        """See `Rows`."""
        return self.records

    def rows_of(self, keys: Iterable[Any]) -> Iterator[tuple[RecordKey, Any]]:
        """See `Rows`."""
        for key in keys:
            last, number = UNKNOWN, 0
            for timestamp, value in self.records[key]:
                number = number + 1 if timestamp == last else 0
                last = timestamp
                yield RecordKey(key, timestamp, number), value

    def clear(self) -> None:
        """See `Rows`."""
        self.records, self._times, self.keys_at = {}, [], {}

    def count(self) -> int:
        """See `Rows`."""
        return sum(map(len, self.records.values()))


class Waiting(NamedTuple):
    """A record that `RecordStore.pop_before` removed, with the bytes of its key."""

    timestamp: int
    key_bytes: bytes
    key: Any
    value: Any


def join_store(name: str, *, retention: str | timedelta, key: Any = None, value: Any = None) -> StoreBuilder:
    """Declare the store of one side of a join, to be passed to the join.

    A record expires when the newest record in the store is ``retention`` (a duration) or more later. Raises `ConfigError` for
    a negative retention.
    """
    retention_ms = to_ms(retention)
    if retention_ms < 0:
        raise ConfigError(
            "join-retention-negative",
            "join_store({store!r}, retention={retention}): the retention must be 0 or more",
            store=name,
            retention=repr(retention),
        )
    return StoreBuilder(name, JOIN, key, value, retention_ms=retention_ms)


class RecordStore(GroupedStore):
    """A store that keeps records by key and time until they are removed."""

    _rows: RecordRows

    def __init__(self, builder: StoreBuilder, disk: Disk | None = None) -> None:
        super().__init__(builder, RecordRows(), disk)
        self._shares = builder.normalizers.is_frozen

    def put(self, key: Any, value: Any, timestamp: int) -> None:
        """Add a record. Raises `DataError` as `KeyValueStore.put` does, and for a null value."""
        if value is None:
            raise DataError(
                "join-store-value-null",
                "store {store!r} takes records with values, but that of {key} at {timestamp} is null",
                store=self.name,
                key=repr(key),
                timestamp=timestamp,
            )
        if key.__class__ is not self._keys.exact_class:
            key = self._keys.normalize(key)
        try:
            value = self._normalize(value)
        except DataError as error:
            name_value(error, self.name, key)
            raise
        self._fetch(key)
        row_key = RecordKey(key, timestamp, self._rows.insert(key, timestamp, value))
        # The row key is replaced, too, because the dictionary may have an equal key of another class.
        self._changed[row_key] = self._changed.pop(row_key, True)

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[int, Any]]:
        """Return ``(timestamp, value)`` of a key's records in ``[from_ms, to_ms]``, ordered by time, then arrival."""
        self._fetch(key)
        records = self._rows.between(key, from_ms, to_ms)
        return records if self._shares else [(timestamp, copied(value)) for timestamp, value in records]

    def remove(self, key: Any, timestamp: int) -> None:
        """Remove all records with this key and timestamp."""
        self._fetch(key)
        for row_key in self._rows.cut(key, timestamp):
            note_removal(self._changed, row_key)

    def pop_before(self, time_ms: int) -> Iterable[Waiting]:
        """Remove all records before a time.

        Yield them by time, key bytes and arrival; spilled records are removed when yielded.
        """
        gone = self._rows.pop_before(time_ms)
        for row_key, _ in gone:
            note_removal(self._changed, row_key)
        popped = sorted(map(_waiting, gone), key=_BY_TIME) if gone else []
        if self._spilled is None or time_ms <= self._spilled.first_due:
            return popped
        return merge(popped, map(_waiting, self._spilled.take_due(time_ms - 1)), key=_BY_TIME)

    def savepoint(self, key: Any, timestamp: int) -> Callable[[], None]:
        """Return a function that restores the records with this key and timestamp (see `streams.error_policy`)."""
        key = self._keys.as_stored(key)
        try:
            values = [value for _, value in self.fetch(key, timestamp, timestamp)]
        except TypeError:
            # The key is unhashable or the timestamp is not a number, so the write will be refused.
            return lambda: None
        row_keys = [RecordKey(key, timestamp, number) for number in range(len(values) + 1)]
        changed = {row_key: self._changed.get(row_key) for row_key in row_keys}

        def roll_back() -> None:
            self._rows.cut(key, timestamp)
            for value in values:
                self._rows.insert(key, timestamp, value)
            restore_flags(self._changed, changed)

        return roll_back

    def savepoint_before(self, time_ms: int) -> Callable[[], None]:
        """Return a function that restores all records before a time."""
        # Spilled records are loaded first, because savepoints only restore rows in memory.
        if self._spilled is not None:
            for row_key, _ in list(self._spilled.between(UNKNOWN, time_ms - 1)):
                self._fetch(row_key.key)
        times = [
            (key, timestamp) for timestamp, keys in self._rows.keys_at.items() if timestamp < time_ms for key in keys
        ]
        roll_backs = [RecordStore.savepoint(self, *time) for time in times]

        def roll_back() -> None:
            for roll_back_one in roll_backs:
                roll_back_one()

        return roll_back

    def _load(self, rows: Iterable[tuple[Any, Any]], clock_ms: int) -> None:
        del clock_ms
        values: dict[RecordKey, Any] = {}
        for (key, timestamp, number), value in rows:
            row_key = RecordKey(self._keys.normalize(key), timestamp, number)
            if value is None:
                values.pop(row_key, None)
            else:
                values[row_key] = value
        # Records are added by timestamp, then number, so that they get the same numbers as before the restart.
        for row_key in sorted(values, key=itemgetter(1, 2)):
            self._rows.admit(row_key, values[row_key] if self._shares else copied(values[row_key]))


class JoinStore(RecordStore):
    """The records of one side of a join. They expire by the store's clock."""

    def __init__(self, builder: StoreBuilder, disk: Disk | None = None) -> None:
        super().__init__(builder, disk)
        self._clock_ms = UNKNOWN

    @property
    def clock_ms(self) -> int:
        """The highest timestamp that was put so far."""
        return self._clock_ms

    def put(self, key: Any, value: Any, timestamp: int) -> None:
        """Add a record, see `RecordStore`. A record that has already expired is dropped and counted."""
        if timestamp <= max(timestamp, self._clock_ms) - self.builder.retention_ms:
            self._clock_ms = max(timestamp, self._clock_ms)
            self._lose(key, value)
            return
        super().put(key, value, timestamp)
        if timestamp > self._clock_ms:
            self._clock_ms = timestamp
            # Expired records need no tombstones, because a restore knows the store's clock and skips them.
            for row_key, _ in self._rows.pop_before(self._expired_until() + 1):
                self._changed.pop(row_key, None)

    def savepoint(self, key: Any, timestamp: int) -> Callable[[], None]:
        """See `RecordStore`. The function also restores the clock, and the records that expire because the clock advances."""
        clock_ms, roll_back_record = self._clock_ms, super().savepoint(key, timestamp)
        roll_back_expired = self.savepoint_before(timestamp - self.builder.retention_ms + 1)

        def roll_back() -> None:
            self._clock_ms = clock_ms
            roll_back_record()
            roll_back_expired()

        return roll_back

    def _load(self, rows: Iterable[tuple[Any, Any]], clock_ms: int) -> None:
        self._clock_ms = clock_ms
        super()._load((row for row in rows if row[0].timestamp > self._expired_until()), clock_ms)

    def _expired_until(self) -> int:
        return self._clock_ms - self.builder.retention_ms


_BY_TIME = itemgetter(0, 1)
"""The sort key of a `Waiting`: its timestamp and key bytes."""


def _waiting(row: tuple[RecordKey, Any]) -> Waiting:
    (key, timestamp, _), value = row
    return Waiting(timestamp, encode_key(key), key, value)
