"""Stores of one value per key. `PrefixStore` has pairs as keys and finds keys by the first part of a pair."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import merge
from typing import Any

from rewindow.errors import DataError
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.key_bytes import by_bytes, encode_key, encode_pair, span_of_first
from rewindow.streams.serde.normalizers import are_all, copied, is_frozen, stay_as_they_are
from rewindow.streams.state.key_rows import KeyRows, SpillingKeyRows
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.spill import Disk, SpillFile
from rewindow.streams.state.stores import Store, StoreBuilder, name_value


class KeyValueStore(Store):
    """A store of one value per key. With a disk, rows that do not fit in memory spill to it."""

    def __init__(
        self, builder: StoreBuilder, disk: Disk | None = None, encode: Callable[[Any], bytes] = encode_key
    ) -> None:
        """``encode`` returns the bytes of a key. Rows are ordered by these bytes."""
        super().__init__(builder)
        self._keys, self._encode = KeyType(builder, self._live_keys), encode
        if disk is None:
            self._rows = KeyRows(self._keys, encode)
        else:
            self._rows = SpillingKeyRows(builder, SpillFile(builder.name, disk), self._keys, encode=encode)
        self._values, self._changed = self._rows.values, self._rows.changed
        self._normalize = builder.normalizers.value
        self._get = self._rows.get
        self._all_frozen = True
        """Whether all values that were ever put are immutable. If so, reads need not copy them."""
        self._watches = not builder.normalizers.is_frozen
        # The store's type allows only immutable values, so reads never copy and are plain lookups.
        if not self._watches:
            self.get = self.find = self._get  # type: ignore[method-assign, assignment]
        if type(self).delete is KeyValueStore.delete:
            self.delete = self._rows.pop  # type: ignore[method-assign]

    def get(self, key: Any) -> Any:
        """Return the value of a key, or None."""
        value = self._get(key)
        return value if self._all_frozen else copied(value)

    def find(self, key: Any) -> Any:
        """Return the value of a key, or None. Stores for all kinds of tables have this method."""
        return self.get(key)

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key; None deletes the key.

        Raises `DataError` for a value that a restart would restore differently, and for a key that cannot be encoded as bytes
        or has another type than the store's keys.
        """
        if value is None:
            self.delete(key)
            return
        if key.__class__ is not self._keys.exact_class:
            key = self._keys.normalize(key)
        try:
            value = self._normalize(value)
        except DataError as error:
            name_value(error, self.name, key)
            raise
        if key not in self._changed:
            self._rows.begin_change(key)
        self._values[key] = value
        if self._watches:
            self._watch(value)

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Set the value of a key if it has none. Return the value that the key had before, or None."""
        before = self.get(key)
        if before is None:
            self.put(key, value)
        return before

    def delete(self, key: Any) -> Any:
        """Delete a key. Return its value, or None if it had none."""
        return self._rows.pop(key)

    def get_many(self, keys: Iterable[Any]) -> list[Any]:
        """Return the values of several keys, in the order of the keys; None for a key without a value."""
        values = self._rows.get_many(keys)
        return values if self._all_frozen else list(map(copied, values))

    def put_many(self, rows: Mapping[Any, Any]) -> None:
        """Set the values of several keys; None deletes a key. Equivalent to one call of `put` per key.

        Raises `DataError` as `put` does, and for anything but a mapping.
        """
        # User code may pass any object.
        given: object = rows
        if not isinstance(given, Mapping):
            raise DataError(
                "put-many-without-dict",
                "store {store!r}: put_many takes a dict of keys and values, not a {type}",
                store=self.name,
                type=type(rows).__name__,
            )
        values = self._normalized(rows)
        if values is not None:
            self._rows.put_many(values)
            return
        for key, value in rows.items():
            self.put(key, value)

    def delete_many(self, keys: Collection[Any]) -> None:
        """Delete several keys, given as a list, dict or other collection. Raises `DataError` for an iterator or a str."""
        # User code may pass any object.
        given: object = keys
        if not isinstance(given, Collection) or isinstance(given, str):
            raise DataError(
                "delete-many-without-list",
                "store {store!r}: delete_many takes a list of keys, not a {type}",
                store=self.name,
                type=type(keys).__name__,
            )
        self._rows.pop_many(keys)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over ``(key, value)`` by key bytes. Writes during the iteration are safe and do not affect it."""
        rows = self._rows.scan()
        return rows if self._all_frozen else _copies(rows)

    def range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """Iterate, as `all` does, over the keys whose bytes are between those of ``first`` and ``last``, both included.

        Each call compares every key of the store. With 10,000 keys this takes about 0.5 ms if they are str, 3 ms if they are
        numbers, and 13 ms if they are rows. If rows have spilled to disk, each call reads all of them. So do not read a small
        range of a large store for each record. Instead, store values that are read together as one value. For ranges of
        times, use a window store, whose `fetch_range` reads only the windows of one key.
        """
        low, high = encode_key(first), encode_key(last)
        if isinstance(self._rows, SpillingKeyRows) and self._rows.spilling.spill is not None:
            return ((key, value) for key, value in self.all() if low <= encode_key(key) <= high)
        if self._keys.exact_class is str and first.__class__ is str and last.__class__ is str:
            # Strings sort in the same order as their UTF-8 bytes.
            wanted = [key for key in self._values if first <= key <= last]
        else:
            wanted = [key for key in self._values if low <= encode_key(key) <= high]
        keys = by_bytes(wanted, self._encode)
        rows = zip(keys, list(map(self._values.__getitem__, keys)), strict=True)
        return rows if self._all_frozen else _copies(rows)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the keys, in no particular order."""
        return iter(self._rows.live_keys())

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._rows)

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`."""
        del clock_ms
        take_in = self._rows.take_in
        for key, value in rows:
            if value is None:
                self._rows.drop(key)
                continue
            own = key if key.__class__ is self._keys.exact_class else self._keys.normalize(key)
            if self._watches:
                self._watch(value)
            take_in(own, value if self._all_frozen else copied(value))
        self._rows.end_restore()

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`."""
        return self._rows.take_changes()

    def rows(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        return self.all()

    def hold(self, *, is_held: bool) -> None:
        """See `Store`."""
        self._rows.hold(is_held=is_held)

    def savepoint(self, key: Any) -> Callable[[], None]:
        """Return a function that restores the present row of a key (see `streams.error_policy`)."""
        try:
            return self._rows.savepoint(self._keys.as_stored(key))
        except TypeError:
            # The key is unhashable, so the write will be refused.
            return lambda: None

    def _normalized(self, rows: Mapping[Any, Any]) -> dict[Any, Any] | None:
        """Return normalized rows that can be set together, or None if each row needs a call of `put`."""
        exact_class = self._keys.exact_class
        if self._watches or not rows or exact_class is None or not are_all(rows, exact_class):
            return None
        if stay_as_they_are(rows.values(), self._normalize):
            return rows if isinstance(rows, dict) else dict(rows)
        try:
            values = dict(zip(rows, map(self._normalize, rows.values()), strict=True))
        except DataError:
            # The caller then calls `put`, which raises an error that names the key.
            return None
        return None if None in values.values() else values

    def _live_keys(self) -> Iterable[Any]:
        return self._rows.live_keys()

    def _watch(self, value: Any) -> None:
        if not is_frozen(value):
            self._all_frozen = self._watches = False


def _copies(rows: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    for key, value in rows:
        yield key, copied(value)


class PrefixStore(KeyValueStore):
    """A store whose keys are pairs ``(first, second)``. It finds all keys with a given ``first`` without reading other keys.

    It is the store of subscriptions of a foreign-key join. Rows are in Kafka's order: by foreign key, then by the bytes of
    the left key.
    """

    def __init__(self, builder: StoreBuilder, disk: Disk | None = None) -> None:
        super().__init__(builder, disk, encode_pair)
        self._by_first: dict[bytes, dict[Any, None]] = {}
        """The keys in memory, by the bytes of their first part. Keys that were only read from the spill are left out."""
        if isinstance(self._rows, SpillingKeyRows):
            self._rows.on_clear = self._by_first.clear

    def beginning_with(self, first: Any) -> Iterable[tuple[Any, Any]]:
        """Return ``(key, value)`` for the keys with this first part, ordered by the bytes of the second part.

        Do not write to the store before the last row is read.
        """
        keys = self._by_first.get(encode_key(first), {})
        resident = [(key, self.get(key)) for key in by_bytes(keys, encode_pair)]
        if not isinstance(self._rows, SpillingKeyRows):
            return resident
        return merge(resident, self._rows.spilling.spilled(keys, span_of_first(first)), key=_row_bytes)

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
