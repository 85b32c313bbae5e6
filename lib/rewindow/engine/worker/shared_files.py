"""Files that the tasks of a small sub-topology share: one per table, instead of one per task and table (ADR-109).

The tasks of a process run one after the other. The rows that one stages for a table are added to the table's file when it has
ended, so a task that starts again in the other execution leaves nothing there. A task with many rows has a file of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile
from rewindow.engine.worker.parquet_writer import ROW_GROUP, FileWriter

SHARED_ROWS = 16 * 1024
"""The most rows that a task adds to a shared file."""

GROUP_ROWS = 8 * 1024
"""A row group ends with the task that fills it up to this, so tasks that read a large file find their part of it."""


class SharedFiles:
    """The shared files of a sub-topology, by target."""

    def __init__(self, is_shareable: Callable[[str], bool]) -> None:
        """``is_shareable`` returns whether a file of the table in a folder may have rows of several tasks."""
        self._is_shareable = is_shareable
        self._known: dict[str, bool] = {}
        self._waiting: list[tuple[str, pa.Table, Callable[[], FileWriter]]] = []
        self._open: dict[str, FileWriter] = {}
        self._closed: list[StagedFile] = []

    def has(self, root: str) -> bool:
        """Return whether the files of the table in a folder may be shared."""
        if root not in self._known:
            self._known[root] = self._is_shareable(root)
        return self._known[root]

    def add(self, target: str, rows: pa.Table, new_file: Callable[[], FileWriter]) -> bool:
        """Take rows of the running task for the file of a target, unless they are too many. Return whether they were taken."""
        if rows.num_rows > SHARED_ROWS:
            return False
        self._waiting.append((target, rows, new_file))
        return True

    def forget(self) -> None:
        """Forget the rows of the running task, which starts again."""
        self._waiting.clear()

    def end_task(self) -> int:
        """Write the rows of a task that has ended; return their number. Raises `StorageError` (74) if that fails."""
        count = 0
        for target, rows, new_file in self._waiting:
            file = self._open.get(target)
            if file is None:
                file = self._open[target] = new_file()
            for batch in rows.to_batches():
                file.write(batch)
            file.end_group(GROUP_ROWS)
            count += rows.num_rows
            if file.rows >= ROW_GROUP:
                self._close(target)
        self._waiting.clear()
        return count

    def close(self) -> list[StagedFile]:
        """Make the files durable and return them."""
        for target in sorted(self._open):
            self._close(target)
        return self._closed

    def abort(self) -> None:
        """Delete the files that are not complete. The others are orphans, like those of the tasks that have ended."""
        for file in self._open.values():
            file.abort()

    def _close(self, target: str) -> None:
        staged = self._open.pop(target).close()
        if staged is not None:
            self._closed.append(staged)


_current: ContextVar[SharedFiles | None] = ContextVar("shared_files", default=None)


def shared_files() -> SharedFiles | None:
    """Return the files that the running task shares with others; None if it shares none."""
    return _current.get()


@contextmanager
def sharing(is_shareable: Callable[[str], bool]) -> Iterator[SharedFiles]:
    """Let the tasks that run inside the block share files. An exception in the block deletes them."""
    files = SharedFiles(is_shareable)
    token = _current.set(files)
    try:
        yield files
    except BaseException:
        files.abort()
        raise
    finally:
        _current.reset(token)
