"""Moves rows between a store's memory and its spill, for stores of every kind.

Rules of this file:

1. The rows of one key are a group. A whole group is loaded into memory when its key is used. From then on, the rows in memory
   are the current rows, and rows of the group that are still on the spill are ignored.
2. When memory is full, the rows that the spill lacks are written to the spill, in the order of their bytes, and memory is
   emptied. Rows that changed since the last checkpoint are marked with a number (`SpilledRow`).
3. In a store with one row per key, loading a row leaves its copy on the spill. So a row that is only read need not be written
   again. In other stores, loading removes the rows from the spill. Otherwise an outdated copy could be found by its due time.
4. Expired rows are ignored. They are deleted when their expiry can no longer be rolled back.
5. However small the memory is, the rows of one key are always loaded together.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Protocol
from weakref import WeakSet

from rewindow.errors import DataError
from rewindow.streams.record import MAX_MS, UNKNOWN
from rewindow.streams.serde.key_bytes import by_bytes
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.spill import (
    ALL,
    GONE,
    PAGE,
    Codec,
    SnapshotScan,
    Span,
    Spill,
    SpilledRow,
    SpillFile,
    pages,
    pages_due,
)
from rewindow.streams.state.stores import StoreBuilder, codec_of

SAMPLE = 32
"""The number of rows in a sample, from which the memory per row is estimated."""
_RESAMPLE = 8192
"""A sample is taken at least once in this many rows, because the values of rows may grow. A sample takes about 0.1 ms."""
_TEXT_BYTES = 3
"""Approximate bytes of memory per character of a row's text."""
_NEVER = MAX_MS + 1
_NUMBER = struct.Struct(">q")
_END: SpilledRow = (_NUMBER.pack(MAX_MS), "", 0, None)
"""A row that sorts after all real rows."""


