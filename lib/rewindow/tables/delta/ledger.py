"""The ledger: an append-only table of rows, numbered 1, 2, 3 ... for each job or feed. Appending a row makes a decision.

An append is a compare-and-set. The writer gives its row the next free number. Delta rejects the commit if another writer has
appended to the same job or feed first. Then the ledger is read again. The row with that number shows whose append landed.
Return values and exceptions of the commit decide nothing: a commit whose answer is lost looks like a failure, and a skipped
write looks like a success.

A file of a ledger never changes, and its name is the digest of its bytes. The stored fold is a file beside the ledger's
files. It contains the state that results from the rows in some of these files (ADR-127). It names the files, so it is never
taken for the fold of another ledger, of an older copy or of changed rows. A stored fold that is missing, damaged, of another
version or of other files is not used; all rows are read instead.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, repeat

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.stored_rows import StoredFold, StoredRows, identity, known_part
from rewindow.errors import InvariantError, RewindowError, StorageError, not_committed
from rewindow.storage.locations import is_uri
from rewindow.tables.delta.commit import check_writable, commit_actions, removal
from rewindow.tables.delta.create_table import SHORT_LOG, check_store, create_table
from rewindow.tables.delta.files import FileFacts, Folder, digest_of
from rewindow.tables.delta.handle import Mark, mark_of, release
from rewindow.tables.delta.open_table import open_table, table_path
from rewindow.tables.delta.table_rows import TableFile, kept_by_merge, table_files
from rewindow.tables.shared.ledger import (
    Bodies,
    check_numbered,
    load_body,
    new_token,
    not_next,
    packed,
    stored_body,
    unpacked,
)
from rewindow.tables.shared.paths import LANDINGS, safe_name

_ATTEMPTS = 6
_FILES_MAX, _BUCKET_FILES_MAX = 16, 4
"""If a job or feed has more small files than this (on a disk, in a bucket), they are merged to make reading fast."""

_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("seq", pa.int64()),
        ("kind", pa.string()),
        ("body", pa.string()),
        ("recorded_at", pa.int64()),
    ]
)
_CONFIGURATION = {"delta.appendOnly": "true", **SHORT_LOG}


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The rows of one job or feed, as read with one table handle."""

    table: DeltaTable
    files: tuple[TableFile, ...]
    """The files with the rows that the stored fold (the state after the ledger's first rows) does not cover."""
    known: Sequence[tuple[str, LedgerRow]]
    """For each row in these files, a pair: its stored text, and the row."""
    rows: StoredRows
    mark: Mark | None

    @property
    def small(self) -> list[TableFile]:
        """The small files, which are merged when there are many of them."""
        return [file for file in self.files if _is_small(file)]


