"""The rows of a store that has one row per key, in memory. `streams.state.spilling_rows` has those that spill."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from rewindow.streams.serde.coercion import are_all
from rewindow.streams.serde.key_bytes import by_bytes, encode_key
from rewindow.streams.state.key_types import KeyType


class KeyRows:
    """Rows by key.

    To write a row, call `begin_change` if the key is not in ``changed``, then set it in ``values``: that is the hot
    path of every store built on this. Values are returned as they are, not copied.
    """

    __slots__ = ("_encode", "_key_type", "admit", "changed", "get", "values")

    def __init__(self, key_type: KeyType, encode: Callable[[Any], bytes] = encode_key) -> None:
        """``encode`` returns the bytes of a key, which order the rows."""
        self.values: dict[Any, Any] = {}
        """The rows in memory."""
        self.changed: dict[Any, bool] = {}
        """The keys written since `take_changes`; True for keys that no checkpoint has."""
        self.get: Callable[[Any], Any] = self.values.get
        """Returns the value of a key, or None."""
        self.admit: Callable[[Any, Any], None] = self.values.__setitem__
        """Takes in a row of a checkpoint."""
        self._key_type, self._encode = key_type, encode

    def begin_change(self, key: Any) -> None:
        """Record the first write of a key since the checkpoint. Raises `DataError` for a key without bytes."""
        is_new = key not in self.values
        if is_new and not (key.__class__ is str and key.isascii()):
            self._encode(key)
        self.changed[key] = is_new

    def pop(self, key: Any) -> Any:
        """Delete a row; return its value, or None."""
        if key.__class__ is not self._key_type.exact_class:
            if key not in self.values:
                return None
            key = self._key_type.normalize(key)
        value = self.values.pop(key, None)
        if value is not None and not self.changed.pop(key, False):  # a row that no checkpoint has leaves no trace
            self.changed[key] = False
        return value

    def get_many(self, keys: Iterable[Any]) -> list[Any]:
        """Return the values of keys in their order; None for a key without one."""
        return list(map(self.values.get, keys))

    def put_many(self, rows: dict[Any, Any]) -> None:
        """Set rows whose keys are all of the exact class."""
        changed, values, given = self.changed, self.values, rows.keys()
        begun = rows if changed.keys().isdisjoint(given) else [key for key in rows if key not in changed]
        is_text = self._key_type.exact_class is str
        if not (is_text and "".join(begun).isascii()):
            for key in begun:
                if key not in values:
                    self._encode(key)
        if values.keys().isdisjoint(given):
            changed.update(dict.fromkeys(begun, True))
        else:
            changed.update({key: key not in values for key in begun})
        values.update(rows)

    def pop_many(self, keys: Collection[Any]) -> None:
        """Delete the rows of keys."""
        changed, pop_value, exact_class = self.changed, self.values.pop, self._key_type.exact_class
        if self._are_all_and_new(keys):  # as in a punctuation that empties its store
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
        """Iterate over the rows by key bytes. Later writes are safe and not seen."""
        keys = by_bytes(self.values, self._encode)
        return zip(keys, list(map(self.values.__getitem__, keys)), strict=True)

    def live_keys(self) -> Iterable[Any]:
        """Iterate over the keys in no particular order."""
        return self.values

    def drop(self, key: Any) -> None:
        """Take in a tombstone of a checkpoint."""
        self.values.pop(key, None)

    def end_restore(self) -> None:
        """Finish after the last `admit` or `drop`."""

    def take_changes(self) -> Collection[tuple[Any, Any]]:
        """See `Store`."""
        changes = [(key, self.values.get(key)) for key in by_bytes(self.changed, self._encode)]
        self.changed.clear()
        return changes

    def savepoint(self, key: Any) -> Callable[[], None]:
        """Return a function that restores the current row of a key."""
        value, is_new = self.values.get(key), self.changed.get(key)

        def roll_back() -> None:
            _set_or_delete(self.values, key, value)
            _set_or_delete(self.changed, key, is_new)

        return roll_back

    def hold(self, *, is_held: bool) -> None:
        """See `Store`."""

    def __len__(self) -> int:
        return len(self.values)

    def _are_all_and_new(self, keys: Collection[Any]) -> bool:
        """Return True only if keys are those of all rows, and no checkpoint has one of them: then no row leaves a trace."""
        values, changed = self.values, self.changed
        exact_class = self._key_type.exact_class
        if exact_class is None or not len(keys) == len(values) == len(changed) or not are_all(keys, exact_class):
            return False
        return all(changed.values()) and values.keys() == (keys.keys() if isinstance(keys, dict) else set(keys))


def note_removal(changed: dict[Any, bool], key: Any) -> None:
    """Record in ``changed`` that a row is gone. One that no checkpoint has leaves no trace."""
    if changed.get(key):
        del changed[key]
    else:
        changed[key] = False


def _set_or_delete(rows: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        rows.pop(key, None)
    else:
        rows[key] = value
