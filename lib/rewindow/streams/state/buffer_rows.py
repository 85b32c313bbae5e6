"""The rows of a suppress buffer that are in memory."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from rewindow.streams.record import maker
from rewindow.streams.serde.key_bytes import encode_key


class Buffered(NamedTuple):
    """A buffered update: the newest value (None: a tombstone), its timestamp, and the key's buffer time.

    ``prior`` is the value that downstream has (None: nothing), ``size`` what the entry counts towards a limit in bytes.
    """

    value: Any
    timestamp: int
    buffer_time: int
    prior: Any = None
    size: int = 0


make_buffered = maker(Buffered)


class BufferRows:
    """See `GroupRows`: one entry per key, with an index by buffer time."""

    def __init__(self) -> None:
        self.entries: dict[Any, Buffered] = {}
        self._times: list[int] = []
        """The buffer times, as a heap."""
        self._keys_at: dict[int, list[tuple[bytes, Any]]] = {}
        """Key bytes and key at each buffer time: thousands, where it is the end of a window.

        An entry that got another buffer time stays listed under its old one too, and is skipped there.
        """
        self._heaps: dict[int, bool] = {}
        """The buffer times whose lists are heaps, because single entries were removed from them."""

    def set(self, key: Any, entry: Buffered, before: Buffered | None) -> None:
        """Insert an entry, or replace the entry ``before``."""
        self.entries[key] = entry
        if before is None or before.buffer_time != entry.buffer_time:
            self._list(key, entry.buffer_time)

    def has_until(self, time_ms: int) -> bool:
        """Return whether there may be entries with a buffer time at or before this."""
        return bool(self._times) and self._times[0] <= time_ms

    def keys_until(self, time_ms: int) -> Iterator[Any]:
        """Iterate over the keys with a buffer time at or before ``time_ms``, oldest first. Remove each entry."""
        while self.has_until(time_ms):
            due_ms = heapq.heappop(self._times)
            self._heaps.pop(due_ms, None)
            for _, key in sorted(self._keys_at.pop(due_ms), key=itemgetter(0)):
                if self._is_listed(key, due_ms):
                    yield key

    def oldest(self) -> tuple[int, bytes, Any] | None:
        """Return buffer time, key bytes and key of the oldest entry."""
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
        """See `GroupRows`."""
        return row_key, ()

    def due_at(self, row_key: Any, value: Buffered) -> int:
        """See `GroupRows`."""
        del row_key
        return value.buffer_time

    def get(self, row_key: Any) -> Buffered | None:
        """See `GroupRows`."""
        return self.entries.get(row_key)

    def keys(self) -> Collection[Any]:
        """See `GroupRows`."""
        return self.entries

    def rows_of(self, keys: Iterable[Any]) -> Iterator[tuple[Any, Buffered]]:
        """See `GroupRows`."""
        for key in keys:
            yield key, self.entries[key]

    def admit(self, row_key: Any, value: Buffered) -> None:
        """See `GroupRows`."""
        self.set(row_key, value, None)

    def clear(self) -> None:
        """See `GroupRows`."""
        self.entries, self._times, self._keys_at, self._heaps = {}, [], {}, {}

    def __len__(self) -> int:
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
