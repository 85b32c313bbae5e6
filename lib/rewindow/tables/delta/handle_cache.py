"""A cache of handles on Delta tables: opening a table that has not changed costs a few calls of `stat`.

Commit files never change, and deleting a log deletes its newest commit too. So a cached handle is current if its last commit is
still the same file and has no successor. The log's folder is not listed, because it may have thousands of commits. Delta removes
old commits, oldest first: a handle is discarded when the one of the checkpoint that it began with is gone, because it may still
have to read from there.

In a bucket one request tells whether there is a newer commit. A log there is assumed not to be replaced while a command
runs: each look would cost another request.

A handle belongs to one caller until it is released, because a commit is checked against what its handle has read: two
callers sharing one would see each other's commits, and could commit a transaction twice. One released handle is kept for
each table.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rewindow.storage.locations import is_uri
from rewindow.tables.delta.handle import Handle, cached
from rewindow.tables.delta.log_folder import FileMark, changed_at, checkpointed, file_mark, has_newer, is_in_bucket


class Mark(NamedTuple):
    """A commit of a table: the table's path, its version, and the identity of the commit's file."""

    path: str
    version: int
    file: FileMark


def take(path: str, *, may_lag: bool = False) -> Handle:
    """Return a handle on the newest version of a table, for the caller alone.

    ``may_lag``: in a bucket, a version that this process has read will do, because a commit after an older one fails.

    Raises as `DeltaTable` does, and `StorageError` (74) if a commit is an empty file.
    """
    read = cached.pop(path, None)
    if read and is_uri(path):
        handle = Handle.of(path, read)
        with suppress(DeltaError, OSError):  # on failure, read from the beginning
            if read.log_copy is not None and may_lag:
                return handle
            if read.log_copy is not None or is_in_bucket(path, read.version + 1):
                handle.update_incremental()
            return handle
        handle.is_good = False
    elif read and file_mark(path, read.version) == read.mark:  # otherwise the table was replaced
        handle = Handle.of(path, read)
        changed_ns = changed_at(path)
        is_newer = has_newer(path, read.version)
        if changed_ns == read.changed_ns and not is_newer:
            return handle
        is_whole = file_mark(path, read.oldest) is not None
        if is_whole and not is_newer and checkpointed(path) <= read.version:
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
    return file_mark(mark.path, mark.version) == mark.file
