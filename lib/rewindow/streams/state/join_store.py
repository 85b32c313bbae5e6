"""Stores of records by key and time, duplicates kept: what a join keeps of each side, and what waits for its time.

Rules of this file:

1. Records of a key are in the order of their timestamps, equal ones in the order in which they came. The place among
   equal ones is part of the row's key, so a restart gives back the same order.
2. A `RecordStore` keeps a record until it is taken out.
3. A `JoinStore` keeps it while the store's clock, the highest timestamp put, is less than the retention past it. What
   has expired is gone at once and needs no tombstone: the clock tells. What is put after that is counted and lost.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import timedelta
from operator import itemgetter
from typing import Any, NamedTuple

from rewindow.errors import ConfigError, DataError
from rewindow.streams.duration import to_ms
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.serde.values import copied
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.stores import JOIN, Store, StoreBuilder, refused, restore_flags

_FIRST = itemgetter(0)


class RecordKey(NamedTuple):
    """Where a record is: its key, its time, and its place among those of the same key and time."""

    key: Any
    timestamp: int
    number: int


class Waiting(NamedTuple):
    """A record that is taken out, and the bytes of its key."""

    timestamp: int
    key_bytes: bytes
    key: Any
    value: Any


def join_store(name: str, *, retention: str | int | timedelta, key: Any = None, value: Any = None) -> StoreBuilder:
    """Declare the store of one side of a join, to be given to it ready-made.

    A record is forgotten once the newest one is ``retention`` past it (a duration; an int is milliseconds).
    Raises `ConfigError` for a negative retention.
    """
    retention_ms = to_ms(retention)
    if retention_ms < 0:
        message = f"join_store({name!r}, retention={retention!r}): the retention is 0 or more"
        raise ConfigError(message)
    return StoreBuilder(name, JOIN, key, value, retention_ms=retention_ms)


class RecordStore(Store):
    """Records by key and time, until they are taken out."""

    def __init__(self, builder: StoreBuilder) -> None:
        super().__init__(builder)
        self._records: dict[Any, list[tuple[int, Any]]] = {}
        """Of each key ``(timestamp, value)``, ascending."""
        self._keys, self._keep = KeyType(builder, self._live_keys), builder.kept.value
        self._shares = builder.kept.is_frozen
        self._times: list[int] = []
        """The timestamps, as a heap."""
        self._due: dict[int, dict[Any, None]] = {}
        """The keys that have records at each timestamp."""

    def put(self, key: Any, value: Any, timestamp: int) -> None:
        """Add a record. Raises `DataError` as `KeyValueStore.put` does, and for a null value."""
        if value is None:
            message = f"store {self.name!r} takes records with values, and that of {key!r} at {timestamp} is null"
            raise DataError(message)
        if key.__class__ is not self._keys.cls:
            key = self._keys.take(key)
        try:
            value = self._keep(value)
        except DataError as error:
            raise refused(self.name, key, error) from error
        self._touch(key)
        number = self._insert(key, timestamp, value)
        where = RecordKey(key, timestamp, number)
        self._changed[where] = self._changed.pop(where, True)  # anew: an equal key may have been of another class

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[int, Any]]:
        """Return ``(timestamp, value)`` of a key's records in ``[from, to]``, by time, then in the order they came."""
        self._touch(key)
        records = self._records.get(key)
        if records is None:
            return []
        found = records[bisect_left(records, from_ms, key=_FIRST) : bisect_right(records, to_ms, key=_FIRST)]
        return found if self._shares else [(timestamp, copied(value)) for timestamp, value in found]

    def remove(self, key: Any, timestamp: int) -> None:
        """Take out all records of a key and time."""
        self._touch(key)
        if key in self._due.get(timestamp, ()):
            del self._due[timestamp][key]  # its time stays in the heap, and leaves it without a key
            for number, _ in enumerate(self._cut_out(key, timestamp)):
                self._note_removal(RecordKey(key, timestamp, number))

    def pop_before(self, time_ms: int) -> Iterable[Waiting]:
        """Take out all records before a time; by time, key bytes, and the order in which they came."""
        gone = [
            Waiting(timestamp, key_bytes, key, value)
            for timestamp in self._times_before(time_ms)
            for key_bytes, key in sorted(((encode_key(key), key) for key in self._due.pop(timestamp)), key=_FIRST)
            for _, value in self._cut_out(key, timestamp)
        ]
        last, number = None, 0
        for timestamp, _, key, _ in gone:
            number = number + 1 if last == (timestamp, key) else 0
            last = (timestamp, key)
            self._note_removal(RecordKey(key, timestamp, number))
        return gone

    def mark(self, key: Any, timestamp: int) -> Callable[[], None]:
        """Return what puts a key's records of one time back as they are now, for `core.undo`."""
        key = self._keys.like_known(key)
        try:
            values = [value for _, value in self.fetch(key, timestamp, timestamp)]
        except TypeError:  # no key at all, or no time: it will be refused
            return lambda: None
        call_ids = [RecordKey(key, timestamp, number) for number in range(len(values) + 1)]
        changed = {where: self._changed.get(where) for where in call_ids}

        def put_back() -> None:
            if key in self._due.get(timestamp, ()):
                del self._due[timestamp][key]
                self._cut_out(key, timestamp)
            for value in values:
                self._insert(key, timestamp, value)
            restore_flags(self._changed, changed)

        return put_back

    def mark_before(self, time_ms: int) -> Callable[[], None]:
        """Return what puts all records before a time back as they are now."""
        call_ids = [(key, timestamp) for timestamp, keys in self._due.items() if timestamp < time_ms for key in keys]
        marks = [RecordStore.mark(self, *place) for place in call_ids]

        def put_back() -> None:
            for mark in marks:
                mark()

        return put_back

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`. Rows are ``(RecordKey, value)``."""
        del clock_ms
        found: dict[RecordKey, Any] = {}
        for (key, timestamp, number), value in rows:
            where = RecordKey(self._keys.take(key), timestamp, number)
            if value is None:
                found.pop(where, None)
            else:
                found[where] = value
        for where in sorted(found, key=lambda one: one[1:]):
            self._insert(where.key, where.timestamp, found[where] if self._shares else copied(found[where]))

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`."""
        changed, self._changed = self._changed, {}
        live = dict(self._rows(by_bytes(dict.fromkeys(where.key for where in changed))))
        ordered = sorted(changed, key=lambda where: (encode_key(where.key), *where[1:]))
        return [(where, live.get(where)) for where in ordered]

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`: ``(RecordKey, value)``."""
        return iter([(where, copied(value)) for where, value in self._rows(by_bytes(self._records))])

    def __len__(self) -> int:
        """The number of records."""
        return sum(map(len, self._records.values()))

    def _rows(self, keys: Iterable[Any]) -> Iterator[tuple[RecordKey, Any]]:
        for key in keys:
            last, number = UNKNOWN, 0
            for timestamp, value in self._records.get(key, ()):
                number = number + 1 if timestamp == last else 0
                last = timestamp
                yield RecordKey(key, timestamp, number), value

    def _insert(self, key: Any, timestamp: int, value: Any) -> int:
        """Add a record; return its place among those of its key and time."""
        if not (key.__class__ is str and key.isascii()):
            encode_key(key)  # a key without bytes is refused here and not at the checkpoint
        due = self._due.get(timestamp)
        if due is None:
            due = self._due[timestamp] = {}
            heapq.heappush(self._times, timestamp)
        due[key] = None
        records = self._records.setdefault(key, [])
        place = bisect_right(records, timestamp, key=_FIRST)
        records.insert(place, (timestamp, value))
        return place - bisect_left(records, timestamp, key=_FIRST)

    def _cut_out(self, key: Any, timestamp: int) -> list[tuple[int, Any]]:
        records = self._records[key]
        first, last = bisect_left(records, timestamp, key=_FIRST), bisect_right(records, timestamp, key=_FIRST)
        gone = records[first:last]
        del records[first:last]
        if not records:
            del self._records[key]
        return gone

    def _live_keys(self) -> Iterable[Any]:
        return self._records

    def _times_before(self, time_ms: int) -> Iterator[int]:
        while self._times and self._times[0] < time_ms:
            yield heapq.heappop(self._times)


