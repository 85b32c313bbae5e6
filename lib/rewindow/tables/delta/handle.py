"""Handles on Delta tables. A handle reads new commits cheaply, and goes back to a cache when its caller has finished.

Nearly all commits are appends, and a handle reads appends itself. The delta-rs object in the handle reads them only when that
object is needed, because its work grows with the length of the log and the number of files (ADR-124). For a bucket, a handle
reads a local copy of the log's end (ADR-126). There, delta-rs opens the table itself only to write and to list files.

Opening a table that has not changed costs a few calls of `stat`. Commit files never change, and whoever deletes a log also
deletes its newest commit. So a cached handle is current if its last commit is still the same file and has no successor. The
log's folder is not listed, because it may have thousands of commits. Delta removes old commits, oldest first. A handle may
have to read the log again from the checkpoint with which it began. So it is discarded when the commit of that checkpoint is
gone.

In a bucket, one request shows whether there is a newer commit. There, a handle does not check whether the log was replaced
while a command runs, because each check would cost another request.

A handle belongs to one caller until it is released, because a commit is checked against what its handle has read. If two
callers shared a handle, each would see the other's commits, and they could commit a transaction twice. For each table, one
released handle is kept.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError
from deltalake.table import Metadata, ProtocolVersions

from rewindow.storage.locations import is_uri, options_of
from rewindow.tables.delta.broken_log import checkpointed, unreadable_log
from rewindow.tables.delta.delta_log import (
    AppendCommit,
    FileMark,
    LogCopy,
    changed_at,
    file_mark,
    has_newer,
    is_in_bucket,
    oldest_commit,
    read_appends,
    transactions_of,
)

_MOST_KEPT = 32
"""Handles of at most this many tables are kept. That is enough for a few jobs."""
_MOST_AHEAD = 64
"""A handle itself reads at most this many commits; then delta-rs reads them, too."""


class Cached(NamedTuple):
    """What a handle has read: the delta-rs object, the version, and the identity of that version's commit file.

    ``changed_ns``: when the log's folder had last changed before the log was read (epoch ns). ``oldest``: the version of the
    oldest commit that delta-rs may still read. ``ahead``: the commits that the delta-rs object has not read yet.
    ``transactions``, ``log_copy``, ``files``, ``new_files``: see `Handle`.
    """

    table: Any
    version: int
    mark: FileMark
    changed_ns: int
    oldest: int
    transactions: dict[str, int | None]
    ahead: list[AppendCommit]
    log_copy: LogCopy | None
    files: dict[str, Any] | None
    new_files: list[dict[str, Any]]


cached: dict[str, Cached] = {}
"""Maps the path of a table to what its last released handle has read. The least recently released comes first."""


class Handle(DeltaTable):
    """A handle that goes back to the cache when its last reference is deleted."""

    read_version: int
    transactions: dict[str, int | None]
    """Maps each application id to its version at ``read_version``. It has the ids in commits that were read, and ids that
    were looked up."""
    log_copy: LogCopy | None
    """The copy that delta-rs reads in place of a log in a bucket; None if delta-rs reads the log itself."""
    files: dict[str, Any] | None
    """The table's files by path, from `table_rows`; None if not computed yet, or after a commit that is not an append."""
    new_files: list[dict[str, Any]]
    """The ``add`` actions of the commits since ``files`` was computed."""

    def __init__(self, path: str) -> None:
        """Read the table's log."""
        self.is_good, self.log_copy = False, None
        changed_ns, oldest = changed_at(path), max(oldest_commit(path), checkpointed(path))
        if is_uri(path) and (log_copy := LogCopy(path)).begin():
            # If the copy cannot be opened, the log itself is opened below, so that the error is about the log.
            with suppress(DeltaError):
                super().__init__(log_copy.root)
                self.log_copy = log_copy
        if self.log_copy is None:
            super().__init__(path, storage_options=options_of(path))
        self._begin(path, changed_ns, oldest)

    @classmethod
    def of(cls, path: str, read: Cached) -> Handle:
        """Return a handle that continues where a released handle ended: ``read`` is what that handle has read."""
        handle = cls.__new__(cls)
        vars(handle).update(_storage_options=options_of(path), _raw=read.table, _ahead=read.ahead)
        handle.path, handle.mark, handle.is_good = path, read.mark, True
        handle.read_version, handle.changed_ns = read.version, read.changed_ns
        handle.oldest, handle.transactions, handle.log_copy = read.oldest, read.transactions, read.log_copy
        handle.files, handle.new_files = read.files, read.new_files
        return handle

    @property
    def _table(self) -> Any:
        """The delta-rs object at this handle's version. Methods of `DeltaTable` that this class does not override use it."""
        if self.log_copy is not None:
            self._raw, self._ahead, self.log_copy = self._from_beginning(), list[AppendCommit](), None
        return self._reader

    @_table.setter
    def _table(self, table: Any) -> None:
        self._raw, self._ahead = table, list[AppendCommit]()

    @property
    def _reader(self) -> Any:
        """The delta-rs object of the table, or of the copy of its log, at this handle's version."""
        if self._ahead:
            self._catch_up()
        return self._raw

    def _from_beginning(self) -> Any:
        """Return a new delta-rs object for this version of the table."""
        return vars(DeltaTable(self.path, self.read_version, options_of(self.path)))["_table"]

    def _catch_up(self) -> None:
        """Let the delta-rs object read up to this handle's version. Raises `StorageError` (74) if it cannot."""
        was_good, self.is_good = self.is_good, False
        try:
            # If this fails, a new object is opened below.
            with suppress(DeltaError, OSError):
                self._raw.update_incremental()
            # The object may also have read newer commits of other writers.
            if self._raw.version() != self.read_version:
                self._raw, self.log_copy = self._from_beginning(), None
        except (DeltaError, OSError) as error:
            raise unreadable_log(self.path, error) from error
        self._ahead.clear()
        self.is_good = was_good

    def version(self) -> int:
        """Return the version that this handle has read."""
        return int(self._raw.version()) + len(self._ahead)

    def metadata(self) -> Metadata:
        """Return the table's metadata. Appends do not change it."""
        return Metadata(self._raw)

    def schema(self) -> DeltaSchema:
        """Return the table's schema. Appends do not change it."""
        schema: DeltaSchema = self._raw.schema
        return schema

    def protocol(self) -> ProtocolVersions:
        """Return the table's protocol. Appends do not change it."""
        return ProtocolVersions(*self._raw.protocol_versions())

    def get_add_actions(self, flatten: bool = False) -> Any:  # noqa: FBT001, FBT002 - as in the library
        """Return the table's files as the log describes them."""
        return self._reader.get_add_actions(flatten)

    def write_checkpoint(self) -> None:
        """Write a checkpoint of the newest version to a bucket. Raises as `DeltaTable` does, and OSError."""
        self.update_incremental()
        if self.log_copy is None:
            self.create_checkpoint()
        else:
            self._reader.create_checkpoint()
            self.log_copy.publish_checkpoint(self.read_version)

    def update_incremental(self) -> None:
        """Read the commits after this handle's version."""
        self.is_good = False
        changed_ns = changed_at(self.path)
        if self.log_copy is not None:
            self.log_copy.read_on(self.read_version + 1)
        appends = None if is_uri(self._log_root) else read_appends(self._log_root, self.read_version + 1)
        if appends is None or len(self._ahead) + len(appends) > _MOST_AHEAD:
            self._read_on(changed_ns)
        else:
            self._ahead += appends
            for append in appends:
                self.transactions.update(append.transactions)
                self.new_files += append.adds if self.files is not None else ()
            self.read_version, self.changed_ns = self.read_version + len(appends), changed_ns
            self.mark = file_mark(self.path, self.read_version)
        self.is_good = True

    def _read_on(self, changed_ns: int) -> None:
        """Let delta-rs read the commits after this handle's version."""
        before = self.read_version
        self._raw.update_incremental()
        self._ahead = []
        if self._raw.version() > before:
            newer = transactions_of(self._log_root, range(before + 1, self._raw.version() + 1))
            transactions = {} if newer is None else {**self.transactions, **newer}
            self._begin(self.path, changed_ns, self.oldest)
            self.transactions = transactions

    @property
    def _log_root(self) -> str:
        """The folder or URI of the table, or the folder of the copy of its log."""
        return self.path if self.log_copy is None else self.log_copy.root

    def transaction_version(self, app_id: str) -> int | None:
        """Return the version of the last transaction (Delta ``txn``) of an application id, as of this handle's table version.

        Return None if there is none.
        """
        # `transactions` has the ids in all commits ahead. So for any other id, the delta-rs object knows the last version.
        if app_id not in self.transactions:
            self.transactions[app_id] = self._raw.transaction_version(app_id)
        return self.transactions[app_id]

    def release(self) -> None:
        """Put what this handle has read into the cache. The handle must not be used again."""
        has_log = self.log_copy is None or self.log_copy.is_there
        if self.is_good and has_log and self.mark is not None and self.version() == self.read_version:
            while len(cached) >= _MOST_KEPT:
                del cached[next(iter(cached))]
            cached.pop(self.path, None)
            read = (self._raw, self.read_version, self.mark, self.changed_ns, self.oldest)
            cached[self.path] = Cached(*read, self.transactions, self._ahead, self.log_copy, self.files, self.new_files)
            del self._raw
        self.is_good = False

    def __del__(self) -> None:
        """Release the handle."""
        # If the interpreter is ending, names that `release` uses may be gone.
        with suppress(Exception):
            self.release()

    def _begin(self, path: str, changed_ns: int, oldest: int) -> None:
        self.path, self.read_version, self.changed_ns, self.oldest = path, self.version(), changed_ns, oldest
        self.mark = file_mark(path, self.read_version)
        self.transactions, self.files, self.new_files = {}, None, []
        self.is_good = True


