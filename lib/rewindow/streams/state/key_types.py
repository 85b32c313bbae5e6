"""All keys of a store have one type, because 1, 1.0 and True are equal in Python, but are three keys in a changelog.

If no type is declared, the first key decides the type. A key of another type, or a key that cannot be encoded as bytes, is
refused when it is put. Restored keys must have the same type, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rewindow.errors import DataError

if TYPE_CHECKING:
    from rewindow.streams.state.stores import StoreBuilder

_NEVER_NORMALIZED = frozenset((str, int, bool, bytes))
"""Classes for which normalization changes either all keys or no key."""
_NUMBERS = (int, float, bool)


class KeyType:
    """The type of a store's keys. Keys of the class ``exact_class`` need no `normalize`; if it is None, all keys need it."""

    __slots__ = ("_has_one_type", "_live", "_name", "_normalize", "_type", "exact_class")

    def __init__(self, builder: StoreBuilder, live: Callable[[], Iterable[Any]]) -> None:
        """``live`` returns the keys that are now in the store. If all keys are deleted, the type may change."""
        self.exact_class: type[Any] | None = None
        self._name, self._live = builder.name, live
        self._normalize, _, self._has_one_type, _ = builder.normalizers
        self._type: Any = None

    def normalize(self, key: Any) -> Any:
        """Return a key as a checkpoint would restore it. The result equals the key in Python.

        Raises `DataError` for a key of another type than the store's keys.
        """
        try:
            normal = self._normalize(key)
            if self._has_one_type:
                self._set_exact_class(key, normal)
                return normal
            own = _type_of(normal)
        except DataError as error:
            error.surrounded(
                f"store {self._name!r} cannot have the key {key!r}: ", ". Declare key=... or make another key"
            )
            raise
        common = own if self._type is None else _common(self._type, own)
        if common is _NONE:
            # Only keys in the store count, because deleted keys would not be known after a restart either.
            common = own
            for other in self._live():
                common = _common(common, _type_of(other))
                if common is _NONE:
                    raise self._conflict(key, other)
        self._type = common
        self._set_exact_class(key, normal)
        return normal

    def as_stored(self, key: Any) -> Any:
        """Return a key in the form in which the store has it. For example, 1.0 becomes 1 if the store's keys are integers."""
        if key.__class__ is self.exact_class:
            return key
        if key.__class__ in _NUMBERS and self._type in _NUMBERS and key == (own := self._type(key)):
            return own
        try:
            return self._normalize(key)
        except DataError:
            return key

    def savepoint(self) -> Callable[[], None]:
        """Return a function that restores the present type of the keys."""
        current, exact_class = self._type, self.exact_class

        def roll_back() -> None:
            self._type, self.exact_class = current, exact_class

        return roll_back

    def _set_exact_class(self, key: Any, normal: Any) -> None:
        self.exact_class = key.__class__ if key.__class__ in _NEVER_NORMALIZED and normal is key else None

    def _conflict(self, key: Any, other: Any) -> DataError:
        return DataError(
            "store-key-types-differ",
            "store {store!r} has keys such as {other} ({other_type}), so {key} ({type}) cannot be one: declare "
            "key=... and convert, or use two stores",
            store=self._name,
            other=repr(other),
            other_type=type(other).__name__,
            key=repr(key),
            type=type(key).__name__,
        )


_NONE = object()


def _type_of(key: Any) -> Any:
    """Return the class of a key (for a tuple, also the types of its items). For null, return None, which fits any class."""
    if isinstance(key, tuple):
        return (key.__class__, *(_type_of(item) for item in key))
    if key != key:  # noqa: PLR0124 - only NaN is not equal to itself
        raise DataError(
            "key-not-a-number", "NaN cannot be a key, because it does not equal itself: use a number or None"
        )
    return None if key is None else key.__class__


def _common(kind: Any, other: Any) -> Any:
    """Return the type of keys that fits both types, or `_NONE` if they are incompatible."""
    if kind == other or other is None:
        return kind
    if kind is None:
        return other
    if isinstance(kind, tuple) and isinstance(other, tuple) and len(kind) == len(other):
        parts = tuple(_common(first, second) for first, second in zip(kind, other, strict=True))
        return _NONE if any(part is _NONE for part in parts) else parts
    return _NONE
