"""A buffer that is bound in memory: what does not fit goes to a local file, through a port that others implement (D15).

Rules of this file:

1. A new entry stays in memory while memory has room, else it goes to the file. None moves later.
2. The oldest entry is the older one of the two places' oldest; so the order is that of a buffer without a bound.
3. The keys that changed since the checkpoint are kept in memory; of the rest of the file's rows nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from rewindow.core.buffer import Buffered, TimeOrderedBuffer, Update
from rewindow.core.encoding import by_bytes, encode_key
from rewindow.core.json_codec import dump_value, load_value
from rewindow.core.record import UNKNOWN
from rewindow.core.stores import StoreBuilder


class Spill(Protocol):
    """A file of this machine that lives as long as a task: rows of text by key, found again by time and key bytes."""

    def get(self, key: bytes) -> str | None:
        """Return the row of a key, or None."""
        ...

    def put(self, key: bytes, time_ms: int, row: str) -> None:
        """Set the time and row of a key."""
        ...

    def delete(self, key: bytes) -> None:
        """Forget a key."""
        ...

    def first(self) -> tuple[int, bytes] | None:
        """Return time and key of the row that comes first by (time, key), or None."""
        ...

    def rows(self) -> Iterator[str]:
        """Iterate over all rows by key."""
        ...

    def clear(self) -> None:
        """Forget all."""
        ...

    def __len__(self) -> int:
        """The number of rows."""
        ...


OpenSpill = Callable[[str], Spill]
"""Opens the file of a store, by name."""


@dataclass(frozen=True, slots=True)
class Codec:
    """Between an entry of a store, with its key, and a row of text; and between a key alone and text."""

    dump: Callable[[Any, Any], str]
    load: Callable[[str], tuple[Any, Any]]
    dump_key: Callable[[Any], str] = dump_value
    load_key: Callable[[str], Any] = load_value


def _load_plain(text: str) -> tuple[Any, Buffered]:
    key, entry = load_value(text)
    return key, Buffered(*entry)


PLAIN = Codec(lambda key, entry: dump_value((key, tuple(entry))), _load_plain)
"""For keys and values that are plain data."""


class SpillingBuffer(TimeOrderedBuffer):
    """A time-ordered buffer whose memory is bound: the builder says by how many records, or bytes, or both."""

    def __init__(self, builder: StoreBuilder, spill: Spill) -> None:
        super().__init__(builder)
        self._spill = spill
        self._codec = builder.codec or PLAIN
        self._records_most, self._bytes_most = builder.memory_records, builder.memory_bytes
        self._in_memory = 0
        """The bytes of the entries in memory."""

    def put(self, key: Any, update: Update, buffer_time: int, *, begins_anew: bool = False) -> None:
        """See `TimeOrderedBuffer`. The file knows a key by its bytes, so it gets its form first."""
        super().put(self._keys.take(key), update, buffer_time, begins_anew=begins_anew)

    def pop_until(self, time_ms: int) -> Iterable[tuple[Any, Buffered]]:
        """See `TimeOrderedBuffer`."""
        is_any = False
        while (oldest := self._oldest()) is not None and oldest[0] <= time_ms:
            is_any = True
            yield self.pop_oldest()
        if is_any:
            self.sample()

    def pop_oldest(self) -> tuple[Any, Buffered]:
        """See `TimeOrderedBuffer`."""
        spilled, here = self._spill.first(), self._top()
        if spilled is None or (here is not None and here[:2] < spilled):
            return super().pop_oldest()
        key, _ = self._codec.load(self._spill.get(spilled[1]) or "")
        return key, self._remove(key)

    def _oldest(self) -> tuple[int, bytes] | None:
        here, spilled = self._top(), self._spill.first()
        tops = [top[:2] for top in (here, spilled) if top is not None]
        return min(tops, default=None)

    def _find(self, key: Any) -> Buffered | None:
        entry = self._entries.get(key)
        if entry is not None or not len(self._spill):
            return entry
        row = self._spill.get(encode_key(key))
        return None if row is None else self._codec.load(row)[1]

    def _set(self, key: Any, entry: Buffered, before: Buffered | None) -> None:
        is_here = self._has_room(entry) if before is None else key in self._entries
        if is_here:
            self._in_memory += entry.size - (0 if before is None else before.size)
            super()._set(key, entry, before)
        else:
            self._spill.put(encode_key(key), entry.buffer_time, self._codec.dump(key, entry))

    def _has_room(self, entry: Buffered) -> bool:
        fits = self._records_most is None or len(self._entries) < self._records_most
        return fits and (self._bytes_most is None or self._in_memory + entry.size <= self._bytes_most)

    def _remove(self, key: Any) -> Buffered:
        if key in self._entries:
            entry = super()._remove(key)
            self._in_memory -= entry.size
            return entry
        encoded = encode_key(key)
        spilled: Buffered = self._codec.load(self._spill.get(encoded) or "")[1]
        self._spill.delete(encoded)
        self._note_removal(key)
        self.size -= spilled.size
        return spilled

    def _live_keys(self) -> Iterable[Any]:
        yield from self._entries
        for row in self._spill.rows():
            yield self._codec.load(row)[0]

    def __len__(self) -> int:
        """The number of keys held back, in memory and in the file."""
        return len(self._entries) + len(self._spill)

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`."""
        super().restore((), clock_ms)
        self._spill.clear()
        self._in_memory = 0
        for key, entry in rows:
            before = self._find(key)
            if before is not None:
                self._remove(key)
            if entry is not None:
                self.size += entry.size
                self._set(self._keys.take(key), entry, None)
        self._changed = {}

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`. They are read one by one."""
        changed, self._changed = self._changed, {}
        return _Changes(by_bytes(changed), self._find)

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        spilled = (self._codec.load(row) for row in self._spill.rows())
        return iter(sorted([*self._entries.items(), *spilled], key=_by_key))


class _Changes(Collection[tuple[Any, Any]]):
    """What changed, found again when it is asked for: it may be more than memory has room for."""

    def __init__(self, keys: list[Any], find: Callable[[Any], Buffered | None]) -> None:
        self._keys, self._find = keys, find

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return ((key, self._find(key)) for key in self._keys)

    def __contains__(self, item: object) -> bool:
        return any(change == item for change in self)


def _by_key(item: tuple[Any, Buffered]) -> bytes:
    return encode_key(item[0])
