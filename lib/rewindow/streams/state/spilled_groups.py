"""The rows of a store over `GroupRows` that do not fit in memory.

Rules of this file:

1. A row is in memory or on the spill, never in both. All rows of a key come into memory together, when the key is used.
2. When memory is full, all rows are written to the spill by key bytes, and memory becomes empty. Rows that changed
   since the checkpoint are marked there by the checkpoint's number.
3. Rows have a due time on the spill, by which they are looked up or expire. Expired rows are invisible. They are deleted
   when their expiry can no longer be rolled back.
4. Memory holds the rows of one key at least.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from rewindow.errors import DataError
from rewindow.streams.record import MAX_MS
from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.state.group_rows import GroupRows
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.memory_budget import SAMPLE, MemoryBudget, capacity_for
from rewindow.streams.state.spill import ALL, GONE, PAGE, Disk, Spill, SpilledRow
from rewindow.streams.state.spill_file import SpillFile, pages, pages_due
from rewindow.streams.state.stores import StoreBuilder, codec_of

_ROW_BYTES = 900
"""Approximate memory per row besides its text: tuples and index entries."""
_NEVER = MAX_MS + 1
_NUMBER = struct.Struct(">q")
_END: SpilledRow = (_NUMBER.pack(MAX_MS), "", 0, None)
"""Comes after the last row."""


class SpilledGroups:
    """Moves rows between memory and a spill."""

    def __init__(
        self,
        builder: StoreBuilder,
        disk: Disk,
        rows: GroupRows,
        key_type: KeyType,
        changed: dict[Any, bool],
        expired_until: Callable[[], int],
    ) -> None:
        """``rows`` and ``changed`` are the store's, in memory; ``expired_until``: the due time up to which rows have expired."""
        self._builder, self._rows, self._key_type, self._changed = builder, rows, key_type, changed
        self._codec, self._file = codec_of(builder), SpillFile(builder.name, disk)
        self._budget = MemoryBudget(self)
        self._expired_until = expired_until
        self._resident: dict[Any, None] = {}
        """The keys all of whose rows are in memory, if they have any."""
        self._count = 0
        """The number of rows on the spill that are not deleted, including expired ones."""
        self.first_due = _NEVER
        """No row on the spill is due before this time."""
        self._partial: list[Any] = []
        """Keys whose expired rows stayed on the spill, because their expiry may be rolled back."""

    @property
    def is_open(self) -> bool:
        """Whether memory was ever full."""
        return self._file.spill is not None

    def fetch(self, key: Any) -> None:
        """Bring the rows of a key into memory."""
        self._budget.spend()
        if self._file.spill is not None and key not in self._resident:
            self.load(key)

    def load(self, key: Any) -> None:
        """Bring the rows of a key into memory, however full it is."""
        self._resident[key] = None
        try:
            start = _group_bytes(self._key_type.as_stored(key))[:-1]
        except DataError:
            return  # a key without bytes was never put
        spill, expired_ms = self._file.open(), self._expired_until()
        rows = list(pages(spill, (start, start + b"\x01")))
        moved = [row for row in rows if row[3] is None or row[3] > expired_ms]
        if len(moved) < len(rows) and self._budget.is_held:
            self._partial.append(key)
        for _, text, number, _ in moved:
            row_key, value = (self._codec.load_key(text), None) if number & GONE else self._codec.load(text)
            if not number & GONE:
                self._rows.admit(row_key, value)
                self._count -= 1
            is_new = self._file.is_new(number)
            if is_new is not None:
                self._changed[row_key] = is_new
        self._budget.charge(len(moved))
        spill.delete(row[0] for row in moved)

    def hold(self, *, is_held: bool) -> None:
        """See `Store`."""
        if not is_held:
            for key in self._partial:
                self._resident.pop(key, None)
            self._partial.clear()
        self._budget.hold(is_held=is_held)

    def count(self) -> int:
        """Return the number of rows on the spill."""
        spill = self._file.spill
        if spill is None:
            return 0
        if self._budget.is_held:
            return self._count - spill.count_due(self._expired_until())
        self._delete_expired(spill)
        return self._count

    def keys(self) -> Iterator[Any]:
        """Iterate over the keys on the spill, once for each row."""
        return (self._rows.position(self._codec.load_key(row[1]))[0] for row in self.live_rows())

    def merged(self, resident: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Return the rows in memory, which come by key bytes and number, with those on the spill in between."""
        if not self.is_open:
            return resident
        return merge(map(self.decode, self.live_rows()), resident, key=lambda row: self._bytes_of(row[0]))

    def decode(self, row: SpilledRow) -> tuple[Any, Any]:
        """Return the row key and value of a spilled row."""
        return self._codec.load(row[1])

    def live_rows(self) -> Iterator[SpilledRow]:
        """Iterate over the rows on the spill by their bytes."""
        expired_ms = self._expired_until()
        rows: Iterable[SpilledRow] = () if self._file.spill is None else pages(self._file.spill)
        return (row for row in rows if not row[2] & GONE and (row[3] is None or row[3] > expired_ms))

    def between(self, from_ms: int, to_ms: int) -> Iterator[tuple[Any, Any]]:
        """Iterate over the rows on the spill that are due in ``[from, to]``, by due time."""
        low = min(max(from_ms, self._expired_until() + 1, 0), MAX_MS)
        due = () if self._file.spill is None else pages_due(self._file.spill, min(to_ms, MAX_MS), (low, b""))
        return map(self.decode, due)

    def take_due(self, until_ms: int) -> Iterator[tuple[Any, Any]]:
        """Remove the rows on the spill that are due at or before a time; yield them by due time and key bytes."""
        spill = self._file.open()
        while page := spill.due(min(until_ms, MAX_MS), PAGE):
            yield from self.remove(page)
        self.first_row_due()

    def first_row_due(self) -> SpilledRow | None:
        """Return the row on the spill that is due first."""
        first = self._file.open().due(MAX_MS, 1)
        self.first_due = first[0][3] or 0 if first else _NEVER
        return first[0] if first else None

    def remove(self, page: Sequence[SpilledRow]) -> list[tuple[Any, Any]]:
        """Remove rows from the spill and return them. Rows that no checkpoint has leave no tombstones."""
        spill, rows = self._file.open(), [self.decode(row) for row in page]
        self._count -= len(page)
        spill.delete(at for at, _, number, _ in page if self._file.is_new(number))
        spill.write(
            (at, self._codec.dump_key(row_key), self._file.number(is_new=False, is_gone=True), None)
            for (at, _, number, _), (row_key, _) in zip(page, rows, strict=True)
            if not self._file.is_new(number)
        )
        return rows

    def remove_unreachable(self, oldest_ms: int) -> None:
        """Remove the versions that ended before the history starts, and tombstones that hold when it starts.

        All rows are on the spill, and their values are `Version`s.
        """
        gone: list[SpilledRow] = []
        held: SpilledRow | None = None
        """The last version so far of a key that started before the history does."""
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
        """Take in rows of a checkpoint. Return those that belong into memory: all of them, or none if they do not fit."""
        taken: dict[Any, Any] = {}
        check_at = 1
        for row_key, value in rows:
            taken[row_key] = value
            if len(taken) >= check_at:
                capacity = self._capacity(list(islice(taken.items(), SAMPLE)))
                check_at = min(capacity, 2 * max(SAMPLE, len(taken)))
                if len(taken) >= capacity:
                    self._write_restored(taken)
                    taken = {}
        if self._file.spill is None:
            return taken.items()
        self._write_restored(taken)
        self._count = self._file.spill.count(ALL)
        return ()

    def _write_restored(self, taken: dict[Any, Any]) -> None:
        spill, expired_ms = self._file.open(), self._expired_until()
        spill.delete(sorted(self._bytes_of(row_key) for row_key, value in taken.items() if value is None))
        rows = []
        for row_key, value in taken.items():
            if value is not None:
                self._key_type.normalize(self._rows.position(row_key)[0])  # records the type of the keys
                rows.append(self._spilled_row(row_key, value, None))
        spill.write(sorted((row for row in rows if row[3] is None or row[3] > expired_ms), key=itemgetter(0)))

    def count_resident(self) -> int:
        """See `Resident`. Keys that were looked up without success count too."""
        return len(self._rows) + max(0, len(self._resident) - len(self._rows.keys()))

    def capacity(self) -> int:
        """See `Resident`."""
        return self._capacity(list(islice(self._rows.rows_of(islice(self._rows.keys(), SAMPLE)), SAMPLE)))

    def _capacity(self, sample: Sequence[tuple[Any, Any]]) -> int:
        """Return about how many rows like these fit in memory; a buffer's builder may set lower limits."""
        builder = self._builder
        capacity = capacity_for(self._file.memory_bytes, _ROW_BYTES, self._codec, sample)
        if builder.memory_records is not None:
            capacity = min(capacity, builder.memory_records)
        if builder.memory_bytes is not None and sample:
            size = sum(entry.size for _, entry in sample if entry is not None)
            capacity = min(capacity, builder.memory_bytes * len(sample) // max(1, size))
        return max(1, capacity)

    def flush(self) -> None:
        """Move all rows to the spill."""
        spill = self._file.open()
        self._count += len(self._rows)
        spill.write(self._leaving())
        gone = {self._bytes_of(row_key): self._codec.dump_key(row_key) for row_key in self._changed}
        number = self._file.number(is_new=False, is_gone=True)
        spill.write((at, gone[at], number, None) for at in sorted(gone))
        self._changed.clear()
        self._resident.clear()
        self._rows.clear()
        self._delete_expired(spill)

    def _leaving(self) -> Iterator[SpilledRow]:
        """Yield the rows in memory and remove them from the changes: what remains there is deleted."""
        for row_key, value in self._rows.rows_of(by_bytes(self._rows.keys())):
            yield self._spilled_row(row_key, value, self._changed.pop(row_key, None))

    def _spilled_row(self, row_key: Any, value: Any, is_new: bool | None) -> SpilledRow:  # noqa: FBT001 - None: unchanged
        due_ms = self._rows.due_at(row_key, value)
        if due_ms is not None and due_ms < self.first_due:
            self.first_due = due_ms
        return self._bytes_of(row_key), self._codec.dump(row_key, value), self._file.number(is_new), due_ms

    def _bytes_of(self, row_key: Any) -> bytes:
        key, numbers = self._rows.position(row_key)
        return _group_bytes(key) + b"".join(map(_NUMBER.pack, numbers))

    def _delete_expired(self, spill: Spill) -> None:
        expired_ms = self._expired_until()
        if expired_ms >= self.first_due:
            self._count -= spill.count_due(expired_ms)
            spill.delete_due(expired_ms)
            self.first_row_due()


def _group_bytes(key: Any) -> bytes:
    """Return the bytes that start the rows of this key only, ordered as the keys' bytes."""
    return encode_key(key).replace(b"\0", b"\0\xff") + b"\0\0"