class Ledger:
    """The rows of one job or feed in a ledger table. The first append creates the table."""

    def __init__(self, path: str, name: str) -> None:
        """Bind to a table and a name. Nothing is read or created."""
        self.path = path
        self.name = safe_name(name, "ledger")
        self._folder = Folder(path)
        self._app_id = f"rewindow.ledger/{name}"
        self._merge_id = f"rewindow.ledger-files/{name}"
        self._files = LedgerFiles(self._folder, self.name)
        self._snapshot: _Snapshot | None = None
        self._known: list[tuple[str, LedgerRow]] = []
        self._rows = StoredRows([])
        self._fold: StoredFold | None = None
        self._may_use_fold, self._stored_until = True, 0
        self._earlier = _EarlierRows(self._folder, self.name)

    def read(self) -> StoredRows:
        """Return the rows of the job or feed, in order. The same object is returned until there are more rows.

        Raises `InvariantError` (70) if the rows are not numbered 1, 2, 3 ..., `StorageError` (74) if they cannot be read,
        `CheckpointError` (76) if another version of rewindow wrote them.
        """
        snapshot = self._look()
        return snapshot.rows if snapshot else StoredRows([])

    def to_keep(self) -> StoredRows | None:
        """Return the rows in files that are never merged again, if their fold has not been stored; otherwise None."""
        rows = self._snapshot.rows if self._snapshot else None
        return rows.until(rows.keeps_until) if rows and rows.keeps_until > self._stored_until else None

    def keep_fold(self, rows: int, lines: Sequence[str]) -> None:
        """Store ``lines``, the state after the first ``rows`` rows, if these rows are in files that are never merged again."""
        snapshot, before = self._snapshot, self._fold
        if snapshot is not None and snapshot.rows.keeps_until == rows:
            covers = {file.path for file in snapshot.files if (file.last_seq or 0) <= rows}
            covers |= before.covers if before else set()
            write_fold(self._folder, self.name, StoredFold(rows, identity(snapshot.rows), frozenset(covers), lines))
            self._stored_until = rows

    def append(self, rows: Sequence[LedgerRow]) -> bool:
        """Append rows in one commit, numbered from the next free number. Return False if another writer took that number.

        After False, the caller must read the ledger and decide again. Raises `InvariantError` (70) for numbers that leave a gap,
        `LimitError` (71) if the disk is full, `StorageError` (74) if the rows were not committed or if that is unknown.
        """
        check_numbered(self.name, rows)
        first_seq = rows[0].seq
        token = new_token()
        texts = tuple(stored_body(row.body, token) for row in rows)
        action: AddAction | None = None
        failure: Exception | None = None
        # The caller's decision is based on this snapshot. If the snapshot is stale, Delta rejects the commit.
        snapshot = self._snapshot
        if snapshot is None or len(snapshot.rows) != first_seq - 1:
            snapshot = self._look_or_create()
        for attempt in range(_ATTEMPTS):
            # Another process has taken the number, or an attempt of this call has landed although it raised an error.
            if len(snapshot.rows) >= first_seq:
                break
            if len(snapshot.rows) != first_seq - 1:
                raise not_next(self.name, len(snapshot.rows), first_seq)
            if action is None:
                check_writable(self.path, snapshot.table)
                action = self._write(rows, texts)
            try:
                commit_actions(snapshot.table, [action], self._app_id, rows[-1].seq)
            except Exception as error:  # noqa: BLE001 - the commit may have landed: the rows decide
                failure = error
                time.sleep(0.002 * 2**attempt)
            snapshot = self._look_or_create()
        if len(snapshot.rows) < first_seq:
            raise not_committed(f"row {first_seq} of the ledger {self.name}", _ATTEMPTS, failure) from failure
        # A negative index means that a stored fold covers the number. So another process has appended the row.
        index = first_seq - 1 - self._skipped
        # The text of a row contains the token of its append, so equal rows of two writers differ.
        is_ours = index >= 0 and tuple(text for text, _ in snapshot.known[index : index + len(texts)]) == texts
        if is_ours and len(snapshot.small) > (_BUCKET_FILES_MAX if is_uri(self.path) else _FILES_MAX):
            self._merge(snapshot, snapshot.small)
        return is_ours

    def _look_or_create(self) -> _Snapshot:
        snapshot = self._look()
        if snapshot is None:
            check_store(self.path)
            create_table(self.path, _SCHEMA, ("name",), configuration=_CONFIGURATION)
            snapshot = self._look()
        if snapshot is None:
            raise StorageError(
                "ledger-deleted",
                "the ledger {path} was deleted while it was in use: restore its folder from a copy",
                path=self.path,
            )
        return snapshot

    def _look(self) -> _Snapshot | None:
        before, self._snapshot = self._snapshot, None
        if before is not None:
            release(before.table)
        table = open_table(self.path)
        if table is None:
            return None
        # If the last commit is still the same file, nothing has changed.
        if before is not None and before.mark is not None and before.mark == mark_of(table):
            self._snapshot = replace(before, table=table)
            return self._snapshot
        files = table_files(self.path, table)
        own = sorted(
            (file for file in files if file.partition["name"] == self.name), key=lambda file: file.first_seq or 0
        )
        before_known = self._known
        self._find_fold(own)
        covers = self._fold.covers if self._fold else frozenset[str]()
        later = tuple(file for file in own if file.path not in covers)
        read = [*self._files.known]
        try:
            self._read_later([file.path for file in later], table.transaction_version(self._app_id) or 0)
        except RewindowError:
            # The rows of these files were not added to `_known`, so the next call must read the files again.
            self._files.forget_all_but(read)
            raise
        if not own and files:
            self._check_format_of(files[0].path)
        end = _end_of_large(later, self._skipped)
        keeps_until = end if end > self._stored_until else 0
        if self._known is not before_known or self._rows.keeps_until != keeps_until:
            rows = [row for _, row in self._known]
            self._rows = StoredRows(rows, self._fold, self._earlier, keeps_until)
        self._snapshot = _Snapshot(table, later, self._known, self._rows, mark_of(table))
        return self._snapshot

    @property
    def _skipped(self) -> int:
        """The number of the ledger's first rows that are replaced by a stored state (the stored fold)."""
        return self._fold.rows if self._fold else 0

    def _find_fold(self, own: Sequence[TableFile]) -> None:
        """At the first read, use the stored state (fold) if it fits; drop it when the ledger lacks files that it covers."""
        fold = self._fold
        if self._may_use_fold and any(not _is_small(file) for file in own):
            fold = read_fold(self._folder, self.name)
        is_first, self._may_use_fold = self._may_use_fold, False
        if fold is not None and not _fits(fold, own):
            fold = None
        # In a bucket, this check would cost a request for each file.
        if fold is not None and is_first and not is_uri(self.path):
            self._files.check(fold.covers)
        if fold is not self._fold:
            self._fold, self._known = fold, []
            self._files.forget_all_but(())

    def _read_later(self, paths: Sequence[str], last: int) -> None:
        """Read the rows after those that the stored state (fold) covers."""
        added = [path for path in paths if path not in self._files.known]
        rows_before, first_seq = self._known, self._skipped + 1
        is_grown = len(paths) - len(added) == len(self._files.known)
        # If no known file was removed, the known rows are still in the table, and only added files are read.
        if is_grown:
            # A file that was written by a merge may repeat rows of files that are still in the table.
            stored = [row for row in self._files.rows(added) if not self._is_known(row)]
            first_seq += len(rows_before)
            new = [(row[2], self._files.load(row)) for row in stored]
        else:
            stored = self._files.rows(paths)
            if self._skipped + len(stored) < len(self._rows):
                raise StorageError(
                    "storage-not-consistent",
                    "{path}: the storage listed an older state than before, so it is not consistent. Run again",
                    path=self.path,
                )
            new = [
                same if same and same[0] == row[2] else (row[2], self._files.load(row))
                for row, same in zip(stored, chain(rows_before, repeat(None)), strict=False)
            ]
        check_complete(self.path, self.name, stored, first_seq, last)
        self._files.forget_all_but(paths)
        if new or not is_grown:
            self._known = [*rows_before, *new] if is_grown else new

    def _is_known(self, row: RowValues) -> bool:
        index = row[0] - 1 - self._skipped
        return 0 <= index < len(self._known) and self._known[index][0] == row[2]

    def _check_format_of(self, path: str) -> None:
        """Check the format of one file of another job or feed, so that no file is added to a table with another format."""
        for text in self._folder.read_table(path, ["body"])["body"].to_pylist():
            load_body(text, self.path)

    def _write(self, rows: Sequence[LedgerRow], texts: Sequence[str]) -> AddAction:
        stored = [(row.seq, row.kind, text, row.recorded_at) for row, text in zip(rows, texts, strict=True)]
        return self._write_file(stored, data_change=True)

    def _write_file(self, stored: Sequence[RowValues], *, data_change: bool) -> AddAction:
        path, facts = self._files.write(stored)
        stats = {
            "numRecords": len(stored),
            "minValues": {"seq": stored[0][0]},
            "maxValues": {"seq": stored[-1][0]},
            "nullCount": {"seq": 0},
        }
        return AddAction(path, facts.bytes, {"name": self.name}, facts.modified_ms, data_change, json.dumps(stats))

    def compact(self) -> None:
        """Merge small files of this job or feed into one file. The rows do not change."""
        snapshot = self._look()
        if snapshot is not None and len(snapshot.small) > 1:
            self._merge(snapshot, snapshot.small)

    def _merge(self, snapshot: _Snapshot, small: Sequence[TableFile]) -> None:
        """Merge the last small files (at least two) of this job or feed into one file. Neither rows nor numbers change.

        Concurrent or failed merges do no harm. Because of the application id, the second of two concurrent merges fails.
        Without the id, Delta would let both remove the same files, and the rows would be added twice.
        """
        kept = kept_by_merge([file.rows or 0 for file in small])
        paths = [file.path for file in small[min(kept, len(small) - 2) :]]
        actions: list[AddAction | RemoveAction] = [self._write_file(self._files.rows(paths), data_change=False)]
        actions += [removal(path, {"name": self.name}, data_change=False) for path in paths]
        # The handle of the snapshot must not be used after the commit.
        self._snapshot = None
        with suppress(DeltaError, OSError):
            commit_actions(snapshot.table, actions, self._merge_id, len(snapshot.rows))