class JoinStore(RecordStore):
    """The records of one side of a join, for as long as they are retained."""

    def __init__(self, builder: StoreBuilder) -> None:
        super().__init__(builder)
        self._clock_ms = UNKNOWN

    @property
    def clock_ms(self) -> int:
        """The highest timestamp put so far."""
        return self._clock_ms

    def put(self, key: Any, value: Any, timestamp: int) -> None:
        """Add a record, see `RecordStore`. One that has expired is not written, but counted."""
        if self._is_expired(max(timestamp, self._clock_ms), timestamp):
            self._clock_ms = max(timestamp, self._clock_ms)
            self._lose(key, value)
            return
        super().put(key, value, timestamp)
        if timestamp > self._clock_ms:
            self._clock_ms = timestamp
            self._forget_expired()

    def mark(self, key: Any, timestamp: int) -> Callable[[], None]:
        """Return what puts back the clock, and what expires by it, too."""
        clock_ms, put_record_back = self._clock_ms, super().mark(key, timestamp)
        put_rest_back = self.mark_before(timestamp - self.builder.retention_ms + 1)

        def put_back() -> None:
            self._clock_ms = clock_ms
            put_record_back()
            put_rest_back()

        return put_back

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`. Rows that have expired at ``clock_ms`` are not taken in."""
        self._clock_ms = clock_ms
        super().restore((row for row in rows if not self._is_expired(clock_ms, row[0].timestamp)), clock_ms)

    def _is_expired(self, clock_ms: int, timestamp: int) -> bool:
        return timestamp <= clock_ms - self.builder.retention_ms

    def _forget_expired(self) -> None:
        for timestamp in self._times_before(self._clock_ms - self.builder.retention_ms + 1):
            for key in self._due.pop(timestamp):
                for number, _ in enumerate(self._cut_out(key, timestamp)):
                    self._changed.pop(RecordKey(key, timestamp, number), None)
