"""A key-value store whose keys are pairs, with lookup by the first part of the key."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import merge
from typing import Any

from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.key_bytes import by_bytes, encode_key, encode_pair, span_of_first
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.spill import Disk
from rewindow.streams.state.spilling_rows import SpillingRows
from rewindow.streams.state.stores import StoreBuilder


class PrefixStore(KeyValueStore):
    """Keys are ``(first, second)``; finding those of one ``first`` does not read the others.

    Rows have Kafka's order of subscriptions: by foreign key, then by the bytes of the left key.
    """

    def __init__(self, builder: StoreBuilder, disk: Disk | None = None) -> None:
        super().__init__(builder, disk, encode_pair)
        self._by_first: dict[bytes, dict[Any, None]] = {}
        """The keys in memory by the bytes of their first part, without those that were only read from the spill."""
        if isinstance(self._rows, SpillingRows):
            self._rows.on_flush = self._by_first.clear

    def beginning_with(self, first: Any) -> Iterable[tuple[Any, Any]]:
        """Return ``(key, value)`` of the keys with this first part, by the bytes of the second. Write only after the last one."""
        keys = self._by_first.get(encode_key(first), {})
        resident = [(key, self.get(key)) for key in by_bytes(keys, encode_pair)]
        if not isinstance(self._rows, SpillingRows):
            return resident
        return merge(resident, self._rows.scan_spilled(span_of_first(first), keys), key=_row_bytes)

    def put(self, key: Any, value: Any) -> None:
        """See `KeyValueStore`."""
        super().put(key, value)
        if value is not None:
            self._by_first.setdefault(encode_key(key[0]), {})[key] = None

    def delete(self, key: Any) -> Any:
        """See `KeyValueStore`."""
        first = encode_key(key[0])
        keys = self._by_first.get(first, {})
        keys.pop(key, None)
        if not keys:
            self._by_first.pop(first, None)
        return super().delete(key)

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`."""
        super().restore(rows, clock_ms)
        self._by_first.clear()
        for key in self._values:
            self._by_first.setdefault(encode_key(key[0]), {})[key] = None


def _row_bytes(row: tuple[Any, Any]) -> bytes:
    return encode_pair(row[0])