class LandingLedgers:
    """The landing ledgers of a warehouse. Each feed has one `Ledger` object, which reads each file only once."""

    def __init__(self, warehouse: str) -> None:
        """Bind to a folder or URI. Nothing is read."""
        self._warehouse = warehouse
        self._known: dict[str, Ledger] = {}

    def of(self, feed: str) -> Ledger:
        """Return a feed's ledger."""
        return self._known.setdefault(feed, Ledger(table_path(self._warehouse, LANDINGS), feed))


RowValues = tuple[int, str, str, int]
"""A stored row: the values of seq, kind, body and recorded_at."""

SMALL_ROWS = 400
"""Files with fewer rows than this are merged when there are many of them. Larger files are never merged."""

_DIGEST = re.compile(r"/([0-9a-f]{32})\.parquet$")
FOLDS = "_folds"
"""The folder of the stored states (folds), below a ledger's table. Delta and Spark ignore paths with a leading underscore."""
_CHECKED = "_checked_folds"
"""The folder with the digests of those stored states that were compared with the rows."""
_Check = Callable[[str, Sequence[LedgerRow]], None]
"""Gets name and rows of a ledger. Raises `InvariantError` (70) if the stored state differs from that of the rows."""


class LedgerFiles:
    """The rows in the files of one job or feed. Each file is read once."""

    def __init__(self, folder: Folder, name: str) -> None:
        """Bind to a ledger and a name. Nothing is read."""
        self._folder, self._name = folder, name
        self._bodies = Bodies(folder.root)
        self._read: dict[str, list[RowValues]] = {}
        self._written: dict[str, list[RowValues]] = {}

    @property
    def known(self) -> Collection[str]:
        """The paths of the files whose rows are in memory."""
        return self._read

    def forget_all_but(self, paths: Collection[str]) -> None:
        """Drop the rows of all files except ``paths`` from memory."""
        self._read = {path: rows for path, rows in self._read.items() if path in paths}

    def rows(self, paths: Collection[str]) -> list[RowValues]:
        """Return the rows of files, sorted by number. A row that two files have (with the same token) is returned once."""
        return sorted({row for path in paths for row in self.rows_of(path)}, key=lambda row: row[0])

    def rows_of(self, path: str) -> list[RowValues]:
        """Return a file's rows. Raises `StorageError` (74) if the file is gone or damaged."""
        if path in self._written:
            self._read[path] = self._written.pop(path)
        elif path not in self._read:
            parquet = self._folder.as_parquet(path, self._bytes(path))
            columns = parquet.read(["seq", "kind", "body", "recorded_at"], use_threads=False).to_pydict()
            self._read[path] = list(zip(*columns.values(), strict=True))
        return self._read[path]

    def load(self, row: RowValues) -> LedgerRow:
        """Parse a stored row. Raises `CheckpointError` (76) if the row has another format."""
        body, token = self._bodies.load(row[2])
        return LedgerRow(row[0], row[1], body, row[3], token)

    def check(self, paths: Collection[str]) -> None:
        """Raise `StorageError` (74) if files are gone or their bytes were altered. The rows are not parsed."""
        for path in sorted(paths):
            self._bytes(path)

    def write(self, stored: Sequence[RowValues]) -> tuple[str, FileFacts]:
        """Write rows into a new file; return its path and facts."""
        arrays = [list(column) for column in zip(*stored, strict=True)]
        table = pa.table(arrays, schema=pa.schema([field for field in _SCHEMA if field.name != "name"]))
        path, facts = self._folder.write_digested(f"name={self._name}", table)
        # An object is always complete, and its name is the digest of its bytes. So the object need not be read back.
        if is_uri(self._folder.root):
            self._written[path] = list(stored)
        return path, facts

    def _bytes(self, path: str) -> pa.Buffer:
        named, data = _DIGEST.search(path), self._folder.read_bytes(path)
        if named and digest_of(data) != named[1]:
            full = self._folder.full_path(path)
            raise StorageError(
                "ledger-altered", "{path} was altered: restore it from a copy before you run or land", path=full
            )
        return data


