"""The rows of a store with one row per key. They are all in memory, or spill to local disk when memory is full."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.serde.normalizers import are_all
from rewindow.streams.state.key_types import KeyType
from rewindow.streams.state.spill import SpillFile
from rewindow.streams.state.spilling_map import MemoryBudget, SpillingMap
from rewindow.streams.state.stores import StoreBuilder


class KeyRows:
    """Rows by key, in memory.

    To write a row, a store calls `begin_change` if the key is not in ``changed``, and then sets the row in ``values``. Stores do
    this themselves, because it is the hot path. Returned values are not copied.
    """

    __slots__ = ("_key_type", "admit", "changed", "encode", "get", "take_in", "values")

    is_single, row_bytes = True, 400
    """See `Rows`. The bytes of a row are the bytes of its objects and of entries in two dictionaries."""

    def __init__(self, key_type: KeyType, encode: Callable[[Any], bytes] = encode_key) -> None:
        """``encode`` returns the bytes of a key. Rows are ordered by these bytes."""
        self.values: dict[Any, Any] = {}
        """The rows in memory: the value of each key."""
        self.changed: dict[Any, bool] = {}
        """The keys written since the last `take_changes`. The value is True if no checkpoint has the key."""
        self.get: Callable[[Any], Any] = self.values.get
        """A function that returns the value of a key; None if there is none."""
        self.admit: Callable[[Any, Any], None] = self.values.__setitem__
        """See `Rows`."""
        self.take_in: Callable[[Any, Any], None] = self.admit
        """A function that adds a key and value of a checkpoint during a restore."""
        self._key_type, self.encode = key_type, encode

    def begin_change(self, key: Any) -> None:
        """Record that a key is written for the first time since the checkpoint. Raises `DataError` as `encode_key` does."""
        is_new = key not in self.values
        if is_new and not (key.__class__ is str and key.isascii()):
            self.encode(key)
        self.changed[key] = is_new

    def pop(self, key: Any) -> Any:
        """Delete a row and return its value; None if there is no row."""
        if key.__class__ is not self._key_type.exact_class:
            if key not in self.values:
                return None
            key = self._key_type.normalize(key)
        value = self.values.pop(key, None)
        # A deleted row needs a tombstone only if a checkpoint has the row.
        if value is not None and not self.changed.pop(key, False):
            self.changed[key] = False
        return value

    def get_many(self, keys: Iterable[Any]) -> list[Any]:
        """Return the values of the keys, in the order of the keys; None for a key without a value."""
        return list(map(self.values.get, keys))

    def put_many(self, rows: dict[Any, Any]) -> None:
        """Set rows whose keys all have the class `KeyType.exact_class`."""
        changed, values, given = self.changed, self.values, rows.keys()
        begun = rows if changed.keys().isdisjoint(given) else [key for key in rows if key not in changed]
        is_text = self._key_type.exact_class is str
        if not (is_text and "".join(begun).isascii()):
            for key in begun:
                if key not in values:
                    self.encode(key)
        if values.keys().isdisjoint(given):
            changed.update(dict.fromkeys(begun, True))
        else:
            changed.update({key: key not in values for key in begun})
        values.update(rows)

    def pop_many(self, keys: Collection[Any]) -> None:
        """Delete the rows of the keys."""
        changed, pop_value, exact_class = self.changed, self.values.pop, self._key_type.exact_class
        # This is a fast path, because punctuations often empty their store.
        if self._are_all_and_new(keys):
            self.values.clear()
            changed.clear()
            return
        pop_flag = changed.pop
        for key in keys:
            if key.__class__ is not exact_class:
                self.pop(key)
            elif pop_value(key, None) is not None and not pop_flag(key, False):
                changed[key] = False

    def scan(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over the present rows by key bytes. Writes during the iteration are safe and do not affect it."""
        keys = by_bytes(self.values, self.encode)
        return zip(keys, list(map(self.values.__getitem__, keys)), strict=True)

    def live_keys(self) -> Iterable[Any]:
        """Iterate over the keys in no particular order."""
        return self.values

    def drop(self, key: Any) -> None:
        """Delete a key's row in a restore, because the checkpoint has a tombstone for the key."""
        self.values.pop(key, None)

    def end_restore(self) -> None:
        """Finish a restore, after the last call of `take_in` or `drop`."""

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`."""
        changes = [(key, self.values.get(key)) for key in by_bytes(self.changed, self.encode)]
        self.changed.clear()
        return changes

    def savepoint(self, key: Any) -> Callable[[], None]:
        """Return a function that restores the present row of a key."""
        value, is_new = self.values.get(key), self.changed.get(key)

        def roll_back() -> None:
            _set_or_delete(self.values, key, value)
            _set_or_delete(self.changed, key, is_new)

        return roll_back

    def hold(self, *, is_held: bool) -> None:
        """See `Store`."""

    def position(self, row_key: Any) -> tuple[Any, tuple[int, ...]]:
        """See `Rows`."""
        return row_key, ()

    def due_at(self, row_key: Any, value: Any) -> None:
        """See `Rows`."""

    def keys(self) -> dict[Any, Any]:
        """See `Rows`."""
        return self.values

    def rows_of(self, keys: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """See `Rows`."""
        return ((key, self.values[key]) for key in keys)

    def clear(self) -> None:
        """See `Rows`."""
        self.values.clear()

    def count(self) -> int:
        """See `Rows`."""
        return len(self.values)

    def __len__(self) -> int:
        """The number of rows, in memory and on the spill."""
        return len(self.values)

    def _are_all_and_new(self, keys: Collection[Any]) -> bool:
        """Return True only if ``keys`` are all keys of the store, and no checkpoint has any of them.

        They then need no tombstones.
        """
        values, changed = self.values, self.changed
        exact_class = self._key_type.exact_class
        if exact_class is None or not len(keys) == len(values) == len(changed) or not are_all(keys, exact_class):
            return False
        return all(changed.values()) and values.keys() == (keys.keys() if isinstance(keys, dict) else set(keys))


class SpillingKeyRows(KeyRows):
    """Rows by key. As many rows as fit are kept in memory. The other rows are on the spill."""

    def __init__(
        self,
        builder: StoreBuilder,
        file: SpillFile,
        key_type: KeyType,
        *,
        prefix: bytes = b"",
        budget: MemoryBudget | None = None,
        encode: Callable[[Any], bytes] = encode_key,
    ) -> None:
        """For ``prefix`` and ``budget`` see `SpillingMap`."""
        super().__init__(key_type, encode)
        self.get, self.take_in = self._get, self._take_in
        self.on_clear: Callable[[], None] | None = None
        self.spilling = SpillingMap(builder, file, self, key_type, self.changed, prefix=prefix, budget=budget)
        self._budget = self.spilling.budget

    def _get(self, key: Any) -> Any:
        value = self.values.get(key)
        if value is None and self.spilling.spill is not None and key not in self.spilling.resident:
            self.spilling.load(key)
            value = self.values.get(key)
            self._budget.spend(0)
        return value

    def _bring(self, key: Any) -> None:
        """Load a row that is not in memory from the spill, if the spill has the row."""
        spilling = self.spilling
        if spilling.spill is not None and key not in spilling.resident:
            spilling.load(key)

    def begin_change(self, key: Any) -> None:
        """See `KeyRows`."""
        budget = self._budget
        budget.left -= 1  # the same code as `MemoryBudget.spend`, without the cost of a call
        if budget.left <= 0:
            budget.check()
        if self.spilling.spill is not None and key not in self.values:
            self._bring(key)
            if key in self.changed:
                return
        # The rest is the code of `KeyRows.begin_change`, without the cost of a call.
        is_new = key not in self.values
        if is_new and not (key.__class__ is str and key.isascii()):
            self.encode(key)
        self.changed[key] = is_new

    def pop(self, key: Any) -> Any:
        """See `KeyRows`."""
        if self.spilling.spill is not None and key not in self.values:
            self._bring(key)
        if key.__class__ is not self._key_type.exact_class:
            return KeyRows.pop(self, key)
        # The rest does what `KeyRows.pop` does, without the cost of a call.
        value = self.values.pop(key, None)
        if value is not None and not self.changed.pop(key, False):
            self.changed[key] = False
        return value

    def get_many(self, keys: Iterable[Any]) -> list[Any]:
        """See `KeyRows`."""
        return super().get_many(keys) if self.spilling.spill is None else list(map(self._get, keys))

    def put_many(self, rows: dict[Any, Any]) -> None:
        """See `KeyRows`."""
        if self.spilling.spill is None:
            super().put_many(rows)
            self._budget.spend(len(rows))
            return
        for key, value in rows.items():
            if key not in self.changed:
                self.begin_change(key)
            self.values[key] = value

    def pop_many(self, keys: Collection[Any]) -> None:
        """See `KeyRows`."""
        if self.spilling.spill is None:
            super().pop_many(keys)
            return
        for key in keys:
            self.pop(key)

    def scan(self) -> Iterator[tuple[Any, Any]]:
        """See `KeyRows`."""
        return super().scan() if self.spilling.spill is None else self.spilling.scan(super().scan)

    def live_keys(self) -> Iterator[Any]:
        """See `KeyRows`. No rows move between memory and the spill."""
        yield from self.values
        for key, _ in self.spilling.spilled(self.values):
            yield key

    def _take_in(self, key: Any, value: Any) -> None:
        self.spilling.is_restoring = True
        self.values[key] = value
        self._budget.spend()

    def drop(self, key: Any) -> None:
        """See `KeyRows`."""
        self.spilling.drop(key)
        super().drop(key)

    def end_restore(self) -> None:
        """See `KeyRows`."""
        self.spilling.end_restore()

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`. The caller must read the changes before the next write."""
        return super().take_changes() if self.spilling.spill is None else self.spilling.take_changes()

    def savepoint(self, key: Any) -> Callable[[], None]:
        """See `KeyRows`."""
        if key not in self.values:
            self._bring(key)
        return super().savepoint(key)

    def hold(self, *, is_held: bool) -> None:
        """See `Store`."""
        self.spilling.hold(is_held=is_held)

    def clear(self) -> None:
        """See `Rows`."""
        self.values.clear()
        if self.on_clear is not None:
            self.on_clear()

    def __len__(self) -> int:
        return len(self.values) + self.spilling.count()


def note_removal(changed: dict[Any, bool], key: Any) -> None:
    """Record in ``changed`` that a row was deleted.

    A row that no checkpoint has needs no tombstone, so its entry is removed.
    """
    if changed.get(key):
        del changed[key]
    else:
        changed[key] = False


def _set_or_delete(rows: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        rows.pop(key, None)
    else:
        rows[key] = value
