"""The protocol of rows in memory when a store has several per key, or looks them up by time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Protocol


class GroupRows(Protocol):
    """Rows by row key, which is a key of the store and numbers that order the key's rows."""

    def position(self, row_key: Any) -> tuple[Any, tuple[int, ...]]:
        """Return the key and the numbers of a row key."""
        ...

    def due_at(self, row_key: Any, value: Any) -> int | None:
        """Return the time by which a row is looked up or expires; None if it never is."""
        ...

    def get(self, row_key: Any) -> Any:
        """Return the value of a row, or None."""
        ...

    def keys(self) -> Collection[Any]:
        """Return the keys that have rows."""
        ...

    def rows_of(self, keys: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Iterate over ``(row key, value)`` of keys; within a key by number."""
        ...

    def admit(self, row_key: Any, value: Any) -> None:
        """Add a row of the spill."""
        ...

    def clear(self) -> None:
        """Remove all rows."""
        ...

    def __len__(self) -> int: ...
