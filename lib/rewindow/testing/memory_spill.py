"""A spill in memory for tests: no file, but the same rows in the same order."""

from __future__ import annotations

from collections.abc import Iterable

from rewindow.streams.state.spill import Span, SpilledRow


class MemorySpill:
    """See `streams.state.spill.Spill`. ``writes`` counts all rows ever written, to show that a store spilled."""

    writes = 0

    def __init__(self, store: str) -> None:
        self.store = store
        self._rows: list[dict[bytes, SpilledRow]] = [{}]

    def get(self, key: bytes) -> tuple[str, int] | None:
        """See `Spill`."""
        found = self._rows[0].get(key)
        return None if found is None else found[1:3]

    def write(self, rows: Iterable[SpilledRow]) -> None:
        """See `Spill`."""
        for row in rows:
            MemorySpill.writes += 1
            self._rows[0][row[0]] = row

    def delete(self, keys: Iterable[bytes]) -> None:
        """See `Spill`."""
        for key in keys:
            self._rows[0].pop(key, None)

    def page(self, span: Span, count: int, *, since: int = 0, snapshot: int = 0) -> list[SpilledRow]:
        """See `Spill`."""
        return [row for row in self._within(span, snapshot) if row[2] >= since][:count]

    def count(self, span: Span, since: int = 0) -> int:
        """See `Spill`."""
        return sum(row[2] >= since if since else not row[2] & 2 for row in self._within(span))

    def take_snapshot(self, span: Span) -> int:
        """See `Spill`."""
        self._rows.append({row[0]: (*row[:3], None) for row in self._within(span)})
        return len(self._rows) - 1

    def delete_span(self, span: Span) -> None:
        """See `Spill`."""
        self.delete([row[0] for row in self._within(span)])

    def due(self, until_ms: int, count: int, after: tuple[int, bytes] = (-1, b"")) -> list[SpilledRow]:
        """See `Spill`."""
        return [row for position, row in self._due(until_ms) if position > after][:count]

    def count_due(self, until_ms: int) -> int:
        """See `Spill`."""
        return len(self._due(until_ms))

    def delete_due(self, until_ms: int) -> None:
        """See `Spill`."""
        self.delete([key for (_, key), _ in self._due(until_ms)])

    def _due(self, until_ms: int) -> list[tuple[tuple[int, bytes], SpilledRow]]:
        rows = self._rows[0].values()
        return sorted(((row[3], row[0]), row) for row in rows if row[3] is not None and row[3] <= until_ms)

    def _within(self, span: Span, snapshot: int = 0) -> list[SpilledRow]:
        after, until = span
        return [
            row
            for key, row in sorted(self._rows[snapshot].items())
            if (after is None or key > after) and (until is None or key < until)
        ]
