"""The time-ordered buffer of KIP-328: one update per key, evicted oldest first.

Rules of this file:

1. Entries are ordered by (buffer time, key bytes). No two entries are equal in this order, so it is deterministic.
2. An update of a buffered key replaces the entry's value and timestamp. The entry keeps its buffer time, and so its position,
   unless the update is put with ``begins_anew`` (D9).
3. An evicted entry is removed. A later update of the key starts a new entry.
4. The prior value of an entry is the value of the key that was last sent downstream before the entry started. It does not change
   until the entry is evicted (D13).
5. The size of an entry follows Kafka's formula, with the sizes of `key_bytes.encoded_size` (D24): 8 + key + 20 + topic name +
   headers + new value + prior value + old value. The old value counts only if it differs from the prior value.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Any, NamedTuple

from rewindow.errors import DataError
from rewindow.streams.metrics import SUPPRESSION_BUFFER_COUNT, SUPPRESSION_BUFFER_SIZE, Measure, Metrics
from rewindow.streams.record import UNKNOWN, maker
from rewindow.streams.serde.key_bytes import encode_key, encoded_size
from rewindow.streams.state.grouped_store import GroupedStore, GroupRows
from rewindow.streams.state.key_rows import note_removal
from rewindow.streams.state.spill import Disk
from rewindow.streams.state.stores import StoreBuilder, name_value


class Buffered(NamedTuple):
    """An entry of the buffer: the key's newest value (None: a tombstone), its timestamp, and the entry's buffer time.

    ``prior`` is the value that was last sent downstream (None if there is none). ``size`` is the entry's size in bytes, for a
    limit.
    """

    value: Any
    timestamp: int
    buffer_time: int
    prior: Any = None
    size: int = 0


make_buffered = maker(Buffered)


class BufferRows(GroupRows):
    """One entry per key, with an index by buffer time: see `GroupRows`."""

    def __init__(self) -> None:
        self.entries: dict[Any, Buffered] = {}
        self._times: list[int] = []
        """The buffer times in ``_keys_at``, as a heap."""
        self._keys_at: dict[int, list[tuple[bytes, Any]]] = {}
        """For each buffer time, ``(key bytes, key)`` of its entries. There are thousands if the time is the end of a window.

        An entry whose buffer time changed is still listed under its old buffer time, too. Readers skip it there.
        """
        self._heaps: dict[int, bool] = {}
        """The buffer times whose lists in ``_keys_at`` are heaps, because `oldest` has read them."""

    def set(self, key: Any, entry: Buffered, before: Buffered | None) -> None:
        """Insert an entry. ``before`` is the entry of the key that it replaces, or None."""
        self.entries[key] = entry
        if before is None or before.buffer_time != entry.buffer_time:
            self._list(key, entry.buffer_time)

    def has_until(self, time_ms: int) -> bool:
        """Return whether there may be entries with a buffer time at or before ``time_ms``."""
        return bool(self._times) and self._times[0] <= time_ms

    def keys_until(self, time_ms: int) -> Iterator[Any]:
        """Iterate over the keys with a buffer time at or before ``time_ms``, oldest first. The caller must remove each entry."""
        while self.has_until(time_ms):
            due_ms = heapq.heappop(self._times)
            self._heaps.pop(due_ms, None)
            # Many windows end at the same time. Sorting the keys of this time once is cheaper than a heap of all entries.
            for _, key in sorted(self._keys_at.pop(due_ms), key=itemgetter(0)):
                if self._is_listed(key, due_ms):
                    yield key

    def oldest(self) -> tuple[int, bytes, Any] | None:
        """Return ``(buffer time, key bytes, key)`` of the oldest entry, or None."""
        while self._times:
            time_ms = self._times[0]
            keys = self._keys_at[time_ms]
            if time_ms not in self._heaps:
                heapq.heapify(keys)
                self._heaps[time_ms] = True
            while keys:
                key_bytes, key = keys[0]
                if self._is_listed(key, time_ms):
                    return time_ms, key_bytes, key
                heapq.heappop(keys)
            heapq.heappop(self._times)
            del self._keys_at[time_ms], self._heaps[time_ms]
        return None

    def position(self, row_key: Any) -> tuple[Any, tuple[int, ...]]:
        """See `Rows`."""
        return row_key, ()

    def due_at(self, row_key: Any, value: Buffered) -> int:
        """See `Rows`."""
        del row_key
        return value.buffer_time

    def get(self, row_key: Any) -> Buffered | None:
        """See `GroupRows`."""
        return self.entries.get(row_key)

    def keys(self) -> dict[Any, Any]:
        """See `Rows`."""
        return self.entries

    def rows_of(self, keys: Iterable[Any]) -> Iterator[tuple[Any, Buffered]]:
        """See `Rows`."""
        for key in keys:
            yield key, self.entries[key]

    def admit(self, row_key: Any, value: Buffered) -> None:
        """See `Rows`."""
        self.set(row_key, value, None)

    def clear(self) -> None:
        """See `Rows`."""
        self.entries, self._times, self._keys_at, self._heaps = {}, [], {}, {}

    def count(self) -> int:
        """See `Rows`."""
        return len(self.entries)

    def _is_listed(self, key: Any, time_ms: int) -> bool:
        entry = self.entries.get(key)
        return entry is not None and entry.buffer_time == time_ms

    def _list(self, key: Any, buffer_time: int) -> None:
        keys = self._keys_at.get(buffer_time)
        if keys is None:
            keys = self._keys_at[buffer_time] = []
            heapq.heappush(self._times, buffer_time)
        if buffer_time in self._heaps:
            heapq.heappush(keys, (encode_key(key), key))
        else:
            keys.append((encode_key(key), key))


ENTRY_BYTES = 8 + 20
"""The fixed part of an entry's size: the bytes of its buffer time, timestamp, offset and partition."""


