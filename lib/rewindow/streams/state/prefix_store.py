"""A key-value store whose keys are pairs, which can be asked for all keys that begin with one first part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.state.key_value_store import KeyValueStore
from rewindow.streams.state.stores import StoreBuilder


class PrefixStore(KeyValueStore):
    """Keys are ``(first, second)``; those of one ``first`` are found without looking at the others."""

    def __init__(self, builder: StoreBuilder) -> None:
        super().__init__(builder)
        self._by_first: dict[bytes, dict[Any, None]] = {}

    def beginning_with(self, first: Any) -> Iterable[tuple[Any, Any]]:
        """Return ``(key, value)`` of the keys whose first part it is, by key bytes."""
        return [(key, self.get(key)) for key in by_bytes(self._by_first.get(encode_key(first), ()))]

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
        self._index()

    def _index(self) -> None:
        self._by_first = {}
        for key in self._values:
            self._by_first.setdefault(encode_key(key[0]), {})[key] = None
