"""The store that most others are made of: a value a key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from rewindow.errors import DataError
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.serde.values import copied, is_frozen
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.stores import Store, StoreBuilder, refused


class KeyValueStore(Store):
    """Keys and values, in memory."""

    def __init__(self, builder: StoreBuilder, keys: KeyType | None = None) -> None:
        super().__init__(builder)
        self._values: dict[Any, Any] = {}
        self._keys = keys or KeyType(builder, lambda: self._values)
        self._keep = builder.kept.value
        self._all_frozen = True
        """No value was ever put that can be changed in place: what is read needs no copy."""
        self._watches = not builder.kept.is_frozen
        if not self._watches:  # what is put can never be changed in place: to read is to look it up
            self.get = self.find = self._values.get  # type: ignore[method-assign, assignment]

    def get(self, key: Any) -> Any:
        """Return the value, or None."""
        value = self._values.get(key)
        return value if self._all_frozen else copied(value)

    find = get

    def put(self, key: Any, value: Any) -> None:
        """Set the value; None deletes the key.

        Raises `DataError` for a value that a restart would give back as another one, and for a key without bytes or
        of another form than the store's keys.
        """
        if value is None:
            self.delete(key)
            return
        if key.__class__ is not self._keys.cls:
            key = self._keys.take(key)
        try:
            value = self._keep(value)
        except DataError as error:
            raise refused(self.name, key, error) from error
        if key not in self._changed:
            self._begin_change(key)
        self._values[key] = value
        if self._watches:
            self._watch(value)

    def _begin_change(self, key: Any) -> None:
        """Note that a key is written for the first time since the checkpoint."""
        is_new = key not in self._values
        if is_new and not (key.__class__ is str and key.isascii()):
            encode_key(key)  # a key without bytes is refused here and not at the checkpoint
        self._changed[key] = is_new

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Set the value unless the key has one; return the one it had, or None."""
        before = self.get(key)
        if before is None:
            self.put(key, value)
        return before

    def delete(self, key: Any) -> Any:
        """Delete the key; return the value it had, or None."""
        if key not in self._values:
            return None
        if key.__class__ is not self._keys.cls:
            key = self._keys.take(key)
        self._note_removal(key)
        return self._values.pop(key)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over ``(key, value)`` by key bytes. Writing meanwhile is safe and not seen."""
        values = list(map(self._values.__getitem__, keys := by_bytes(self._values)))
        return zip(keys, values if self._all_frozen else map(copied, values), strict=True)

    def range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """Iterate as `all` over the keys whose bytes lie between those of ``first`` and ``last``, both included."""
        low, high = encode_key(first), encode_key(last)
        for key, value in self.all():
            if low <= encode_key(key) <= high:
                yield key, value

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the keys, in no particular order."""
        return iter(self._values)

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._values)

    def restore(self, rows: Iterable[tuple[Any, Any]], clock_ms: int = UNKNOWN) -> None:
        """See `Store`."""
        del clock_ms
        for key, value in rows:
            if value is None:
                self._values.pop(key, None)
                continue
            own = key if key.__class__ is self._keys.cls else self._keys.take(key)
            if self._watches:
                self._watch(value)
            self._values[own] = value if self._all_frozen else copied(value)

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`."""
        changed, self._changed = self._changed, {}
        return [(key, self._values.get(key)) for key in by_bytes(changed)]

    def contents(self) -> Iterator[tuple[Any, Any]]:
        """See `Store`."""
        return self.all()

    def mark(self, key: Any) -> Callable[[], None]:
        """Return what puts one key back as it is now, for `core.undo`."""
        try:
            value, changed = self._values.get(key), self._changed.get(key)
        except TypeError:  # no key at all: it will be refused
            return lambda: None

        def put_back() -> None:
            _set_or_forget(self._values, key, value)
            _set_or_forget(self._changed, key, changed)

        return put_back

    def _watch(self, value: Any) -> None:
        if not is_frozen(value):
            self._all_frozen = self._watches = False


def _set_or_forget(held: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        held.pop(key, None)
    else:
        held[key] = value
