"""The ledger: an append-only table of rows, numbered 1, 2, 3 ... for each job or feed. A row that is there is true.

An append is a compare-and-set. The writer proposes the next free number; Delta rejects the commit if another writer of the
same name committed first; then the ledger is read again, and the row with that number shows who won. Return values and
exceptions decide nothing: a lost answer looks like a failure, a skipped write like a success.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, repeat

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.stored_rows import StoredFold, StoredRows, identity
from rewindow.errors import RewindowError, StorageError, not_committed
from rewindow.storage.locations import is_uri
from rewindow.tables.delta.commit import commit_actions, open_table, removal, table_path
from rewindow.tables.delta.create_table import SHORT_LOG, create_table
from rewindow.tables.delta.features import check_writable
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.handle import Mark, mark_of, release
from rewindow.tables.delta.ledger_files import (
    EarlierRows,
    LedgerFiles,
    RowValues,
    check_complete,
    end_of_large,
    fits,
    is_small,
    read_fold,
    write_fold,
)
from rewindow.tables.delta.probe_put_if_absent import check_store
from rewindow.tables.delta.table_rows import TableFile, table_files
from rewindow.tables.shared.ledger import check_numbered, load_body, new_token, not_next, stored_body
from rewindow.tables.shared.paths import LANDINGS, safe_name

__all__ = ["Ledger", "LedgerRow"]

_ATTEMPTS = 6
_FILES_MAX, _BUCKET_FILES_MAX = 16, 4
"""More small files than this of one name are merged, so that reading the ledger takes milliseconds, and few requests."""

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
    """What was read through one table handle."""

    table: DeltaTable
    files: tuple[TableFile, ...]
    """The files whose rows the stored fold does not cover."""
    known: Sequence[tuple[str, LedgerRow]]
    """Each of their rows with its stored text."""
    rows: StoredRows
    mark: Mark | None

    @property
    def small(self) -> list[str]:
        """The files that are merged when there are many of them."""
        return [file.path for file in self.files if is_small(file)]


class Ledger:
    """The rows of one job or feed in a ledger table. The first append creates the table."""

    def __init__(self, path: str, name: str) -> None:
        """Bind to a table and a name. Nothing is read or created."""
        self.path = path
        self.name = safe_name(name, "ledger")
        self._folder = Folder(path)
        self._app_id = f"rewindow.ledger/{name}"
        self._merge_id = f"rewindow.ledger-files/{name}"
        self._files = LedgerFiles(self._folder, self.name, _SCHEMA)
        self._snapshot: _Snapshot | None = None
        self._known: list[tuple[str, LedgerRow]] = []
        self._rows = StoredRows([])
        self._fold: StoredFold | None = None
        self._may_use_fold, self._stored_until = True, 0
        self._earlier = EarlierRows(self._folder, self.name, _SCHEMA)

    def read(self) -> StoredRows:
        """Read this name's rows, in order. The same value is returned until there are more.

        Raises `InvariantError` (70) if they are not numbered 1, 2, 3 ..., `StorageError` (74) if they cannot be read,
        `CheckpointError` (76) if another version of rewindow wrote them.
        """
        snapshot = self._look()
        return snapshot.rows if snapshot else StoredRows([])

    def to_keep(self) -> StoredRows | None:
        """Return the first rows, if what they give is worth storing and not stored yet; otherwise None."""
        rows = self._snapshot.rows if self._snapshot else None
        return rows.until(rows.keeps_until) if rows and rows.keeps_until > self._stored_until else None

    def keep_fold(self, rows: int, lines: Sequence[str]) -> None:
        """Store what folding the first ``rows`` rows gives, if these are the rows of files that are never merged again."""
        snapshot, before = self._snapshot, self._fold
        if snapshot is not None and snapshot.rows.keeps_until == rows:
            covers = {file.path for file in snapshot.files if (file.last_seq or 0) <= rows}
            covers |= before.covers if before else set()
            write_fold(self._folder, self.name, StoredFold(rows, identity(snapshot.rows), frozenset(covers), lines))
            self._stored_until = rows

    def append(self, rows: Sequence[LedgerRow]) -> bool:
        """Append rows in one commit, numbered from the next free number. False if another writer took that number.

        After False, read the ledger and decide again. Raises `InvariantError` (70) for numbers that leave a gap,
        `StorageError` (74) if the rows were not committed or that cannot be determined, `LimitError` (71) if the disk is full.
        """
        check_numbered(self.name, rows)
        first_seq = rows[0].seq
        token = new_token()
        texts = tuple(stored_body(row.body, token) for row in rows)
        action: AddAction | None = None
        failure: Exception | None = None
        # The state on which the caller decided; if it is stale, Delta rejects the commit.
        snapshot = self._snapshot
        if snapshot is None or len(snapshot.rows) != first_seq - 1:
            snapshot = self._look_or_create()
        for attempt in range(_ATTEMPTS):
            # The number is taken: by this process, if an attempt landed although it raised, or by another.
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
        # What a stored fold covers was there before this process appended anything.
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
        # The last commit is the same file, so nothing has changed.
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
            # Another call would not look for rows in the others.
            self._files.forget_all_but(read)
            raise
        if not own and files:
            self._check_format_of(files[0].path)
        end = end_of_large(later, self._skipped)
        keeps_until = end if end > self._stored_until else 0
        if self._known is not before_known or self._rows.keeps_until != keeps_until:
            rows = [row for _, row in self._known]
            self._rows = StoredRows(rows, self._fold, self._earlier, keeps_until)
        self._snapshot = _Snapshot(table, later, self._known, self._rows, mark_of(table))
        return self._snapshot

    @property
    def _skipped(self) -> int:
        """The number of rows that a stored fold covers."""
        return self._fold.rows if self._fold else 0

    def _find_fold(self, own: Sequence[TableFile]) -> None:
        """Use the stored fold in the first read of this process, and drop it when its files are no longer the ledger's."""
        fold = self._fold
        if self._may_use_fold and any(not is_small(file) for file in own):
            fold = read_fold(self._folder, self.name)
        is_first, self._may_use_fold = self._may_use_fold, False
        if fold is not None and not fits(fold, own):
            fold = None
        # In a bucket, each file would be a request.
        if fold is not None and is_first and not is_uri(self.path):
            self._files.check(fold.covers)
        if fold is not self._fold:
            self._fold, self._known = fold, []
            self._files.forget_all_but(())

    def _read_later(self, paths: Sequence[str], last: int) -> None:
        """Read the rows that the stored fold does not cover."""
        added = [path for path in paths if path not in self._files.known]
        rows_before, first_seq = self._known, self._skipped + 1
        is_grown = len(paths) - len(added) == len(self._files.known)
        # No file has left the table, so the known rows are still in it.
        if is_grown:
            # A merge may list a row twice.
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
        """Check one file of another name, so that a new name does not join a table of another format."""
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
        """Merge all small files of this name into one. The rows do not change."""
        snapshot = self._look()
        if snapshot is not None and len(snapshot.small) > 1:
            self._merge(snapshot, snapshot.small)

    def _merge(self, snapshot: _Snapshot, paths: Sequence[str]) -> None:
        """Merge some of this name's files into one. Neither rows nor numbers change.

        Concurrent or failed merges do no harm. The transaction id makes the second one fail: Delta alone would let both
        remove the same files and add the rows twice.
        """
        merged = self._write_file(self._files.rows(paths), data_change=False)
        actions: list[AddAction | RemoveAction] = [
            merged,
            *(removal(path, {"name": self.name}, data_change=False) for path in paths),
        ]
        # Its handle must not be used after a commit.
        self._snapshot = None
        with suppress(DeltaError, OSError):
            commit_actions(snapshot.table, actions, self._merge_id, len(snapshot.rows))


class LandingLedgers:
    """The landing ledgers of a warehouse: of each feed always the same object, which reads no file twice."""

    def __init__(self, warehouse: str) -> None:
        """Bind to a folder or URI. Nothing is read."""
        self._warehouse = warehouse
        self._known: dict[str, Ledger] = {}

    def of(self, feed: str) -> Ledger:
        """Return a feed's ledger."""
        return self._known.setdefault(feed, Ledger(table_path(self._warehouse, LANDINGS), feed))
