"""The keys of one store have one form: 1, 1.0 and True are one key to Python, and three to a changelog.

The first key decides where no type is declared. A key of another form is refused when it is put, as is one that has no
bytes; what a restart gives back is held to the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rewindow.errors import DataError

if TYPE_CHECKING:
    from rewindow.streams.state.stores import StoreBuilder

_AT_A_GLANCE = frozenset((str, int, bool, bytes))
"""Classes whose values need no normalising."""


_NUMBERS = (int, float, bool)


class KeyType:
    """The form of a store's keys. ``cls``: keys of exactly this class need no `take`; None if all do."""

    __slots__ = ("_has_one_type", "_keep", "_live", "_name", "_type", "cls")

    def __init__(self, builder: StoreBuilder, live: Callable[[], Iterable[Any]]) -> None:
        """``live`` gives the keys that the store has: a form lasts as long as there are any."""
        self.cls: type[Any] | None = None
        self._name, self._live = builder.name, live
        self._keep, _, self._has_one_type, _ = builder.kept
        self._type: Any = None

    def take(self, key: Any) -> Any:
        """Return a key as a checkpoint gives it back: equal to it in Python. Raises `DataError` if it does not belong."""
        try:
            kept = self._keep(key)
            if self._has_one_type:
                self.cls = key.__class__ if key.__class__ in _AT_A_GLANCE and kept is key else None
                return kept
            form = _type_of(kept)
        except DataError as error:
            message = f"store {self._name!r} cannot have the key {key!r}: {error}. Declare key=... or make another key"
            raise DataError(message) from error
        known = form if self._type is None else _common(self._type, form)
        if known is _NONE:
            # What was deleted left no trace in a checkpoint, so it counts no more here.
            known = form
            for other in self._live():
                known = _common(known, _type_of(other))
                if known is _NONE:
                    raise self._conflict(key, other)
        self._type = known
        self.cls = key.__class__ if key.__class__ in _AT_A_GLANCE and kept is key else None
        return kept

    def like_known(self, key: Any) -> Any:
        """Return a key as the store has it, if it is equal to one of another class: 1.0 is 1 where keys are integers."""
        if key.__class__ is self.cls:
            return key
        if key.__class__ in _NUMBERS and self._type in _NUMBERS and key == (own := self._type(key)):
            return own
        try:
            return self._keep(key)
        except DataError:
            return key

    def mark(self) -> Callable[[], None]:
        """Return what puts the form back as it is now."""
        form, cls = self._type, self.cls

        def put_back() -> None:
            self._type, self.cls = form, cls

        return put_back

    def _conflict(self, key: Any, other: Any) -> DataError:
        message = (
            f"store {self._name!r} has keys such as {other!r} ({type(other).__name__}), so {key!r} "
            f"({type(key).__name__}) cannot be one: declare key=... and convert, or use two stores"
        )
        return DataError(message)


_NONE = object()


def _type_of(key: Any) -> Any:
    """Return the classes that a key is made of; None for a null, which goes with any."""
    if isinstance(key, tuple):
        return (key.__class__, *(_type_of(item) for item in key))
    if key != key:  # noqa: PLR0124 - only "not a number" is not itself
        message = "'not a number' is not equal to itself"
        raise DataError(message)
    return None if key is None else key.__class__


def _common(one: Any, other: Any) -> Any:
    """Return the form that two keys have in common, or `_NONE`."""
    if one == other or other is None:
        return one
    if one is None:
        return other
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        parts = tuple(_common(first, second) for first, second in zip(one, other, strict=True))
        return _NONE if any(part is _NONE for part in parts) else parts
    return _NONE
