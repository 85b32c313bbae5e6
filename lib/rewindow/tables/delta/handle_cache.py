"""A cache of handles on Delta tables: opening a table that has not changed costs a few calls of `stat`.

Commit files never change, and whoever deletes a log deletes its newest commit too. So a cached handle is current if its
last commit is still the same file and has no successor. The log's folder is not listed, because it may have thousands of
commits. Where commits were cleaned out of the log, which begins with the oldest, a handle that may still have to read them is
discarded.

In a bucket one request tells whether there is a newer commit. That nobody replaces a log there while a command runs is
taken for granted: each look would cost another request.

A handle belongs to one caller until it is released, because a commit is checked against what its handle has read: two
callers sharing one would see each other's commits, and could commit a transaction twice. One released handle is kept for
each table.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rewindow.errors import StorageError
from rewindow.storage.locations import filesystem_of, is_uri, options_of

_KEPT = 32
"""The size of the cache: enough for the tables of a few jobs."""

_COMMIT = re.compile(r"\d{20}\.json")
_FileMark = tuple[int, int, int]
_IN_BUCKET: _FileMark = (0, 0, 0)


class Mark(NamedTuple):
    """A commit of a table: the table's path, its version, and the identity of the commit's file."""

    path: str
    version: int
    file: _FileMark


class _Cached(NamedTuple):
    """What a handle has read: the library's table object, its version, and the identity of that commit's file.

    ``changed_ns``: the time of the folder's last change before it was read. ``oldest``: the oldest commit that it had.
    """

    table: Any
    version: int
    mark: _FileMark
    changed_ns: int
    oldest: int
    transactions: dict[str, int | None]


_cached: dict[str, _Cached] = {}
"""By path, least recently released first."""


class Handle(DeltaTable):
    """A handle that returns to the cache when its last reference goes."""

    transactions: dict[str, int | None]
    """The versions of application ids that were asked for, as of what was read."""

    def __init__(self, path: str) -> None:
        """Read the table's log."""
        self.is_good = False
        changed_ns, oldest = _changed_ns(path), _oldest_commit(path)
        super().__init__(path, storage_options=options_of(path))
        self._begin(path, changed_ns, oldest)

    @classmethod
    def of(cls, path: str, cached: _Cached) -> Handle:
        """Return a handle that continues from what a cached one has read."""
        handle = cls.__new__(cls)
        vars(handle).update(_storage_options=options_of(path), _table=cached.table)  # the attributes of `DeltaTable`
        handle.path, handle.mark, handle.is_good = path, cached.mark, True
        handle.read_version, handle.changed_ns = cached.version, cached.changed_ns
        handle.oldest, handle.transactions = cached.oldest, cached.transactions
        return handle

    def update_incremental(self) -> None:
        """Read the commits since."""
        self.is_good = False
        changed_ns = _changed_ns(self.path)
        super().update_incremental()
        if self.version() > self.read_version:
            newer = _transactions(self.path, range(self.read_version + 1, self.version() + 1))
            known = {} if newer is None else {**self.transactions, **newer}
            self._begin(self.path, changed_ns, self.oldest)
            self.transactions = known
        self.is_good = True

    def transaction_version(self, app_id: str) -> int | None:
        """Return the version of an application id as of what was read."""
        if app_id not in self.transactions:
            self.transactions[app_id] = super().transaction_version(app_id)
        return self.transactions[app_id]

    def release(self) -> None:
        """Put what was read into the cache. This handle must not be used again."""
        if self.is_good and self.mark is not None and self._table.version() == self.read_version:
            while len(_cached) >= _KEPT:
                del _cached[next(iter(_cached))]
            _cached.pop(self.path, None)
            _cached[self.path] = _Cached(
                self._table, self.read_version, self.mark, self.changed_ns, self.oldest, self.transactions
            )
            del self._table
        self.is_good = False

    def __del__(self) -> None:
        """Release it."""
        with suppress(Exception):  # the interpreter may be ending
            self.release()

    def _begin(self, path: str, changed_ns: int, oldest: int) -> None:
        self.path, self.read_version, self.changed_ns, self.oldest = path, self.version(), changed_ns, oldest
        self.mark = _mark(path, self.read_version)
        self.transactions = {}
        self.is_good = True


