"""The time-ordered buffer of KIP-328: keeps one update a key, gives the oldest back first.

Rules of this file:

1. The order is (buffer time, key bytes), total, so ties are never decided by chance.
2. An update of a buffered key replaces its value and timestamp and keeps its place and buffer time, unless it is told
   to begin anew (D9).
3. An evicted key is forgotten; a later update starts a new entry.
4. What was downstream of a key before its first update here is its prior value; it stays until the entry leaves (D13).
5. An entry's size is Kafka's formula over the documented encoding (D24): 8 + key + 20 + topic's name + headers + new
   value + prior value + old value, where the old one counts only if it is not the prior one.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from rewindow.errors import DataError
from rewindow.streams.metrics import SUPPRESSION_BUFFER_COUNT, SUPPRESSION_BUFFER_SIZE, Measure, Metrics
from rewindow.streams.record import UNKNOWN, maker
from rewindow.streams.serde.key_bytes import by_bytes, encode_key, encoded_size
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.stores import Store, StoreBuilder, refused

ENTRY_BYTES = 8 + 20
"""What each entry costs besides its parts: its buffer time; its timestamp, offset and partition."""


class Buffered(NamedTuple):
    """What is held back for a key: the newest value (None: a tombstone), its timestamp, and when it was first buffered.

    ``prior`` is what was downstream before (None: nothing), ``size`` what it counts towards a bound in bytes.
    """

    value: Any
    timestamp: int
    buffer_time: int
    prior: Any = None
    size: int = 0


class Update(NamedTuple):
    """An update on its way into the buffer: the new value, the one that it replaces, and the record it came with.

    ``origin_bytes``: the length of the record's topic name and headers.
    """

    value: Any
    old: Any
    timestamp: int
    origin_bytes: int = 0


make_buffered, make_update = maker(Buffered), maker(Update)


class TimeOrderedBuffer(Store):
    """A store whose entries leave by time, or when it is full."""

    def __init__(self, builder: StoreBuilder) -> None:
        super().__init__(builder)
        self.is_new = True
        """Whether no task ever began with it: its metrics begin with a sample of nothing."""
        self.size = 0
        """What all entries count towards a bound in bytes."""
        self._entries: dict[Any, Buffered] = {}
        self._keys, self._keep = KeyType(builder, self._live_keys), builder.kept.value
        self._times: list[int] = []
        """The buffer times, as a heap."""
        self._due: dict[int, list[tuple[bytes, Any]]] = {}
        """Key bytes and key at each buffer time: thousands, where that is the end of a window.

        An entry that got another buffer time is left where it was, and passed over.
        """
        self._heaps: dict[int, bool] = {}
        """The buffer times whose lists are heaps: those from which single entries were taken."""
        self._counts, self._sizes = Measure(), Measure()

    def measured_by(self, metrics: Metrics) -> None:
        """Sample the entries and their bytes: after each put, after each round of eviction, and once at the beginning."""
        self._counts = metrics.measure("store", self.name, SUPPRESSION_BUFFER_COUNT)
        self._sizes = metrics.measure("store", self.name, SUPPRESSION_BUFFER_SIZE)

    def begin(self) -> None:
        """Sample that there is nothing, if no task ever began with it."""
        if self.is_new:
            self.is_new = False
            self.sample()

    def sample(self) -> None:
        """Take a sample of the entries and their bytes."""
        self._counts.record(len(self))
        self._sizes.record(self.size)

    def put(self, key: Any, update: Update, buffer_time: int, *, begins_anew: bool = False) -> None:
        """Hold an update back. ``buffer_time`` counts if the key is not buffered yet, or with ``begins_anew``.

        Raises `DataError` as `KeyValueStore.put` does.
        """
        self._touch(key)
        entry = self._entries.get(key)
        value, old, timestamp, origin_bytes = update
        try:
            if value is not None:
                value = self._keep(value)
            prior = (None if old is None else self._keep(old)) if entry is None else entry.prior
        except DataError as error:
            raise refused(self.name, key, error) from error
        if entry is None:
            key = self._keys.take(key)
        elif not begins_anew:
            buffer_time = entry.buffer_time
        size = ENTRY_BYTES + encoded_size(key) + origin_bytes
        size += 8 if value.__class__ is int else encoded_size(value)
        if prior is not None:
            size += encoded_size(prior)
        if entry is not None:
            self.size -= entry.size
            if old is not None and old != prior:
                size += 8 if old.__class__ is int else encoded_size(old)
        self.size += size
        self._set(key, make_buffered((value, timestamp, buffer_time, prior, size)), entry)
        if key not in self._changed:
            self._changed[key] = entry is None
        self.sample()

    def find(self, key: Any) -> Buffered | None:
        """Return what is held of a key, or None."""
        self._touch(key)
        return self._entries.get(key)

    def pop_until(self, time_ms: int) -> Iterable[tuple[Any, Buffered]]:
        """Take out, oldest first, all entries with a buffer time up to and including ``time_ms``."""
        return self._pop_until(time_ms) if self._times and self._times[0] <= time_ms else ()

    def pop_oldest(self) -> tuple[Any, Buffered]:
        """Take out the oldest entry; there is one. Whoever takes several out takes a sample after them."""
        time_ms, _, key = self._top() or (UNKNOWN, b"", None)
        heapq.heappop(self._due[time_ms])
        return key, self._remove(key)

    def _pop_until(self, time_ms: int) -> Iterator[tuple[Any, Buffered]]:
        is_any = False
        for item in self._take_until(time_ms):
            is_any = True
            yield item
        if is_any:
            self.sample()

    def _take_until(self, time_ms: int) -> Iterator[tuple[Any, Buffered]]:
        while self._times and self._times[0] <= time_ms:
            due_ms = heapq.heappop(self._times)
            self._heaps.pop(due_ms, None)
            for _, key in sorted(self._due.pop(due_ms), key=itemgetter(0)):
                entry = self._entries.get(key)
                if entry is not None and entry.buffer_time == due_ms:
                    yield key, self._remove(key)

    def _top(self) -> tuple[int, bytes, Any] | None:
        """Return buffer time, key bytes and key of the oldest entry in memory, forgetting what lies before it in vain."""
        while self._times:
            time_ms = self._times[0]
            due = self._due[time_ms]
            if time_ms not in self._heaps:
                heapq.heapify(due)
                self._heaps[time_ms] = True
            while due:
                encoded, key = due[0]
                entry = self._entries.get(key)
                if entry is not None and entry.buffer_time == time_ms:
                    return time_ms, encoded, key
                heapq.heappop(due)
            heapq.heappop(self._times)
            del self._due[time_ms], self._heaps[time_ms]
        return None

    def _set(self, key: Any, entry: Buffered, before: Buffered | None) -> None:
        self._entries[key] = entry
        if before is None or before.buffer_time != entry.buffer_time:
            self._hold(key, entry.buffer_time)

    def _remove(self, key: Any) -> Buffered:
        self._note_removal(key)
        entry = self._entries.pop(key)
        self.size -= entry.size
        return entry

    def _hold(self, key: Any, buffer_time: int) -> None:
        due = self._due.get(buffer_time)
        if due is None:
            due = self._due[buffer_time] = []
            heapq.heappush(self._times, buffer_time)
        if buffer_time in self._heaps:
            heapq.heappush(due, (encode_key(key), key))
        else:
            due.append((encode_key(key), key))

    def _rows(self, keys: Iterable[Any]) -> Iterator[tuple[Any, Buffered]]:
        return ((key, self._entries[key]) for key in keys)

    def _live_keys(self) -> Iterable[Any]:
        return self._entries

    def __len__(self) -> int:
        """The number of keys held back."""
        return len(self._entries)

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`."""
        del clock_ms
        for key, entry in rows:
            if entry is None:
                self._entries.pop(key, None)
            else:
                self._entries[self._keys.take(key)] = entry
        self._times, self._due, self._heaps = [], {}, {}
        self.size = sum(entry.size for entry in self._entries.values())
        for key, entry in self._entries.items():
            self._hold(key, entry.buffer_time)

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`."""
        changed, self._changed = self._changed, {}
        return [(key, self._entries.get(key)) for key in by_bytes(changed)]

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        return ((key, self._entries[key]) for key in by_bytes(self._entries))