class Rows(Protocol):
    """The rows of a store in memory. A row key consists of a key of the store and of numbers that order the rows of this key."""

    is_single: bool
    """Whether each key has only one row."""
    row_bytes: int
    """Approximate bytes of memory per row for objects and index entries, in addition to the row's text."""
    encode: Callable[[Any], bytes]
    """A function that returns the bytes of a key. Keys are ordered by these bytes."""

    def position(self, row_key: Any) -> tuple[Any, tuple[int, ...]]:
        """Return ``(key, numbers)`` of a row key."""
        ...

    def due_at(self, row_key: Any, value: Any) -> int | None:
        """Return the due time (ms) of a row; None if it has none. Rows are found by due time, or expire at their due time."""
        ...

    def keys(self) -> dict[Any, Any]:
        """Return a dictionary of the keys that have rows in memory."""
        ...

    def rows_of(self, keys: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Iterate over ``(row key, value)`` of these keys. The rows of one key are ordered by their numbers."""
        ...

    def admit(self, row_key: Any, value: Any) -> None:
        """Add a row that was loaded from the spill."""
        ...

    def clear(self) -> None:
        """Remove all rows."""
        ...

    def count(self) -> int:
        """Return the number of rows."""
        ...


class Resident(Protocol):
    """Rows in memory that can be moved to a spill."""

    def count_resident(self) -> int:
        """Return how many rows are in memory."""
        ...

    def capacity(self) -> int:
        """Return approximately how many rows of the present size fit in memory."""
        ...

    def flush(self) -> None:
        """Move all rows to the spill."""
        ...


class MemoryBudget:
    """Moves rows to the spill (flushes) when memory is full, except while an attempt may still be rolled back."""

    def __init__(self, resident: Resident) -> None:
        self._resident = resident
        self.left = 1
        """This many rows may still come into memory before the next check."""
        self._sample_at = 1
        """When this many rows are in memory, the next sample is taken. Sampling is much slower than counting."""
        self._until_sample = self._stride = 0
        """Two numbers of rows: after the first, a sample is taken in any case; the second is the number between two checks."""
        self.is_held = False

    def spend(self, rows: int = 1) -> None:
        """Count rows that come into memory, and flush if memory is full."""
        self.left -= rows
        if self.left <= 0:
            self.check()

    def charge(self, rows: int) -> None:
        """Count rows that come into memory, without a flush. The next `spend` may flush."""
        self.left -= rows

    def hold(self, *, is_held: bool) -> None:
        """Set whether all rows must stay in memory, because an attempt may be rolled back."""
        self.is_held = is_held
        self.spend(0)

    def check(self) -> None:
        """Flush if memory is full. Call this method when ``left`` is 0 or less."""
        # Rolling back an attempt changes rows in memory. So these rows must not be flushed before.
        if self.is_held:
            return
        count = self._resident.count_resident()
        self._until_sample -= self._stride - self.left
        if count >= self._sample_at or self._until_sample <= 0:
            capacity = self._resident.capacity()
            if count >= capacity:
                self._resident.flush()
                count = 0
            self._sample_at = min(capacity, 2 * max(SAMPLE, count))
            self._until_sample = _RESAMPLE
        self.left = self._stride = max(1, min(self._sample_at - count, self._until_sample))


def capacity_for(memory_bytes: int, row_bytes: int, codec: Codec, sample: Iterable[tuple[Any, Any]]) -> int:
    """Return approximately how many rows like the rows of ``sample`` fit in memory. For ``row_bytes`` see `Rows`."""
    texts = [len(codec.dump(key, value)) for key, value in sample if value is not None]
    return max(1, memory_bytes // (row_bytes + _TEXT_BYTES * sum(texts) // max(1, len(texts))))


class SpillingMap:
    """Moves the rows of a store between memory and a spill."""

    def __init__(
        self,
        builder: StoreBuilder,
        file: SpillFile,
        rows: Rows,
        key_type: KeyType,
        changed: dict[Any, bool],
        *,
        expired_until: Callable[[], int] = lambda: UNKNOWN,
        prefix: bytes = b"",
        budget: MemoryBudget | None = None,
    ) -> None:
        """``rows`` and ``changed`` belong to the store. ``expired_until`` returns the latest due time whose rows have expired.

        Several maps may share a file and a ``budget``. Each then has a ``prefix`` of its own; all prefixes are equally long.
        """
        self._builder, self._file, self._rows, self._is_single = builder, file, rows, rows.is_single
        self._key_type, self._changed, self._codec = key_type, changed, codec_of(builder)
        self._expired_until = expired_until
        self._prefix = prefix + b"\x01" if prefix else b""
        self._span = (prefix + b"\x00", prefix + b"\x02") if prefix else ALL
        self.budget = budget or MemoryBudget(self)
        self.spill: Spill | None = None
        """The spill; None until memory is full for the first time."""
        self.resident: dict[Any, None] = {}
        """The keys that have been loaded. All rows of these keys are in memory; a key may also have no rows."""
        self.is_restoring = False
        """Whether a restore is running. If so, rows in memory may be missing on the spill although they have not changed."""
        self._count = 0
        """The number of rows that are only on the spill and not deleted. Expired rows are counted, too."""
        self.first_due = _NEVER
        """A lower bound of the due times of the rows on the spill."""
        self._partial: list[Any] = []
        """Loaded keys whose expired rows stayed on the spill, because their expiry may be rolled back."""
        self._scans: WeakSet[SnapshotScan] = WeakSet()

    def fetch(self, key: Any) -> None:
        """Load the rows of a key into memory, if they are not there. This may first flush other rows."""
        self.budget.spend()
        if self.spill is not None and key not in self.resident:
            self.load(key)

    def load(self, key: Any) -> None:
        """Load the rows of a key from the spill, without a flush. The rows must not be in memory."""
        own = self._key_type.as_stored(key)
        try:
            start = self._group_bytes(own)
        except DataError:
            # A key that cannot be encoded as bytes was never put, so it has no rows.
            return
        # From here on, the rows in memory are the current rows of the key, even if there are none.
        self.resident[own] = None
        spill = self._open()
        if self._is_single:
            self._take_copy(own, spill.get(start))
            return
        rows, expired_ms = list(pages(spill, (start[:-1], start[:-1] + b"\x01"))), self._expired_until()
        # A rollback may undo the expiry. So expired rows stay on the spill, and afterwards `hold` marks the key as not loaded.
        moved = [row for row in rows if row[3] is None or row[3] > expired_ms]
        if len(moved) < len(rows) and self.budget.is_held:
            self._partial.append(own)
        for _, text, number, _ in moved:
            row_key, value = (self._codec.load_key(text), None) if number & GONE else self._codec.load(text)
            if not number & GONE:
                self._rows.admit(row_key, value)
                self._count -= 1
            is_new = self._file.is_new(number)
            if is_new is not None:
                self._changed[row_key] = is_new
        self.budget.charge(max(1, len(moved)))
        # Otherwise outdated copies on the spill could be found by their due time.
        spill.delete(row[0] for row in moved)

    def _take_copy(self, key: Any, copy: tuple[str, int] | None) -> None:
        """Put the only row of a key, given as text and number, into memory. The copy on the spill stays there."""
        self.budget.left -= 1
        if copy is not None:
            text, number = copy
            is_new = self._file.is_new(number)
            if is_new is not None:
                self._changed[key] = is_new
            if not number & GONE:
                self._rows.admit(key, self._codec.load(text)[1])
                self._count -= 1

    def hold(self, *, is_held: bool) -> None:
        """See `Store`."""
        if not is_held:
            for key in self._partial:
                self.resident.pop(key, None)
            self._partial.clear()
        self.budget.hold(is_held=is_held)

    def count(self) -> int:
        """Return the number of rows that are only on the spill, without expired rows."""
        expired_ms = self._expired_until()
        if self.spill is None or expired_ms < self.first_due:
            return self._count
        if self.budget.is_held:
            return self._count - self.spill.count_due(expired_ms)
        self._delete_expired(self.spill)
        return self._count

    def keys(self) -> Iterator[Any]:
        """Iterate over the keys of the rows on the spill. A key with several rows comes several times."""
        return (self._rows.position(self._codec.load_key(row[1]))[0] for row in self.live_rows())

    def merged(self, resident: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Merge the rows in memory with the rows on the spill. ``resident`` must be ordered by key bytes and number."""
        if self.spill is None:
            return resident
        return merge(map(self.decode, self.live_rows()), resident, key=self._order)

    def scan(self, rows: Callable[[], Iterator[tuple[Any, Any]]]) -> Iterator[tuple[Any, Any]]:
        """Iterate over all rows by key bytes, unaffected by later writes. ``rows`` returns the rows in memory."""
        # If all rows are on the spill, the scan needs no merge.
        if not self.budget.is_held:
            self.flush()
        if self.spill is None:
            return rows()
        scan = SnapshotScan(self.spill, self._codec, self._span)
        self._scans.add(scan)
        if not self.resident:
            return iter(scan)
        hidden = self.resident.copy()
        return merge(rows(), (row for row in scan if row[0] not in hidden), key=self._order)

    def spilled(self, own: Collection[Any], span: Span | None = None) -> Iterator[tuple[Any, Any]]:
        """Iterate over the rows on the spill by key bytes. Rows of deleted keys, and row keys in ``own``, are left out.

        Do not write to the store before the last row is read.
        """
        resident = self._rows.keys()
        for row_key, value in map(self.decode, self.live_rows(span)):
            is_deleted = row_key in self.resident and row_key not in resident
            if row_key not in own and not is_deleted:
                yield row_key, value

    def decode(self, row: SpilledRow) -> tuple[Any, Any]:
        """Return the row key and value of a spilled row."""
        return self._codec.load(row[1])

    def live_rows(self, span: Span | None = None) -> Iterator[SpilledRow]:
        """Iterate over the rows on the spill by their bytes, without deleted and expired rows."""
        expired_ms = self._expired_until()
        rows: Iterable[SpilledRow] = () if self.spill is None else pages(self.spill, span or self._span)
        return (row for row in rows if not row[2] & GONE and (row[3] is None or row[3] > expired_ms))

    def between(self, from_ms: int, to_ms: int) -> Iterator[tuple[Any, Any]]:
        """Iterate over the rows on the spill with a due time in ``[from_ms, to_ms]``, by due time, without expired rows."""
        low = min(max(from_ms, self._expired_until() + 1, 0), MAX_MS)
        due = () if self.spill is None else pages_due(self.spill, min(to_ms, MAX_MS), (low, b""))
        return map(self.decode, due)

    def take_due(self, until_ms: int) -> Iterator[tuple[Any, Any]]:
        """Remove the rows on the spill that are due at or before a time; yield them by due time and key bytes."""
        spill = self._open()
        while page := spill.due(min(until_ms, MAX_MS), PAGE):
            yield from self.remove(page)
        self.first_row_due()

    def first_row_due(self) -> SpilledRow | None:
        """Return the row on the spill with the earliest due time, or None. Also updates ``first_due``."""
        rows_due = self._open().due(MAX_MS, 1)
        self.first_due = rows_due[0][3] or 0 if rows_due else _NEVER
        return rows_due[0] if rows_due else None

    def remove(self, page: Sequence[SpilledRow]) -> list[tuple[Any, Any]]:
        """Remove rows from the spill and return them decoded. A row that is in a checkpoint is replaced by a tombstone."""
        spill, rows = self._open(), [self.decode(row) for row in page]
        self._count -= len(page)
        spill.delete(stored_key for stored_key, _, number, _ in page if self._file.is_new(number))
        spill.write(
            (stored_key, self._codec.dump_key(row_key), self._file.number(is_new=False, is_gone=True), None)
            for (stored_key, _, number, _), (row_key, _) in zip(page, rows, strict=True)
            if not self._file.is_new(number)
        )
        return rows

    def remove_unreachable(self, oldest_ms: int) -> None:
        """Remove versions that ended at or before ``oldest_ms``, the start of the history, and tombstones that were valid then.

        Only for a `VersionedStore` whose rows are all on the spill.
        """
        gone: list[SpilledRow] = []
        held: SpilledRow | None = None
        """The last row that was read, if its version is valid from the start of the history or earlier."""
        for row in chain(self.live_rows(), [_END]):
            start, valid_from = row[0][: -_NUMBER.size], _NUMBER.unpack(row[0][-_NUMBER.size :])[0]
            if held is not None:
                has_ended = start == held[0][: -_NUMBER.size] and valid_from <= oldest_ms
                if has_ended or self.decode(held)[1].value is None:
                    gone.append(held)
            held = row if valid_from <= oldest_ms else None
            if len(gone) >= PAGE or row is _END:
                self.remove(gone)
                gone.clear()

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`."""
        self.flush()
        return self._file.take_changes(self._codec)

    def restore(self, rows: Iterable[tuple[Any, Any]]) -> Iterable[tuple[Any, Any]]:
        """Restore rows of a checkpoint. Return all of them if they fit in memory; otherwise write them to the spill."""
        taken: dict[Any, Any] = {}
        check_at = 1
        for row_key, value in rows:
            taken[row_key] = value
            if len(taken) >= check_at:
                capacity = self._capacity(islice(taken.items(), SAMPLE))
                check_at = min(capacity, 2 * max(SAMPLE, len(taken)))
                if len(taken) >= capacity:
                    self._write_restored(taken)
                    taken = {}
        if self.spill is None:
            return taken.items()
        self._write_restored(taken)
        self.end_restore()
        return ()

    def end_restore(self) -> None:
        """End a restore: move the remaining rows to the spill, if there is one, and count its rows."""
        if self.spill is not None:
            self.flush()
            self._count = self.spill.count(self._span)
        self.is_restoring = False

    def drop(self, key: Any) -> None:
        """Delete a key's row from the spill: the checkpoint has a later tombstone. Only for stores of one row per key."""
        if self.spill is not None:
            self.spill.delete([self._group_bytes(key)])

    def _write_restored(self, taken: dict[Any, Any]) -> None:
        spill, expired_ms = self._open(), self._expired_until()
        spill.delete(sorted(self._bytes_of(row_key) for row_key, value in taken.items() if value is None))
        rows = []
        for row_key, value in taken.items():
            if value is not None:
                # `normalize` is called because it records the type of the store's keys.
                self._key_type.normalize(self._rows.position(row_key)[0])
                rows.append(self._spilled_row(row_key, value, None))
        spill.write(sorted((row for row in rows if row[3] is None or row[3] > expired_ms), key=itemgetter(0)))

    def count_resident(self) -> int:
        """See `Resident`. Keys that were looked up but have no row are counted, too, because they take memory."""
        return self._rows.count() + max(0, len(self.resident) - len(self._rows.keys()))

    def capacity(self) -> int:
        """See `Resident`. The sample consists of the newest rows."""
        return self._capacity(islice(self._rows.rows_of(islice(reversed(self._rows.keys()), SAMPLE)), SAMPLE))

    def _capacity(self, rows: Iterable[tuple[Any, Any]]) -> int:
        """Return approximately how many rows like the sample ``rows`` fit in memory. A buffer's builder may set lower limits."""
        builder, sample = self._builder, list(rows)
        capacity = capacity_for(self._file.memory_bytes, self._rows.row_bytes, self._codec, sample)
        if builder.memory_records is not None:
            capacity = min(capacity, builder.memory_records)
        if builder.memory_bytes is not None and sample:
            size = sum(entry.size for _, entry in sample if entry is not None)
            capacity = min(capacity, builder.memory_bytes * len(sample) // max(1, size))
        return max(1, capacity)

    def flush(self) -> None:
        """Write the rows that the spill lacks to the spill, and empty memory."""
        rows, changed = self._rows, self._changed
        keys = rows.keys()
        if not (keys or changed or self.resident):
            if self.spill is not None:
                self._delete_expired(self.spill)
            return
        has_copies = self._is_single and self.spill is not None and not self.is_restoring
        # A row that was only read has its copy on the spill, so it is not written again.
        lacking = [key for key in changed if key in keys] if has_copies else keys
        spill = self._open()
        # These writes must not affect running scans. So the scans continue in a copy.
        for scan in self._scans:
            scan.detach()
        # Deleted rows that no checkpoint has need no tombstones, so they are deleted from the spill.
        if has_copies:
            spill.delete(self._group_bytes(key) for key in self.resident if key not in keys and key not in changed)
        self._count += rows.count()
        spill.write(self._leaving(by_bytes(lacking, rows.encode)))
        # `_leaving` has removed the written rows from `changed`, so the remaining entries are deleted rows.
        gone = {self._bytes_of(row_key): self._codec.dump_key(row_key) for row_key in changed}
        number = self._file.number(is_new=False, is_gone=True)
        spill.write((stored_key, gone[stored_key], number, None) for stored_key in sorted(gone))
        changed.clear()
        self.resident.clear()
        rows.clear()
        self._delete_expired(spill)

    def delete_all(self) -> None:
        """Delete all rows on the spill; running scans continue in a copy."""
        if self.spill is not None:
            for scan in self._scans:
                scan.detach()
            self.spill.delete_span(self._span)

    def _open(self) -> Spill:
        if self.spill is None:
            self.spill = self._file.open()
        return self.spill

    def _leaving(self, keys: Iterable[Any]) -> Iterator[SpilledRow]:
        """Yield the rows of these keys as spilled rows, and remove them from `_changed`."""
        for row_key, value in self._rows.rows_of(keys):
            yield self._spilled_row(row_key, value, self._changed.pop(row_key, None))

    def _spilled_row(self, row_key: Any, value: Any, is_new: bool | None) -> SpilledRow:  # noqa: FBT001 - None: unchanged
        due_ms = self._rows.due_at(row_key, value)
        if due_ms is not None and due_ms < self.first_due:
            self.first_due = due_ms
        return self._bytes_of(row_key), self._codec.dump(row_key, value), self._file.number(is_new), due_ms

    def _group_bytes(self, key: Any) -> bytes:
        """Return the bytes with which all rows of this key, and no other rows, begin. They sort as the bytes of the keys do."""
        start = self._prefix + self._rows.encode(key)
        # Zero bytes are escaped, and two zero bytes mark the end. So no key's bytes begin with another key's bytes.
        return start if self._is_single else start.replace(b"\0", b"\0\xff") + b"\0\0"

    def _bytes_of(self, row_key: Any) -> bytes:
        if self._is_single:
            return self._prefix + self._rows.encode(row_key)
        key, numbers = self._rows.position(row_key)
        return self._group_bytes(key) + b"".join(map(_NUMBER.pack, numbers))

    def _order(self, row: tuple[Any, Any]) -> bytes:
        return self._bytes_of(row[0])

    def _delete_expired(self, spill: Spill) -> None:
        expired_ms = self._expired_until()
        if expired_ms >= self.first_due:
            self._count -= spill.count_due(expired_ms)
            spill.delete_due(expired_ms)
            self.first_row_due()