class _EarlierRows:
    """The rows that a stored state (fold) replaces. They are read only when they are needed."""

    def __init__(self, folder: Folder, name: str) -> None:
        """Bind to a ledger and a name. Nothing is read."""
        # A reference to the ledger would make a cycle. In a cycle, the copy of a bucket's log would be deleted before the
        # handle that reads it goes back to the cache.
        self._of = (folder, name)
        self._rows: list[LedgerRow] = []

    def __call__(self, fold: StoredFold) -> list[LedgerRow]:
        """Return the rows that ``fold`` covers. Raises as `Ledger.read` does."""
        if not self._rows:
            folder, name = self._of
            files = LedgerFiles(folder, name)
            stored = files.rows(fold.covers)
            check_complete(folder.root, name, stored, 1, fold.rows)
            self._rows = [files.load(row) for row in stored]
        return self._rows


def _is_small(file: TableFile) -> bool:
    """Return whether a file is merged when there are many such files."""
    return file.rows is None or file.rows < SMALL_ROWS


def _end_of_large(files: Sequence[TableFile], begin: int) -> int:
    """Return the last number up to which all rows after ``begin`` are in files that are never merged; 0 if there are none."""
    end = begin
    for file in files:
        if _is_small(file) or file.first_seq != end + 1 or file.last_seq is None:
            break
        end = file.last_seq
    return end if end > begin else 0


