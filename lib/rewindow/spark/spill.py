"""The local files of buffers that are larger than their memory: one temporary SQLite database a store and task (D15).

A database without a name lies in the machine's temporary folder, has no name there either, and is gone with the
process, however that ends. It is a cache: what counts is in the changelog.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rewindow.errors import LimitError
from rewindow.spark.shelf import SqliteShelf

_MEMORY_KIB = 2048
"""How much of a file SQLite may keep in memory."""


class SqliteSpill:
    """See `core.spill.Spill`. Raises `LimitError` (71) when the disk is full."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._file = sqlite3.connect("", isolation_level=None)
        for statement in (
            "PRAGMA temp_store = FILE",
            f"PRAGMA cache_size = -{_MEMORY_KIB}",
            "PRAGMA journal_mode = OFF",
            "PRAGMA synchronous = OFF",
            "CREATE TABLE held (key BLOB PRIMARY KEY, time INTEGER NOT NULL, row TEXT NOT NULL) WITHOUT ROWID",
            "CREATE INDEX by_time ON held (time, key)",
            "BEGIN",
        ):
            self._file.execute(statement)
        self._rows = 0

    def get(self, key: bytes) -> str | None:
        """See `Spill`."""
        found = self._one("SELECT row FROM held WHERE key = ?", key)
        return None if found is None else str(found[0])

    def put(self, key: bytes, time_ms: int, row: str) -> None:
        """See `Spill`."""
        is_new = self._one("SELECT 1 FROM held WHERE key = ?", key) is None
        self._run("INSERT OR REPLACE INTO held (key, time, row) VALUES (?, ?, ?)", key, time_ms, row)
        self._rows += is_new

    def delete(self, key: bytes) -> None:
        """See `Spill`."""
        self._rows -= self._run("DELETE FROM held WHERE key = ?", key).rowcount

    def first(self) -> tuple[int, bytes] | None:
        """See `Spill`."""
        if not self._rows:
            return None
        found = self._one("SELECT time, key FROM held ORDER BY time, key LIMIT 1")
        return None if found is None else (found[0], found[1])

    def rows(self) -> Iterator[str]:
        """See `Spill`."""
        return (row for (row,) in self._run("SELECT row FROM held ORDER BY key"))

    def clear(self) -> None:
        """See `Spill`."""
        self._run("DELETE FROM held")
        self._rows = 0

    def __len__(self) -> int:
        """See `Spill`."""
        return self._rows

    def close(self) -> None:
        """Give the file back to the machine."""
        self._file.close()

    def _one(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._run(statement, *values).fetchone()
        return found

    def _run(self, statement: str, *values: object) -> sqlite3.Cursor:
        try:
            return self._file.execute(statement, values)
        except sqlite3.OperationalError as error:
            message = (
                f"the buffer {self._store!r} cannot spill to a temporary file ({error}): free space in the temporary "
                "folder (TMPDIR), or raise the buffer's bound"
            )
            raise LimitError(message) from error


class Spills:
    """The files of one task."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def open(self, store: str) -> SqliteSpill:
        """Open the file of a store; it is closed with the task."""
        spill = SqliteSpill(store)
        self._stack.callback(spill.close)
        return spill

    def shelf(self, store: str) -> SqliteShelf:
        """Open the shelf of a store; it is closed with the task."""
        shelf = SqliteShelf(store)
        self._stack.callback(shelf.close)
        return shelf


@contextmanager
def spills() -> Iterator[Spills]:
    """Give what opens files, and close them all."""
    with ExitStack() as stack:
        yield Spills(stack)
