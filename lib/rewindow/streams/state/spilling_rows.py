"""The rows of a store that has one row per key, which spill to local disk when memory is full.

Rules of this file:

1. A row in memory is the current one. A row that only the spill has is brought into memory when its key is used.
2. When memory is full, the rows that the spill lacks are written to it by key bytes, and memory becomes empty.
3. The spill keeps rows that are brought into memory, so a row that is only read is not written again.
4. Rows that changed since the checkpoint are marked on the spill by the checkpoint's number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any
from weakref import WeakSet

from rewindow.errors import DataError
from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.state.key_rows import KeyRows
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.memory_budget import SAMPLE, MemoryBudget, capacity_for
from rewindow.streams.state.spill import ALL, GONE, Codec, Span, Spill, SpilledRow
from rewindow.streams.state.spill_file import SnapshotScan, SpillFile, pages

_ROW_BYTES = 400
"""Approximate memory per row besides its text: objects, and entries in two dictionaries."""
_NOTHING = object()


class SpillingRows(KeyRows):
    """Rows by key, of which memory holds as many as fit."""

    def __init__(
        self,
        key_type: KeyType,
        codec: Codec,
        file: SpillFile,
        *,
        prefix: bytes = b"",
        budget: MemoryBudget | None = None,
        encode: Callable[[Any], bytes] = encode_key,
    ) -> None:
        """``prefix``, ``budget``: of rows that share the file and memory with others. Prefixes have equal lengths."""
        super().__init__(key_type, encode)
        self.get, self.admit = self._get, self._admit
        self.on_flush: Callable[[], None] | None = None
        self._codec, self._file = codec, file
        self._prefix = prefix + b"\x01" if prefix else b""
        self._span = (prefix + b"\x00", prefix + b"\x02") if prefix else ALL
        self._spill: Spill | None = None
        """None until rows were written to the spill."""
        self._budget = budget or MemoryBudget(self)
        self._gone: dict[Any, None] = {}
        """Deleted keys that the spill may have."""
        self._absent: Any = _NOTHING
        """The key that was last looked up without success."""
        self._spilled = 0
        """The number of rows that only the spill has."""
        self._is_restoring = False
        self._scans: WeakSet[SnapshotScan] = WeakSet()

    @property
    def is_spilled(self) -> bool:
        """Whether the spill may have rows of this."""
        return self._spill is not None

    def _get(self, key: Any) -> Any:
        value = self.values.get(key)
        if value is None and self._spill is not None:
            value = self._fetch(self._spill, key)
            if value is not None:
                self._budget.spend()
        return value

    def begin_change(self, key: Any) -> None:
        """See `KeyRows`."""
        budget = self._budget
        budget.left -= 1  # as `spend`, without its call
        if budget.left <= 0:
            budget.check()
        if self._spill is not None and key not in self.values:
            self._fetch(self._spill, key)
            if key in self.changed:
                return
        # The rest is `KeyRows.begin_change`, without its call.
        is_new = key not in self.values
        if is_new and not (key.__class__ is str and key.isascii()):
            self._encode(key)
        self.changed[key] = is_new

    def pop(self, key: Any) -> Any:
        """See `KeyRows`."""
        if self._spill is not None:
            return self._pop_spilled(self._spill, key)
        if key.__class__ is not self._key_type.exact_class:
            return KeyRows.pop(self, key)
        value = self.values.pop(key, None)  # from here on as `KeyRows.pop`, without its call
        if value is not None and not self.changed.pop(key, False):
            self.changed[key] = False
        return value

    def get_many(self, keys: Iterable[Any]) -> list[Any]:
        """See `KeyRows`."""
        return super().get_many(keys) if self._spill is None else list(map(self._get, keys))

    def put_many(self, rows: dict[Any, Any]) -> None:
        """See `KeyRows`."""
        if self._spill is None:
            super().put_many(rows)
            self._budget.spend(len(rows))
            return
        for key, value in rows.items():
            if key not in self.changed:
                self.begin_change(key)
            self.values[key] = value

    def pop_many(self, keys: Collection[Any]) -> None:
        """See `KeyRows`."""
        if self._spill is None:
            super().pop_many(keys)
            return
        for key in keys:
            self.pop(key)

    def scan(self) -> Iterator[tuple[Any, Any]]:
        """See `KeyRows`."""
        if self._spill is None:
            return super().scan()
        if not self._budget.is_held:
            self.flush()
        scan = SnapshotScan(self._spill, self._codec, self._span)
        self._scans.add(scan)
        hidden = {*self.values, *self._gone}
        if not hidden:
            return iter(scan)
        return merge(super().scan(), _without(scan, hidden), key=self._row_bytes)

    def scan_spilled(self, span: Span, hidden: Collection[Any]) -> Iterator[tuple[Any, Any]]:
        """Iterate over the rows on the spill in a span, by key bytes, without deleted and ``hidden`` keys.

        Write only after the last row.
        """
        if self._spill is not None:
            for _, text, number, _ in pages(self._spill, span):
                if not number & GONE:
                    key, value = self._codec.load(text)
                    if key not in hidden and key not in self._gone:
                        yield key, value

    def live_keys(self) -> Iterator[Any]:
        """See `KeyRows`. Nothing moves between memory and the spill."""
        yield from self.values
        for key, _ in self.scan_spilled(self._span, self.values):
            yield key

    def _admit(self, key: Any, value: Any) -> None:
        self._is_restoring = True
        self.values[key] = value
        self._budget.spend()

    def drop(self, key: Any) -> None:
        """See `KeyRows`."""
        self._is_restoring = True
        if self._spill is not None:
            self._gone[key] = None  # the spill may have an older row
        super().drop(key)
        self._budget.spend()

    def end_restore(self) -> None:
        """See `KeyRows`."""
        if self._spill is not None:
            self.flush()
            self._spilled = self._spill.count(self._span)
        self._is_restoring = False

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`. Read the changes before the next write."""
        if self._spill is None:
            return super().take_changes()
        self.flush()
        return self._file.take_changes(self._codec)

    def savepoint(self, key: Any) -> Callable[[], None]:
        """See `KeyRows`."""
        if self._spill is not None and key not in self.values:
            self._fetch(self._spill, key)
        was_gone, roll_back_memory = key in self._gone, super().savepoint(key)

        def roll_back() -> None:
            roll_back_memory()
            self._absent = _NOTHING
            if was_gone:
                self._gone[key] = None
            else:
                self._gone.pop(key, None)

        return roll_back

    def hold(self, *, is_held: bool) -> None:
        """See `Store`."""
        self._budget.hold(is_held=is_held)

    def __len__(self) -> int:
        return len(self.values) + self._spilled

    def count_resident(self) -> int:
        """See `Resident`."""
        return len(self.values) + len(self._gone)

    def capacity(self) -> int:
        """See `Resident`."""
        sample = islice(reversed(self.values.items()), SAMPLE)
        return capacity_for(self._file.memory_bytes, _ROW_BYTES, self._codec, sample)

    def flush(self) -> None:
        """Write what the spill lacks, and empty memory."""
        if not (self.values or self.changed or self._gone):
            return
        keys: Iterable[Any] = self.changed
        if self._spill is None or self._is_restoring:
            keys = {**self.values, **self.changed}
        self._spilled += len(self.values)
        spill = self._spill = self._file.open()
        self.detach_scans()
        spill.delete(
            self._prefix + self._encode(key) for key in self._gone if key not in self.values and key not in self.changed
        )
        spill.write(self._leaving(by_bytes(keys, self._encode)))
        self.values.clear()
        self.changed.clear()
        self._gone.clear()
        self._absent = _NOTHING
        if self.on_flush is not None:
            self.on_flush()

    def delete_spilled(self) -> None:
        """Delete all rows on the spill; running scans continue in a copy."""
        self.detach_scans()
        if self._spill is not None:
            self._spill.delete_span(self._span)

    def detach_scans(self) -> None:
        """Let running scans continue in a copy of the spill."""
        for scan in self._scans:
            scan.detach()

    def _leaving(self, keys: Iterable[Any]) -> Iterator[SpilledRow]:
        for key in keys:
            value, is_new = self.values.get(key), self.changed.get(key)
            text = self._codec.dump_key(key) if value is None else self._codec.dump(key, value)
            yield self._prefix + self._encode(key), text, self._file.number(is_new, is_gone=value is None), None

    def _fetch(self, spill: Spill, key: Any) -> Any:
        """Bring a row that is not in memory from the spill; return its value, or None."""
        if key is self._absent or key in self._gone:
            return None
        own = self._key_type.as_stored(key)
        try:
            found = spill.get(self._prefix + self._encode(own))
        except DataError:
            return None  # a key without bytes was never put
        text, number = found or ("", GONE)
        is_new = self._file.is_new(number)
        if is_new is not None:
            self.changed[own] = is_new
        if number & GONE:
            self._absent = key
            return None
        value = self.values[own] = self._codec.load(text)[1]
        self._spilled -= 1
        return value

    def _pop_spilled(self, spill: Spill, key: Any) -> Any:
        if key not in self.values:
            self._fetch(spill, key)
        value = KeyRows.pop(self, key)
        if value is not None:
            self._gone[key] = None
            self._budget.spend()
        return value

    def _row_bytes(self, row: tuple[Any, Any]) -> bytes:
        return self._encode(row[0])


def _without(rows: Iterable[tuple[Any, Any]], hidden: Collection[Any]) -> Iterator[tuple[Any, Any]]:
    for row in rows:
        if row[0] not in hidden:
            yield row
