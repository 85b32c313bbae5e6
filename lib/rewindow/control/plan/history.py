"""A sequence that only grows, as an immutable value: appending costs the same however long it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, overload

T = TypeVar("T")


class History(Sequence[T]):
    """An immutable sequence. `append` returns a longer one, which shares its values with this one.

    A tuple would be copied with each run: folding the ledger would take time quadratic in the number of runs.
    """

    __slots__ = ("_length", "_values")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Iterable[T] = ()) -> None:
        self._values = list(values)
        self._length = len(self._values)

    def append(self, value: T) -> History[T]:
        """Return this sequence with one more value at its end."""
        # The list is shared as long as this sequence is its longest user. Otherwise another value is in the next position.
        values = self._values if len(self._values) == self._length else self._values[: self._length]
        values.append(value)
        grown: History[T] = History()
        grown._values, grown._length = values, self._length + 1
        return grown

    def __len__(self) -> int:
        """Return the number of values."""
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        """Return the value at a position, or a tuple of some values."""
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            return tuple(self._values[start:stop:step]) if step > 0 else tuple(self)[index]
        at = index + self._length if index < 0 else index
        if not 0 <= at < self._length:
            message = f"position {index} of {self._length}"
            raise IndexError(message)
        return self._values[at]

    def __iter__(self) -> Iterator[T]:
        """Yield the values in order."""
        return islice(self._values, self._length)

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same values in the same order. A tuple may be equal."""
        if not isinstance(other, History | tuple):
            return NotImplemented
        return self._length == len(other) and all(
            mine is theirs or mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    def __repr__(self) -> str:
        """Return the values, for a person."""
        return f"History({list[Any](self)!r})"
