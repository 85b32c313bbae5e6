"""What a store puts on its shelf in tests: no file, but the same rows in the same order as one."""

from __future__ import annotations

from collections.abc import Iterable

from rewindow.streams.state.spill import Row, Span


class MemoryShelf:
    """See `core.shelf.TimedShelf`. ``writes`` counts what was ever written: so a test sees whether anything was."""

    writes = 0

    def __init__(self, store: str) -> None:
        self.store = store
        self._rows: list[dict[bytes, Row]] = [{}]

    def get(self, key: bytes) -> tuple[str, int] | None:
        """See `Shelf`."""
        found = self._rows[0].get(key)
        return None if found is None else found[1:3]

    def write(self, rows: Iterable[Row]) -> None:
        """See `Shelf`."""
        for row in rows:
            MemoryShelf.writes += 1
            self._rows[0][row[0]] = row

    def forget(self, keys: Iterable[bytes]) -> None:
        """See `Shelf`."""
        for key in keys:
            self._rows[0].pop(key, None)

    def page(self, span: Span, count: int, *, since: int = 0, aside: int = 0) -> list[Row]:
        """See `Shelf`."""
        return [row for row in self._within(span, aside) if row[2] >= since][:count]

    def count(self, span: Span, since: int = 0) -> int:
        """See `Shelf`."""
        return sum(row[2] >= since if since else not row[2] & 2 for row in self._within(span))

    def set_aside(self, span: Span) -> int:
        """See `Shelf`."""
        self._rows.append({row[0]: (*row[:3], None) for row in self._within(span)})
        return len(self._rows) - 1

    def cut_out(self, span: Span) -> None:
        """See `Shelf`."""
        self.forget([row[0] for row in self._within(span)])

    def due(self, until_ms: int, count: int, after: tuple[int, bytes] = (-1, b"")) -> list[Row]:
        """See `TimedShelf`."""
        return [row for place, row in self._due(until_ms) if place > after][:count]

    def count_due(self, until_ms: int) -> int:
        """See `TimedShelf`."""
        return len(self._due(until_ms))

    def forget_due(self, until_ms: int) -> None:
        """See `TimedShelf`."""
        self.forget([key for (_, key), _ in self._due(until_ms)])

    def _due(self, until_ms: int) -> list[tuple[tuple[int, bytes], Row]]:
        rows = self._rows[0].values()
        return sorted(((row[3], row[0]), row) for row in rows if row[3] is not None and row[3] <= until_ms)

    def _within(self, span: Span, aside: int = 0) -> list[Row]:
        after, until = span
        return [
            row
            for key, row in sorted(self._rows[aside].items())
            if (after is None or key > after) and (until is None or key < until)
        ]
