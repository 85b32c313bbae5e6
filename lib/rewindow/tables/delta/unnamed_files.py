"""The files below a table's folder that the table does not name: how long ago they left it, and who staged them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from deltalake import DeltaTable

from rewindow.control.gc import UNKNOWN_MS, Garbage
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.table_rows import table_files

_HOUR_MS = 3_600_000


class Unnamed:
    """The files of a folder that the table there does not name, from one listing."""

    def __init__(self, root: str, table: DeltaTable | None, suffix: str | tuple[str, ...], below: str = "") -> None:
        """Bind to a table's path, its handle (None: no table), and the files whose names end so, in one of its folders."""
        self._root, self._table, self._suffix, self._below = root, table, suffix, below
        self._facts: dict[str, Callable[[], tuple[int, int]]] = {}
        # Not a cache of a method: in a reference cycle, the handle would return to its own cache late (`handle`).
        self._left: dict[int, set[str]] = {}

    def paths(self) -> Iterator[str]:
        """Yield the path of each file, in order. Most are not garbage, so nothing else is read about them yet."""
        named = {file.path for file in table_files(self._root, self._table)} if self._table else set()
        start = f"{self._below}/" if self._below else ""
        for name, facts in Folder(f"{self._root}/{self._below}".rstrip("/")).listed():
            path = f"{start}{name}"
            if path not in named and path.endswith(self._suffix):
                self._facts[path] = facts
                yield path

    def is_left(self, path: str, keep_ms: int) -> bool:
        """Return whether one of these files left the table, or was written, at least ``keep_ms`` ago."""
        # It was written before it left the table, so most files are too young for a look into the log.
        facts = self._facts_of(path)
        is_old = facts is not None and facts[1] <= time.time_ns() // 1_000_000 - keep_ms
        if not is_old or self._table is None:
            return False
        if keep_ms not in self._left:
            self._left[keep_ms] = left_before(self._table, keep_ms)
        return path in self._left[keep_ms]

    def garbage(self, path: str, why: str) -> Iterator[Garbage]:
        """Yield one of these files as garbage, unless it is gone."""
        if (facts := self._facts_of(path)) is not None:
            yield Garbage(self._root, path, facts[0], why)

    def old_garbage(self, start: str, keep_ms: int, why: str) -> Iterator[Garbage]:
        """Yield the files whose names start so and that left the table ``keep_ms`` ago, and at least a day."""
        for path in self.paths():
            if path.rpartition("/")[2].startswith(start) and self.is_left(path, max(keep_ms, UNKNOWN_MS)):
                yield from self.garbage(path, why)

    def _facts_of(self, path: str) -> tuple[int, int] | None:
        try:
            return self._facts[path]()
        except FileNotFoundError:
            return None


def left_before(table: DeltaTable, keep_ms: int) -> set[str]:
    """Return the files below a table that it does not name: removed or written at least ``keep_ms`` ago."""
    hours = -(-keep_ms // _HOUR_MS)
    paths = table.vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False, full=True)
    return {unquote(path) for path in paths}