class Update(NamedTuple):
    """An update to put into the buffer: the new value, the value that it replaces, and the record's timestamp.

    ``origin_bytes``: the length of the record's topic name and headers in bytes.
    """

    value: Any
    old: Any
    timestamp: int
    origin_bytes: int = 0


make_update = maker(Update)


class TimeOrderedBuffer(GroupedStore):
    """A store whose entries are evicted when their time is reached, or when the buffer is full."""

    _rows: BufferRows

    def __init__(self, builder: StoreBuilder, disk: Disk | None = None) -> None:
        super().__init__(builder, BufferRows(), disk)
        self.is_new = True
        """Whether no task has ever used this buffer. Its metrics then begin with a sample of the empty buffer."""
        self.size = 0
        """The sum of the sizes of all entries in bytes."""
        self._sends_tombstones = builder.sends_tombstones
        self._tombstones = 0
        self._counts, self._sizes = Measure(), Measure()

    @property
    def results(self) -> int:
        """How many entries will be sent if no further updates arrive."""
        return len(self) if self._sends_tombstones else len(self) - self._tombstones

    def measured_by(self, metrics: Metrics) -> None:
        """Record the buffer's metrics in ``metrics``. `sample` records them after each put, after evictions and at the start."""
        self._counts = metrics.measure("store", self.name, SUPPRESSION_BUFFER_COUNT)
        self._sizes = metrics.measure("store", self.name, SUPPRESSION_BUFFER_SIZE)

    def begin(self) -> None:
        """Record a sample of the empty buffer, if no task has ever used this buffer."""
        if self.is_new:
            self.is_new = False
            self.sample()

    def sample(self) -> None:
        """Record a sample of the number of entries and of their size in bytes."""
        self._counts.record(len(self))
        self._sizes.record(self.size)

    def put(self, key: Any, update: Update, buffer_time: int, *, begins_anew: bool = False) -> None:
        """Buffer an update. ``buffer_time`` is used only if the key is not buffered yet, or if ``begins_anew`` is true.

        Raises `DataError` as `KeyValueStore.put` does.
        """
        self._fetch(key)
        entry = self._rows.entries.get(key)
        value, old, timestamp, origin_bytes = update
        try:
            if value is not None:
                value = self._normalize(value)
            # While the key is buffered nothing is sent downstream, so the prior value does not change (D13).
            prior = (None if old is None else self._normalize(old)) if entry is None else entry.prior
        except DataError as error:
            name_value(error, self.name, key)
            raise
        if entry is None:
            key = self._keys.normalize(key)
        elif not begins_anew:
            buffer_time = entry.buffer_time
        size = ENTRY_BYTES + encoded_size(key) + origin_bytes
        size += 8 if value.__class__ is int else encoded_size(value)
        if prior is not None:
            size += encoded_size(prior)
        self._tombstones += value is None
        if entry is not None:
            self.size -= entry.size
            self._tombstones -= entry.value is None
            # Kafka's entry also contains the old value, unless it equals the prior value (D24).
            if old is not None and old != prior:
                size += 8 if old.__class__ is int else encoded_size(old)
        self.size += size
        self._rows.set(key, make_buffered((value, timestamp, buffer_time, prior, size)), entry)
        # This is true for a key that is not in the checkpoint. The eviction of such a key leaves no tombstone.
        if key not in self._changed:
            self._changed[key] = entry is None
        self.sample()

    def find(self, key: Any) -> Buffered | None:
        """Return the entry of a key, or None."""
        self._fetch(key)
        return self._rows.entries.get(key)

    def pop_until(self, time_ms: int) -> Iterable[tuple[Any, Buffered]]:
        """Evict all entries with a buffer time at or before ``time_ms``. Return ``(key, entry)``, oldest first."""
        return self._pop_until(time_ms) if self._rows.has_until(time_ms) or self._is_spilled_until(time_ms) else ()

    def pop_oldest(self) -> tuple[Any, Buffered]:
        """Evict the oldest entry of a buffer that is not empty. Return ``(key, entry)``.

        The caller must call `sample` after the last eviction.
        """
        oldest = self._rows.oldest()
        # The spill is read only if it may have an older entry than memory has.
        if self._spilled is not None and (oldest is None or oldest[0] >= self._spilled.first_due):
            spilled = self._spilled.first_row_due()
            if spilled is not None:
                key = self._spilled.decode(spilled)[0]
                if oldest is None or (spilled[3], encode_key(key)) < oldest[:2]:
                    self._spilled.load(key)
                    oldest = self._rows.oldest()
        _, _, key = oldest or (UNKNOWN, b"", None)
        return key, self._remove(key)

    def _pop_until(self, time_ms: int) -> Iterator[tuple[Any, Buffered]]:
        evicted = self._take_resident(time_ms)
        if self._is_spilled_until(time_ms):
            evicted = merge(evicted, self._take_spilled(time_ms), key=_by_time)
        is_any = False
        for entry in evicted:
            is_any = True
            yield entry
        if is_any:
            self.sample()

    def _take_resident(self, time_ms: int) -> Iterator[tuple[Any, Buffered]]:
        for key in self._rows.keys_until(time_ms):
            yield key, self._remove(key)

    def _is_spilled_until(self, time_ms: int) -> bool:
        return self._spilled is not None and time_ms >= self._spilled.first_due

    def _take_spilled(self, time_ms: int) -> Iterator[tuple[Any, Buffered]]:
        if self._spilled is not None:
            for key, entry in self._spilled.take_due(time_ms):
                self._forget(entry)
                yield key, entry

    def _remove(self, key: Any) -> Buffered:
        note_removal(self._changed, key)
        entry = self._rows.entries.pop(key)
        self._forget(entry)
        return entry

    def _forget(self, entry: Buffered) -> None:
        self.size -= entry.size
        self._tombstones -= entry.value is None

    def _load(self, rows: Iterable[tuple[Any, Any]], clock_ms: int) -> None:
        del clock_ms
        entries = self._rows.entries
        for key, entry in rows:
            if entry is None:
                entries.pop(key, None)
            else:
                entries[self._keys.normalize(key)] = entry
        self._rows.clear()
        for key, entry in entries.items():
            self._rows.admit(key, entry)
        self.size, self._tombstones = _totals(entries.values())

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`."""
        super().restore(rows, clock_ms)
        if self._spilled is not None:
            size, tombstones = _totals(self._spilled.decode(row)[1] for row in self._spilled.live_rows())
            self.size += size
            self._tombstones += tombstones


def _totals(entries: Iterable[Buffered]) -> tuple[int, int]:
    """Return the sum of the entries' sizes in bytes, and the number of entries whose value is null."""
    size = tombstones = 0
    for entry in entries:
        size += entry.size
        tombstones += entry.value is None
    return size, tombstones


def _by_time(row: tuple[Any, Buffered]) -> tuple[int, bytes]:
    return row[1].buffer_time, encode_key(row[0])
