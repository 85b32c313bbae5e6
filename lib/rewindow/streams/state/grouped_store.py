"""The base of stores that have several rows per key or find rows by time. It handles changes, restore and spilling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any, Protocol

from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.serde.normalizers import copied
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.spill import Disk, SpillFile
from rewindow.streams.state.spilling_map import Rows, SpillingMap
from rewindow.streams.state.stores import Store, StoreBuilder


class GroupRows(Rows, Protocol):
    """Rows in memory. A key may have several rows, or rows may be found by time."""

    is_single: bool = False
    row_bytes: int = 900
    encode: Callable[[Any], bytes] = staticmethod(encode_key)

    def get(self, row_key: Any) -> Any:
        """Return the value of the row with this row key, or None."""
        ...


class GroupedStore(Store):
    """A store whose rows in memory are `GroupRows`. With a disk, rows that do not fit in memory spill to it.

    Before subclasses use the rows of a key, they call ``_fetch(key)``, which loads the rows into memory.
    """

    _rows: GroupRows

    def __init__(self, builder: StoreBuilder, rows: GroupRows, disk: Disk | None) -> None:
        super().__init__(builder)
        self._rows = rows
        self._keys, self._normalize = KeyType(builder, self._live_keys), builder.normalizers.value
        self._spilled: SpillingMap | None = None
        self._fetch: Callable[[Any], None] = _nothing
        if disk is not None:
            file, until = SpillFile(builder.name, disk), self._expired_until
            self._spilled = SpillingMap(builder, file, rows, self._keys, self._changed, expired_until=until)
            self._fetch = self._spilled.fetch

    @abstractmethod
    def _load(self, rows: Iterable[tuple[Any, Any]], clock_ms: int) -> None:
        """Set the store's clock, and load the ``(row key, value)`` rows of a checkpoint into memory."""

    def _expired_until(self) -> int:
        """Return the latest due time (`Rows.due_at`) at which rows have expired; -1 if none can have expired."""
        return UNKNOWN

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`."""
        if self._spilled is not None:
            self._load((), clock_ms)
            rows = self._spilled.restore(rows)
        self._load(rows, clock_ms)

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`. The caller must read the changes before the next write."""
        if self._spilled is not None and self._spilled.spill is not None:
            return self._spilled.take_changes()
        changes = [(row_key, self._rows.get(row_key)) for row_key in sorted(self._changed, key=self._order)]
        self._changed.clear()
        return changes

    def rows(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        rows = self._rows.rows_of(by_bytes(self._rows.keys()))
        if self._spilled is not None:
            rows = self._spilled.merged(rows)
        return iter([(row_key, copied(value)) for row_key, value in rows])

    def __len__(self) -> int:
        """The number of rows."""
        return self._rows.count() if self._spilled is None else self._rows.count() + self._spilled.count()

    def hold(self, *, is_held: bool) -> None:
        """See `Store`."""
        if self._spilled is not None:
            self._spilled.hold(is_held=is_held)

    def _live_keys(self) -> Iterable[Any]:
        return self._rows.keys() if self._spilled is None else chain(self._rows.keys(), self._spilled.keys())

    def _order(self, row_key: Any) -> tuple[Any, ...]:
        key, numbers = self._rows.position(row_key)
        return encode_key(key), *numbers


def _nothing(_key: Any) -> None:
    pass
