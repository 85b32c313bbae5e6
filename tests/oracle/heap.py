"""A priority queue with defined ties, or with those of Java's binary heap (`java.util.PriorityQueue`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Queue(Generic[T]):
    """Returns the smallest entry by ``order``. Ties go to the smallest ``tie``; with ``is_java``, Java's heap decides."""

    def __init__(self, order: Callable[[T], int], tie: Callable[[T], int], *, is_java: bool) -> None:
        self.entries: list[T] = []
        self._order = order
        self._tie = tie
        self._is_java = is_java

    def push(self, entry: T) -> None:
        """Add an entry."""
        self.entries.append(entry)
        if not self._is_java:
            return
        heap, at = self.entries, len(self.entries) - 1
        while at > 0 and self._order(entry) < self._order(heap[(at - 1) // 2]):
            heap[at] = heap[(at - 1) // 2]
            at = (at - 1) // 2
        heap[at] = entry

    def first(self) -> T | None:
        """Return the entry that `pop` would remove."""
        if not self.entries:
            return None
        return self.entries[0] if self._is_java else min(self.entries, key=lambda e: (self._order(e), self._tie(e)))

    def pop(self) -> T:
        """Remove and return the smallest entry."""
        first = self.first()
        assert first is not None
        if not self._is_java:
            self.entries.remove(first)
            return first
        heap = self.entries
        last = heap.pop()
        if not heap:
            return first
        at, half = 0, len(heap) // 2
        while at < half:
            child = 2 * at + 1
            if child + 1 < len(heap) and self._order(heap[child]) > self._order(heap[child + 1]):
                child += 1
            if self._order(last) <= self._order(heap[child]):
                break
            heap[at] = heap[child]
            at = child
        heap[at] = last
        return first
