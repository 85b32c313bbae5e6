"""What a store puts on its shelf in tests: no file, but the same rows in the same order as one."""

from __future__ import annotations

from collections.abc import Iterable

from rewindow.core.shelf import Row


class MemoryShelf:
    """See `core.shelf.Shelf`. ``writes`` counts what was ever written: so a test sees whether anything was."""

    writes = 0

    def __init__(self, store: str) -> None:
        self.store = store
        self._rows: list[dict[bytes, Row]] = [{}]

    def get(self, key: bytes) -> tuple[str, int] | None:
        """See `Shelf`."""
        found = self._rows[0].get(key)
        return None if found is None else found[1:]

    def write(self, rows: Iterable[Row]) -> None:
        """See `Shelf`."""
        for row in rows:
            MemoryShelf.writes += 1
            self._rows[0][row[0]] = row

    def forget(self, keys: Iterable[bytes]) -> None:
        """See `Shelf`."""
        for key in keys:
            self._rows[0].pop(key, None)

    def page(self, after: bytes | None, count: int, *, since: int = 0, aside: int = 0) -> list[Row]:
        """See `Shelf`."""
        rows = [row for key, row in sorted(self._rows[aside].items()) if after is None or key > after]
        return [row for row in rows if row[2] >= since][:count]

    def count(self, since: int = 0) -> int:
        """See `Shelf`."""
        return sum(row[2] >= since if since else not row[2] & 2 for row in self._rows[0].values())

    def set_aside(self, after: bytes | None) -> int:
        """See `Shelf`."""
        self._rows.append({key: row for key, row in self._rows[0].items() if after is None or key > after})
        return len(self._rows) - 1
