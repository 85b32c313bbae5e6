"""The time-ordered buffer of KIP-328: keeps one update a key, gives the oldest back first.

Rules of this file:

1. The order is (buffer time, key bytes), total, so ties are never decided by chance.
2. An update of a buffered key replaces its value and timestamp and keeps its place and buffer time (D9).
3. An evicted key is forgotten; a later update starts a new entry.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from rewindow.core.encoding import by_bytes, encode_key
from rewindow.core.keys import KeyForm
from rewindow.core.record import UNKNOWN, maker
from rewindow.core.stores import Store, StoreBuilder, refused
from rewindow.errors import DataError


class Buffered(NamedTuple):
    """What is held back for a key: the newest value (None: a tombstone), its timestamp, and when it was first buffered."""

    value: Any
    timestamp: int
    buffer_time: int


make_buffered = maker(Buffered)


class TimeOrderedBuffer(Store):
    """A store whose entries leave by time."""

    def __init__(self, builder: StoreBuilder) -> None:
        super().__init__(builder)
        self._entries: dict[Any, Buffered] = {}
        self._keys, self._keep = KeyForm(builder, lambda: self._entries), builder.kept.value
        self._times: list[int] = []
        """The buffer times, as a heap."""
        self._due: dict[int, list[tuple[bytes, Any]]] = {}
        """Key bytes and key at each buffer time: thousands, where that is the end of a window."""

    def put(self, key: Any, value: Any, timestamp: int, buffer_time: int) -> None:
        """Hold an update back. ``buffer_time`` counts only if the key is not buffered yet.

        Raises `DataError` as `KeyValueStore.put` does.
        """
        entry = self._entries.get(key)
        if value is not None:
            try:
                value = self._keep(value)
            except DataError as error:
                raise refused(self.name, key, error) from error
        if entry is None:
            key = self._keys.take(key)
            self._hold(key, buffer_time)
        else:
            buffer_time = entry.buffer_time
        self._entries[key] = make_buffered((value, timestamp, buffer_time))
        if key not in self._changed:
            self._changed[key] = entry is None

    def pop_until(self, time_ms: int) -> Iterable[tuple[Any, Buffered]]:
        """Take out, oldest first, all entries with a buffer time up to and including ``time_ms``."""
        return self._pop_until(time_ms) if self._times and self._times[0] <= time_ms else ()

    def _pop_until(self, time_ms: int) -> Iterator[tuple[Any, Buffered]]:
        while self._times and self._times[0] <= time_ms:
            for _, key in sorted(self._due.pop(heapq.heappop(self._times)), key=itemgetter(0)):
                self._note_removal(key)
                yield key, self._entries.pop(key)

    def _hold(self, key: Any, buffer_time: int) -> None:
        due = self._due.get(buffer_time)
        if due is None:
            due = self._due[buffer_time] = []
            heapq.heappush(self._times, buffer_time)
        due.append((encode_key(key), key))

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
        self._times, self._due = [], {}
        for key, entry in self._entries.items():
            self._hold(key, entry.buffer_time)

    def take_changes(self) -> list[tuple[Any, Any]]:
        """See `Store`."""
        changed, self._changed = self._changed, {}
        return [(key, self._entries.get(key)) for key in by_bytes(changed)]

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        return ((key, self._entries[key]) for key in by_bytes(self._entries))