class Mark(NamedTuple):
    """A commit of a table: the table's path, its version, and the identity of the commit's file."""

    path: str
    version: int
    file: FileMark


def take(path: str, *, may_lag: bool = False) -> Handle:
    """Return a handle on the newest version of a table, for the caller alone.

    ``may_lag``: whether, in a bucket, a version that this process has read before is enough. A commit through the handle
    fails if that version is not the newest.

    Raises as `DeltaTable` does, and `StorageError` (74) if a commit is an empty file.
    """
    read = cached.pop(path, None)
    if read and is_uri(path):
        handle = Handle.of(path, read)
        # If this fails, the table is read from the beginning.
        with suppress(DeltaError, OSError):
            if read.log_copy is not None and may_lag:
                return handle
            if read.log_copy is not None or is_in_bucket(path, read.version + 1):
                handle.update_incremental()
            return handle
        handle.is_good = False
    elif read and file_mark(path, read.version) == read.mark:
        # The last commit is still the same file, so the table was not replaced.
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
            # If this fails, the table is read from the beginning.
            with suppress(DeltaError, OSError):
                handle.update_incremental()
                return handle
        handle.is_good = False
    return Handle(path)


def release(table: DeltaTable, *, is_good: bool = True) -> None:
    """Release a handle. What the handle has read is cached, unless an operation with it has failed."""
    if isinstance(table, Handle):
        table.is_good = table.is_good and is_good
        table.release()


def mark_of(table: DeltaTable | None) -> Mark | None:
    """Return the last commit that a handle has read; None if that commit or its file is unknown."""
    if not isinstance(table, Handle) or table.mark is None:
        return None
    return Mark(table.path, table.read_version, table.mark)


def is_still_there(mark: Mark) -> bool:
    """Return whether a table's log still has a commit, in the same file."""
    return file_mark(mark.path, mark.version) == mark.file
