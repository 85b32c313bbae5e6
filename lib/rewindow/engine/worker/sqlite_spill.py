"""Spills in SQLite: one temporary database per store and task.

A database without a name is an unlinked file in the temporary folder. It disappears when the process ends, even if the
process is killed. No data is lost with it, because the changelog has the durable state.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rewindow.errors import LimitError
from rewindow.streams.state.spill import Span, SpilledRow

_CACHE_KIB = 32 * 1024
"""The size of SQLite's page cache for one file, in KiB."""
_COLUMNS = (
    "snapshot INTEGER, key BLOB, row TEXT NOT NULL, number INTEGER NOT NULL, due INTEGER, PRIMARY KEY (snapshot, key)"
)


class SqliteSpill:
    """See `streams.state.spill.Spill`. Raises `LimitError` (71) when the disk is full."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._file = sqlite3.connect("", isolation_level=None)
        for statement in (
            "PRAGMA temp_store = FILE",
            f"PRAGMA cache_size = -{_CACHE_KIB}",
            "PRAGMA journal_mode = OFF",
            "PRAGMA synchronous = OFF",
            f"CREATE TABLE spill ({_COLUMNS}) WITHOUT ROWID",
            "CREATE INDEX by_due ON spill (due, key) WHERE due IS NOT NULL",
            "BEGIN",
        ):
            self._file.execute(statement)
        self._snapshots = 0

    def get(self, key: bytes) -> tuple[str, int] | None:
        """See `Spill`."""
        row: tuple[str, int] | None = self._run(
            "SELECT row, number FROM spill WHERE snapshot = 0 AND key = ?", (key,)
        ).fetchone()
        return row

    def write(self, rows: Iterable[SpilledRow]) -> None:
        """See `Spill`."""
        self._run_many("INSERT OR REPLACE INTO spill VALUES (0, ?, ?, ?, ?)", rows)

    def delete(self, keys: Iterable[bytes]) -> None:
        """See `Spill`."""
        self._run_many("DELETE FROM spill WHERE snapshot = 0 AND key = ?", ((key,) for key in keys))

    def page(self, span: Span, count: int, *, since: int = 0, snapshot: int = 0) -> list[SpilledRow]:
        """See `Spill`."""
        where, bounds = _where(snapshot, span)
        return self._run(
            f"SELECT key, row, number, due FROM spill WHERE {where} AND number >= ? ORDER BY key LIMIT ?",  # noqa: S608
            (*bounds, since, count),
        ).fetchall()

    def count(self, span: Span, since: int = 0) -> int:
        """See `Spill`."""
        where, bounds = _where(0, span)
        (count,) = self._run(
            f"SELECT count(*) FROM spill WHERE {where} AND number >= ? AND (? > 0 OR number & 2 = 0)",  # noqa: S608
            (*bounds, since, since),
        ).fetchone()
        return int(count)

    def take_snapshot(self, span: Span) -> int:
        """See `Spill`."""
        self._snapshots += 1
        where, bounds = _where(0, span)
        self._run(
            f"INSERT INTO spill SELECT ?, key, row, number, NULL FROM spill WHERE {where}",  # noqa: S608
            (self._snapshots, *bounds),
        )
        return self._snapshots

    def delete_span(self, span: Span) -> None:
        """See `Spill`."""
        where, bounds = _where(0, span)
        self._run(f"DELETE FROM spill WHERE {where}", bounds)  # noqa: S608

    def due(self, until_ms: int, count: int, after: tuple[int, bytes] = (-1, b"")) -> list[SpilledRow]:
        """See `Spill`."""
        return self._run(
            "SELECT key, row, number, due FROM spill WHERE due <= ? AND (due, key) > (?, ?) ORDER BY due, key LIMIT ?",
            (until_ms, *after, count),
        ).fetchall()

    def count_due(self, until_ms: int) -> int:
        """See `Spill`."""
        (count,) = self._run("SELECT count(*) FROM spill WHERE due <= ?", (until_ms,)).fetchone()
        return int(count)

    def delete_due(self, until_ms: int) -> None:
        """See `Spill`."""
        self._run("DELETE FROM spill WHERE due <= ?", (until_ms,))

    def close(self) -> None:
        """Close the database, which deletes its file."""
        self._file.close()

    def _run(self, statement: str, values: tuple[Any, ...]) -> sqlite3.Cursor:
        try:
            return self._file.execute(statement, values)
        except sqlite3.OperationalError as error:
            raise self._limit_error(error) from error

    def _run_many(self, statement: str, values: Iterable[tuple[Any, ...]]) -> None:
        try:
            self._file.executemany(statement, values)
        except sqlite3.OperationalError as error:
            raise self._limit_error(error) from error

    def _limit_error(self, error: sqlite3.OperationalError) -> LimitError:
        return LimitError(
            "store-cannot-spill",
            "the store {store!r} does not fit in memory and cannot spill to a temporary file "
            "({reason}): free space in the temporary folder (TMPDIR), or raise limits: "
            "{{store_memory: BYTES}} in the job's file",
            store=self._store,
            reason=str(error),
        )


def _where(snapshot: int, span: Span) -> tuple[str, tuple[Any, ...]]:
    """Return the WHERE clause for a span of keys in a snapshot, and its parameters. Values are only in the parameters."""
    clause, values = "snapshot = ?", [snapshot, *(bound for bound in span if bound is not None)]
    for bound, comparison in zip(span, "><", strict=True):
        clause += "" if bound is None else f" AND key {comparison} ?"
    return clause, tuple(values)


@contextmanager
def spills() -> Iterator[tuple[Callable[[str], SqliteSpill], set[str]]]:
    """Yield a function that opens a store's spill, and the set of stores that have one. Close all spills at the end."""
    stores = set[str]()
    with ExitStack() as stack:

        def open_spill(store: str) -> SqliteSpill:
            spill = SqliteSpill(store)
            stack.callback(spill.close)
            stores.add(store)
            return spill

        yield open_spill, stores