def _fits(fold: StoredFold, files: Sequence[TableFile]) -> bool:
    """Return whether a ledger has all files that a stored fold covers, and its other files have only later rows."""
    others = [file for file in files if file.path not in fold.covers]
    return len(files) - len(others) == len(fold.covers) and all((file.first_seq or 0) > fold.rows for file in others)


def check_complete(path: str, name: str, rows: Sequence[RowValues], first: int, last: int) -> None:
    """Raise `InvariantError` (70) if the rows are not numbered from ``first`` to ``last`` without gaps."""
    numbers, end = [row[0] for row in rows], first + len(rows) - 1
    if numbers != list(range(first, end + 1)) or last != end:
        raise InvariantError(
            "ledger-damaged",
            "the ledger of {name} in {path} is damaged: its rows are numbered {numbers}, its last commit "
            "has number {last}. Restore the table from a copy before you run or land",
            name=name,
            path=path,
            numbers=_in_short(numbers),
            last=last,
        )


def _in_short(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[-5:])
    return f"..., {shown}" if len(numbers) > 5 else shown or "(none)"


def read_fold(folder: Folder, name: str) -> StoredFold | None:
    """Return the state that is stored for a ledger; None if there is none, or if this version cannot use it."""
    with suppress(RewindowError, OSError):
        removal = f"Delete the folder {folder.full_path(FOLDS)}"
        stored = unpacked(name, bytes(folder.read_bytes(fold_path(name))), removal)
        return stored.fold if stored and stored.fold.covers else None
    return None


def check_once(folder: Folder, name: str, rows: Sequence[LedgerRow], check: _Check) -> None:
    """Compare a ledger's stored state with its rows, unless a file says that this was done. Raises as ``check`` does."""
    stored, _ = known_part(rows)
    # The check reads all rows. So for a ledger that is used for years, it would make every `gc` slower than the last.
    if stored is None or _was_checked(folder, name, stored):
        return
    check(name, rows)
    with suppress(RewindowError):
        folder.write_bytes(f"{_CHECKED}/{name}", pa.py_buffer(stored.digest.encode()))


def _was_checked(folder: Folder, name: str, stored: StoredFold) -> bool:
    with suppress(RewindowError):
        return bool(stored.digest) and bytes(folder.read_bytes(f"{_CHECKED}/{name}")) == stored.digest.encode()
    return False


def write_fold(folder: Folder, name: str, fold: StoredFold) -> None:
    """Store the state (fold) that results from a ledger's rows. A failure is ignored: it only makes later commands slower."""
    data = packed(name, fold, {"files": sorted(fold.covers)})
    with suppress(RewindowError):
        folder.write_bytes(fold_path(name), pa.py_buffer(data))


def fold_path(name: str) -> str:
    """Return the path, below a ledger's table, of the state that is stored for the ledger."""
    return f"{FOLDS}/{name}"
