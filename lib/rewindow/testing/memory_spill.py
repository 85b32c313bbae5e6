"""What a buffer spills to in tests: no file, but the same rows in the same order as one."""

from __future__ import annotations

from collections.abc import Iterator


class MemorySpill:
    """See `core.spill.Spill`. ``puts`` counts what was ever put: so a test sees whether anything was spilled."""

    def __init__(self, store: str) -> None:
        self.store = store
        self.puts = 0
        self._rows: dict[bytes, tuple[int, str]] = {}

    def get(self, key: bytes) -> str | None:
        """See `Spill`."""
        return self._rows[key][1] if key in self._rows else None

    def put(self, key: bytes, time_ms: int, row: str) -> None:
        """See `Spill`."""
        self.puts += 1
        self._rows[key] = (time_ms, row)

    def delete(self, key: bytes) -> None:
        """See `Spill`."""
        self._rows.pop(key, None)

    def first(self) -> tuple[int, bytes] | None:
        """See `Spill`."""
        return min(((time_ms, key) for key, (time_ms, _) in self._rows.items()), default=None)

    def rows(self) -> Iterator[str]:
        """See `Spill`."""
        return (row for _, (_, row) in sorted(self._rows.items()))

    def clear(self) -> None:
        """See `Spill`."""
        self._rows.clear()

    def __len__(self) -> int:
        """See `Spill`."""
        return len(self._rows)
