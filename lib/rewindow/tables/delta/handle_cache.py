"""Handles on Delta tables that outlive a look: a fresh look at a table which nobody has written since costs three `stat`.

What is in a commit's file never changes, and who takes a log away takes its newest commit away too. So a log has no news
for a handle if its last commit is still the same file, and the folder is as it was or names nothing newer. Where commits
were cleaned out, a handle that may still want to read them is of no use.

A handle is its taker's alone until the taker lets go of it, for a commit is judged by what its handle has read: two that
shared one would see each other's news, and commit a transaction twice. What comes back is kept, one for each table.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rewindow.errors import StorageError

_KEPT = 32
"""Handles that wait: the tables of a few jobs."""

_COMMIT = re.compile(r"\d{20}\.json")
_Mark = tuple[int, int, int]


class _Waiting(NamedTuple):
    """What a handle has read: the table as Delta's library holds it, its version, and what tells that commit's file.

    ``listed_ns``: when the log's folder had changed last before it was read. ``commits``: how many it named.
    """

    table: Any
    version: int
    mark: _Mark
    listed_ns: int
    commits: int
    transactions: dict[str, int | None]


_waiting: dict[str, _Waiting] = {}
"""By path; the one that has waited longest comes first."""


class Handle(DeltaTable):
    """A handle that waits for the next taker when nobody holds it any more."""

    def __init__(self, path: str) -> None:
        """Read the table's log."""
        self.is_good = False
        listed_ns, commits = _listed_ns(path), _commits(path)
        super().__init__(path)
        self._begin(path, listed_ns, commits)

    @classmethod
    def of(cls, path: str, waiting: _Waiting) -> Handle:
        """Return a handle that goes on from what another had read."""
        handle = cls.__new__(cls)
        vars(handle).update(_storage_options=None, _table=waiting.table)  # what `DeltaTable` has
        handle.path, handle.mark, handle.is_good = path, waiting.mark, True
        handle.read_version, handle.listed_ns = waiting.version, waiting.listed_ns
        handle.commits, handle.transactions = waiting.commits, waiting.transactions
        return handle

    def update_incremental(self) -> None:
        """Read what was committed since."""
        self.is_good = False
        listed_ns, commits = _listed_ns(self.path), _commits(self.path, self.read_version)
        super().update_incremental()
        self._begin(self.path, listed_ns, commits)

    def transaction_version(self, app_id: str) -> int | None:
        """Return the version of an application id as of what was read."""
        if app_id not in self.transactions:
            self.transactions[app_id] = super().transaction_version(app_id)
        return self.transactions[app_id]

    def let_go(self) -> None:
        """Keep what was read for the next one; this handle is none any more."""
        if self.is_good and self.mark is not None and self._table.version() == self.read_version:
            while len(_waiting) >= _KEPT:
                del _waiting[next(iter(_waiting))]
            _waiting.pop(self.path, None)
            _waiting[self.path] = _Waiting(
                self._table, self.read_version, self.mark, self.listed_ns, self.commits, self.transactions
            )
            del self._table
        self.is_good = False

    def __del__(self) -> None:
        """Let go of it."""
        with suppress(Exception):  # the interpreter may be ending
            self.let_go()

    def _begin(self, path: str, listed_ns: int, commits: list[int]) -> None:
        self.path, self.read_version, self.listed_ns = path, self.version(), listed_ns
        self.commits = len(commits) + self.read_version - (commits[-1] if commits else self.read_version)
        self.mark = _mark(path, self.read_version)
        self.transactions: dict[str, int | None] = {}
        self.is_good = True


def take(path: str) -> Handle:
    """Return a handle on the newest version of a table of this machine; it is the caller's alone.

    Raises as `DeltaTable` does, and `StorageError` (74) if a commit is an empty file.
    """
    waiting = _waiting.pop(path, None)
    if waiting and _mark(path, waiting.version) == waiting.mark:  # or it is another table by now
        handle = Handle.of(path, waiting)
        listed_ns = _listed_ns(path)
        if listed_ns == waiting.listed_ns and _mark(path, waiting.version + 1) is None:
            return handle
        commits = _commits(path, waiting.version)
        newer = [version for version in commits if version > waiting.version]
        is_whole = len(commits) - len(newer) >= waiting.commits
        if is_whole and not newer:
            handle.listed_ns = listed_ns
            return handle
        if is_whole and newer == list(range(waiting.version + 1, newer[-1] + 1)):
            with suppress(DeltaError, OSError):  # what cannot be read on is read from the beginning
                handle.update_incremental()
                return handle
        handle.is_good = False
    return Handle(path)


def let_go(table: DeltaTable, *, is_good: bool = True) -> None:
    """Give a handle up; one with which something failed is not kept."""
    if isinstance(table, Handle):
        table.is_good = table.is_good and is_good
        table.let_go()


def _commits(path: str, known: int = -1) -> list[int]:
    """Return the versions whose commits a log's folder has. Those up to ``known`` were looked at before.

    Raises `StorageError` (74) if one is an empty file: a machine that lost its power leaves such. Delta reads it as a
    commit of nothing, and what it held would be forgotten without a word.
    """
    try:
        with os.scandir(f"{path}/_delta_log") as entries:
            commits = {int(entry.name[:20]): entry for entry in entries if _COMMIT.fullmatch(entry.name)}
            empty = [version for version in commits if version > known and commits[version].stat().st_size == 0]
    except OSError:  # no table
        return []
    if empty:
        message = (
            f"{path}/_delta_log/{min(empty):020}.json is empty, as a crash of the machine leaves files. Put its _delta_log "
            "back from a copy"
        )
        raise StorageError(message)
    return sorted(commits)


def _listed_ns(path: str) -> int:
    """Return when the log's folder changed last; 0 if it is not there."""
    try:
        return Path(f"{path}/_delta_log").stat().st_mtime_ns
    except OSError:
        return 0


def _mark(path: str, version: int) -> _Mark | None:
    """Return what tells a commit's file from any other; None if it is not there."""
    try:
        found = Path(f"{path}/_delta_log/{version:020}.json").stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