def take(path: str) -> Handle:
    """Return a handle on the newest version of a table, for the caller alone.

    Raises as `DeltaTable` does, and `StorageError` (74) if a commit is an empty file.
    """
    cached = _cached.pop(path, None)
    if cached and is_uri(path):
        handle = Handle.of(path, cached)
        with suppress(DeltaError, OSError):  # on failure, read from the beginning
            if _is_in_bucket(path, cached.version + 1):
                handle.update_incremental()
            return handle
        handle.is_good = False
    elif cached and _mark(path, cached.version) == cached.mark:  # otherwise the table was replaced
        handle = Handle.of(path, cached)
        changed_ns = _changed_ns(path)
        is_newer = _has_newer(path, cached.version)
        if changed_ns == cached.changed_ns and not is_newer:
            return handle
        is_whole = _mark(path, cached.oldest) is not None
        if is_whole and not is_newer and _checkpointed(path) <= cached.version:
            handle.changed_ns = changed_ns
            return handle
        if is_whole and is_newer:
            with suppress(DeltaError, OSError):  # on failure, read from the beginning
                handle.update_incremental()
                return handle
        handle.is_good = False
    return Handle(path)


def release(table: DeltaTable, *, is_good: bool = True) -> None:
    """Release a handle. It is cached unless something failed with it."""
    if isinstance(table, Handle):
        table.is_good = table.is_good and is_good
        table.release()


def mark_of(table: DeltaTable | None) -> Mark | None:
    """Return the commit that a handle has read last; None if it is not one of the cache."""
    if not isinstance(table, Handle) or table.mark is None:
        return None
    return Mark(table.path, table.read_version, table.mark)


def is_still_there(mark: Mark) -> bool:
    """Return whether a table's log still has a commit, in the same file."""
    return _mark(mark.path, mark.version) == mark.file


def _is_in_bucket(path: str, version: int) -> bool:
    """Return whether a log in a bucket has a commit. Raises OSError if the bucket does not answer."""
    system, location = filesystem_of(path)
    try:
        system.open_input_file(f"{location}/_delta_log/{version:020}.json").close()
    except FileNotFoundError:
        return False
    return True


def _transactions(path: str, versions: range) -> dict[str, int | None] | None:
    """Return the transactions of some commits, which Delta would look for in the whole log; None if they cannot be read."""
    system, location = filesystem_of(path)
    found: dict[str, int | None] = {}
    try:
        for version in versions:
            with system.open_input_file(f"{location}/_delta_log/{version:020}.json") as file:
                lines = file.read().splitlines()
            for action in (json.loads(line) for line in lines if b'"txn"' in line):
                if "txn" in action:
                    found[action["txn"]["appId"]] = action["txn"]["version"]
    except (OSError, ValueError, KeyError):
        return None
    return found


def _oldest_commit(path: str) -> int:
    """Return the oldest version whose commit a log's folder has. Raises `StorageError` (74) if a commit is an empty file."""
    try:
        with os.scandir(f"{path}/_delta_log") as entries:
            commits = {int(entry.name[:20]): entry for entry in entries if _COMMIT.fullmatch(entry.name)}
            empty = [version for version in commits if commits[version].stat().st_size == 0]
    except OSError:  # no table
        return 0
    if empty:
        raise _empty(path, min(empty))
    return min(commits, default=0)


def _has_newer(path: str, version: int) -> bool:
    """Return whether a log has the next version. Raises `StorageError` (74) if it or one after it is an empty file."""
    newer = version
    while (found := _mark(path, newer + 1)) is not None:
        newer += 1
        if found[2] == 0:
            raise _empty(path, newer)
    return newer > version


def _empty(path: str, version: int) -> StorageError:
    """Return the error of an empty commit, as a power failure leaves behind. Delta would silently lose what it held."""
    message = (
        f"{path}/_delta_log/{version:020}.json is empty, probably after a crash of the machine. Restore the table's "
        "_delta_log from a copy"
    )
    return StorageError(message)


def _checkpointed(path: str) -> int:
    """Return the version of a log's last checkpoint; 0 for none."""
    try:
        return int(json.loads(Path(f"{path}/_delta_log/_last_checkpoint").read_bytes())["version"])
    except (OSError, ValueError, KeyError):
        return 0


def _changed_ns(path: str) -> int:
    """Return when the log's folder last changed; 0 if it does not exist."""
    try:
        return os.stat(f"{path}/_delta_log").st_mtime_ns  # noqa: PTH116 - called hundreds of times in a run
    except OSError:
        return 0


def _mark(path: str, version: int) -> _FileMark | None:
    """Return the identity of a commit's file; None if it does not exist. In a bucket all are taken to be there."""
    if is_uri(path):
        return _IN_BUCKET
    try:
        found = os.stat(f"{path}/_delta_log/{version:020}.json")  # noqa: PTH116 - called hundreds of times in a run
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
