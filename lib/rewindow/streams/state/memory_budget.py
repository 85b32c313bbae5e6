"""When the rows that a store has in memory move to its spill: by an estimate from a sample, checked now and then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from rewindow.streams.state.spill import Codec

SAMPLE = 32
"""Rows in a sample."""
_RESAMPLE = 8192
"""A sample is taken at least this often, in rows, because values may grow where they are. It takes about 0.1 ms."""
_TEXT_BYTES = 3
"""Approximate memory per character of a row's text."""


class Resident(Protocol):
    """Rows in memory that can move to a spill."""

    def count_resident(self) -> int:
        """Return how many rows are in memory."""
        ...

    def capacity(self) -> int:
        """Return about how many rows like these fit in memory."""
        ...

    def flush(self) -> None:
        """Move all rows to the spill."""
        ...


class MemoryBudget:
    """Flushes rows when memory is full, except while an attempt may still be rolled back."""

    def __init__(self, resident: Resident) -> None:
        self._resident = resident
        self.left = 1
        """Rows until the next check."""
        self._sample_at = 1
        """The number of rows in memory at which the next sample is taken: sampling costs much more than counting."""
        self._until_sample = self._stride = 0
        """Rows until a sample is due in any case, and rows between the last check and the next."""
        self.is_held = False

    def spend(self, rows: int = 1) -> None:
        """Count rows that come into memory; flush if memory is full."""
        self.left -= rows
        if self.left <= 0:
            self.check()

    def charge(self, rows: int) -> None:
        """Count rows that come into memory. Nothing is flushed before the next `spend`."""
        self.left -= rows

    def hold(self, *, is_held: bool) -> None:
        """Keep all rows in memory, or stop doing so."""
        self.is_held = is_held
        self.spend(0)

    def check(self) -> None:
        """Flush if memory is full. Due when ``left`` is 0 or less."""
        if self.is_held:
            return
        count = self._resident.count_resident()
        self._until_sample -= self._stride - self.left
        if count >= self._sample_at or self._until_sample <= 0:
            capacity = self._resident.capacity()
            if count >= capacity:
                self._resident.flush()
                count = 0
            self._sample_at = min(capacity, 2 * max(SAMPLE, count))
            self._until_sample = _RESAMPLE
        self.left = self._stride = max(1, min(self._sample_at - count, self._until_sample))


def capacity_for(memory_bytes: int, row_bytes: int, codec: Codec, sample: Iterable[tuple[Any, Any]]) -> int:
    """Return about how many rows fit in memory. ``row_bytes``: the overhead of a row besides its text."""
    texts = [len(codec.dump(key, value)) for key, value in sample if value is not None]
    return max(1, memory_bytes // (row_bytes + _TEXT_BYTES * sum(texts) // max(1, len(texts))))
