"""An immutable sequence to which values can be appended at constant cost, however long the sequence is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar, overload

T = TypeVar("T")


class MadeWhenUsed(Sequence[T]):
    """An immutable sequence that makes each value on first use."""

    @abstractmethod
    def at(self, position: int) -> T:
        """Return the value at a position."""

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        """Return the value at a position, or some values."""
        return [*map(self.at, range(*index.indices(len(self))))] if isinstance(index, slice) else self.at(index)


class Numbered(MadeWhenUsed[T]):
    """An immutable sequence whose values have numbers. It finds a value by its number without reading all values."""

    @abstractmethod
    def find(self, number: int) -> T | None:
        """Return the value with a number, or None."""

    @abstractmethod
    def numbers(self) -> Iterable[int]:
        """Return the numbers of the values, in the order of the sequence."""

    @abstractmethod
    def until(self, length: int) -> Numbered[T]:
        """Return the first ``length`` values."""


class History(Sequence[T]):
    """An immutable sequence. `append` returns a longer sequence that shares the values of this one.

    A tuple would be copied with each run, so folding the ledger would take time quadratic in the number of runs. The first
    values may come from a ``head``, an immutable sequence that makes each value on first use.
    """

    __slots__ = ("_length", "_values", "head")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Iterable[T] = (), *, head: Sequence[T] = ()) -> None:
        self.head = head
        self._values = list(values)
        self._length = len(self._values)

    def append(self, value: T) -> History[T]:
        """Return this sequence with one more value at its end."""
        # If another sequence has already appended to the shared list, that list cannot be extended for this one, so it is
        # copied.
        values = self._values if len(self._values) == self._length else self._values[: self._length]
        values.append(value)
        grown: History[T] = History(head=self.head)
        grown._values, grown._length = values, self._length + 1
        return grown

    def until(self, length: int) -> History[T]:
        """Return the first ``length`` values as a sequence, without reading them."""
        later = length - len(self.head)
        if later < 0:
            return History(head=self.head.until(length) if isinstance(self.head, Numbered) else self.head[:length])
        shorter: History[T] = History(head=self.head)
        shorter._values, shorter._length = self._values, min(later, self._length)
        return shorter

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self.head) + self._length

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        """Return the value at a position, or a tuple of some values."""
        before, length = len(self.head), len(self)
        if isinstance(index, slice):
            start, stop, step = index.indices(length)
            if step == 1 and start >= before:
                return tuple(self._values[start - before : max(start, stop) - before])
            return tuple(self[position] for position in range(start, stop, step))
        position = index + length if index < 0 else index
        if not 0 <= position < length:
            message = f"position {index} of {length}"
            raise IndexError(message)
        return self.head[position] if position < before else self._values[position - before]

    def __iter__(self) -> Iterator[T]:
        """Yield the values in order."""
        return chain(self.head, islice(self._values, self._length))

    def __reversed__(self) -> Iterator[T]:
        """Yield the values, the last one first."""
        return chain((self._values[position] for position in range(self._length - 1, -1, -1)), reversed(self.head))

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same values in the same order. A sequence may equal a tuple."""
        if not isinstance(other, History | tuple):
            return NotImplemented
        return len(self) == len(other) and all(
            mine is theirs or mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    def __repr__(self) -> str:
        """Return the values, for a person."""
        return f"History({list[Any](self)!r})"
