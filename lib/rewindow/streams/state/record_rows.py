"""The rows of a record store that are in memory."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.key_bytes import encode_key

_TIME = itemgetter(0)


class RecordKey(NamedTuple):
    """A record's key, its timestamp, and its number among the records with the same key and timestamp."""

    key: Any
    timestamp: int
    number: int


class RecordRows:
    """See `GroupRows`: records by key and time, with an index by time."""

    def __init__(self) -> None:
        self.records: dict[Any, list[tuple[int, Any]]] = {}
        """``(timestamp, value)`` by key, ascending."""
        self.keys_at: dict[int, dict[Any, None]] = {}
        """The keys that have records at each timestamp."""
        self._times: list[int] = []
        """The timestamps, as a heap."""

    def insert(self, key: Any, timestamp: int, value: Any) -> int:
        """Add a record; return its number. Raises `DataError` for a key without bytes."""
        if not (key.__class__ is str and key.isascii()):
            encode_key(key)
        keys = self.keys_at.get(timestamp)
        if keys is None:
            keys = self.keys_at[timestamp] = {}
            heapq.heappush(self._times, timestamp)
        keys[key] = None
        records = self.records.setdefault(key, [])
        at = bisect_right(records, timestamp, key=_TIME)
        records.insert(at, (timestamp, value))
        return at - bisect_left(records, timestamp, key=_TIME)

    def between(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[int, Any]]:
        """Return the ``(timestamp, value)`` of a key's records in ``[from, to]``."""
        records = self.records.get(key)
        if records is None:
            return []
        return records[bisect_left(records, from_ms, key=_TIME) : bisect_right(records, to_ms, key=_TIME)]

    def cut(self, key: Any, timestamp: int) -> list[RecordKey]:
        """Remove the records of a key and time; return their row keys."""
        keys = self.keys_at.get(timestamp, {})
        if key not in keys:
            return []
        del keys[key]  # the time stays in the heap, without keys
        return [row_key for row_key, _ in self._cut_out(key, timestamp)]

    def pop_before(self, time_ms: int) -> list[tuple[RecordKey, Any]]:
        """Remove all records before a time; return them by time, but in no order of keys."""
        gone: list[tuple[RecordKey, Any]] = []
        while self._times and self._times[0] < time_ms:
            timestamp = heapq.heappop(self._times)
            for key in self.keys_at.pop(timestamp):
                gone += self._cut_out(key, timestamp)
        return gone

    def _cut_out(self, key: Any, timestamp: int) -> list[tuple[RecordKey, Any]]:
        records = self.records[key]
        first, last = bisect_left(records, timestamp, key=_TIME), bisect_right(records, timestamp, key=_TIME)
        gone = records[first:last]
        del records[first:last]
        if not records:
            del self.records[key]
        return [(RecordKey(key, timestamp, number), value) for number, (_, value) in enumerate(gone)]

    def position(self, row_key: RecordKey) -> tuple[Any, tuple[int, ...]]:
        """See `GroupRows`."""
        return row_key.key, row_key[1:]

    def due_at(self, row_key: RecordKey, value: Any) -> int:
        """See `GroupRows`."""
        del value
        return row_key.timestamp

    def admit(self, row_key: RecordKey, value: Any) -> None:
        """See `GroupRows`."""
        self.insert(row_key.key, row_key.timestamp, value)

    def get(self, row_key: RecordKey) -> Any:
        """See `GroupRows`."""
        records = self.between(row_key.key, row_key.timestamp, row_key.timestamp)
        return records[row_key.number][1] if row_key.number < len(records) else None

    def keys(self) -> Collection[Any]:
        """See `GroupRows`."""
        return self.records

    def rows_of(self, keys: Iterable[Any]) -> Iterator[tuple[RecordKey, Any]]:
        """See `GroupRows`."""
        for key in keys:
            last, number = UNKNOWN, 0
            for timestamp, value in self.records[key]:
                number = number + 1 if timestamp == last else 0
                last = timestamp
                yield RecordKey(key, timestamp, number), value

    def clear(self) -> None:
        """See `GroupRows`."""
        self.records, self._times, self.keys_at = {}, [], {}

    def __len__(self) -> int:
        return sum(map(len, self.records.values()))
