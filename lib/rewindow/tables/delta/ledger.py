"""The ledger: an append-only table of rows, numbered 1, 2, 3 ... for each job or feed. A row that is there is true.

An append is a compare-and-set. The writer proposes the next free number; Delta rejects the commit if another writer of the
same name committed first; then the ledger is read again, and the row with that number shows who won. Return values and
exceptions decide nothing: a lost answer looks like a failure, a skipped write like a success.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from rewindow.control.plan.branches import LedgerRow
from rewindow.errors import InvariantError, StorageError, did_not_land
from rewindow.storage.locations import is_uri
from rewindow.tables.delta.actions import removal
from rewindow.tables.delta.commit import SHORT_LOG, commit_actions, create_table, open_table, table_path
from rewindow.tables.delta.content_hash import table_files
from rewindow.tables.delta.features import check_writable
from rewindow.tables.delta.files import Folder, digest_of
from rewindow.tables.delta.handle_cache import Mark, mark_of, release
from rewindow.tables.delta.probe_put_if_absent import check_store
from rewindow.tables.shared.ledger import check_numbered, load_body, new_token, stored_body
from rewindow.tables.shared.paths import LANDINGS, safe_name

__all__ = ["Ledger", "LedgerRow"]

_RowValues = tuple[int, str, str, int]
"""A stored row: seq, kind, body, recorded_at."""

_DIGEST = re.compile(r"/([0-9a-f]{32})\.parquet$")
_ATTEMPTS = 6
_FILES_MAX, _BUCKET_FILES_MAX = 16, 4
"""More small files than this of one name are merged, so that reading the ledger takes milliseconds, and few requests."""
_SMALL_ROWS = 400

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
    paths: tuple[str, ...]
    known: Sequence[tuple[str, LedgerRow]]
    """Each row with its stored text."""
    rows: list[LedgerRow]
    mark: Mark | None


class Ledger:
    """The rows of one job or feed in a ledger table. The first append creates the table."""

    def __init__(self, path: str, name: str) -> None:
        """Bind to a table and a name. Nothing is read or created."""
        self.path = path
        self.name = safe_name(name, "ledger")
        self._folder = Folder(path)
        self._app_id = f"rewindow.ledger/{name}"
        self._merge_id = f"rewindow.ledger-files/{name}"
        self._read_files: dict[str, list[_RowValues]] = {}
        self._written: dict[str, list[_RowValues]] = {}
        self._seen: _Snapshot | None = None
        self._known: list[tuple[str, LedgerRow]] = []
        self._rows: list[LedgerRow] = []
        self._binding: Any = None

    def read(self) -> list[LedgerRow]:
        """Read this name's rows, in order. The same list is returned until there are more: do not change it.

        Raises `InvariantError` (70) if they are not numbered 1, 2, 3 ..., `StorageError` (74) if they cannot be read,
        `CheckpointError` (76) if another version of rewindow wrote them.
        """
        seen = self._look()
        return seen.rows if seen else []

    def append(self, rows: Sequence[LedgerRow]) -> bool:
        """Append rows in one commit, numbered from the next free number. False if another writer took that number.

        After False, read the ledger and decide again. Raises `InvariantError` (70) for numbers that leave a gap,
        `StorageError` (74) if the rows did not land or that cannot be determined, `LimitError` (71) if the disk is full.
        """
        check_numbered(self.name, rows)
        first = rows[0].seq
        token = new_token()
        texts = tuple(stored_body(row.body, token) for row in rows)
        action: AddAction | None = None
        failure: Exception | None = None
        seen = self._seen  # the state on which the caller decided; if it is stale, Delta rejects the commit
        if seen is None or len(seen.rows) != first - 1:
            seen = self._look_or_create()
        for attempt in range(_ATTEMPTS):
            if len(seen.rows) >= first:
                break
            if len(seen.rows) != first - 1:
                message = f"ledger {self.name} has {len(seen.rows)} rows: {first} is not the next number"
                raise InvariantError(message)
            if action is None:
                check_writable(self.path, seen.table)
                action = self._write(rows, texts)
            try:
                commit_actions(seen.table, [action], self._app_id, rows[-1].seq)
            except Exception as error:  # noqa: BLE001 - the commit may have landed: the rows decide
                failure = error
                time.sleep(0.002 * 2**attempt)
            seen = self._look_or_create()
        if len(seen.rows) < first:
            raise did_not_land(f"ledger {self.name}: row {first}", _ATTEMPTS, failure) from failure
        is_ours = tuple(text for text, _ in seen.known[first - 1 : first - 1 + len(texts)]) == texts
        if is_ours:
            small = [path for path in seen.paths if len(self._rows_of(path)) < _SMALL_ROWS]
            if len(small) > (_BUCKET_FILES_MAX if is_uri(self.path) else _FILES_MAX):
                self._merge(seen, small)
        return is_ours

    def _look_or_create(self) -> _Snapshot:
        seen = self._look()
        if seen is None:
            check_store(self.path)
            create_table(self.path, _SCHEMA, ("name",), configuration=_CONFIGURATION)
            seen = self._look()
        if seen is None:
            message = f"the ledger {self.path} was deleted while it was in use: restore its folder from a copy"
            raise StorageError(message)
        return seen

    def _look(self) -> _Snapshot | None:
        before, self._seen = self._seen, None
        if before is not None:
            release(before.table)
        table = open_table(self.path)
        if table is None:
            return None
        if before is not None and before.mark is not None and before.mark == mark_of(table):
            self._seen = replace(before, table=table)
            return self._seen
        files = table_files(self.path, table)
        own = tuple(file.path for file in files if file.partition["name"] == self.name)
        added = [path for path in own if path not in self._read_files]
        known = self._known
        if len(own) - len(added) == len(
            self._read_files
        ):  # no file has left the table, so the known rows are still in it
            stored = [row for row in self._rows_in(added) if not _is_one_of(known, row)]  # a merge may list a row twice
            first, new = len(known) + 1, [(row[2], self._load(row)) for row in stored]
        else:
            stored, first = self._rows_in(own), 1
            if len(stored) < len(known):
                message = (
                    f"{self.path}: the storage listed an older state than before, so it is not consistent. Run again"
                )
                raise StorageError(message)
            new = [
                same if same and same[0] == row[2] else (row[2], self._load(row))
                for row, same in zip(stored, chain(known, repeat(None)), strict=False)
            ]
        self._check([row[0] for row in stored], first, table.transaction_version(self._app_id) or 0)
        self._read_files = {path: self._read_files[path] for path in own}
        if not own and files:
            self._check_format_of(files[0].path)
        if new or first == 1:
            rows = [row for _, row in new]
            self._known, self._rows = ([*known, *new], [*self._rows, *rows]) if first > 1 else (new, rows)
        self._seen = _Snapshot(table, own, self._known, self._rows, mark_of(table))
        return self._seen

    def _rows_in(self, paths: Sequence[str]) -> list[_RowValues]:
        """Return the rows of files by number. A row in two files is one row: it has the same writer's token."""
        return sorted({row for path in paths for row in self._rows_of(path)}, key=lambda row: row[0])

    def _rows_of(self, path: str) -> list[_RowValues]:
        """Return a file's rows. A file never changes, so it is read once; its name has the digest of its bytes."""
        if path in self._written:
            self._read_files[path] = self._written.pop(path)
        elif path not in self._read_files:
            named, data = _DIGEST.search(path), self._folder.read_bytes(path)
            if named and digest_of(data) != named[1]:
                full = self._folder.full_path(path)
                message = f"{full} was altered: restore it from a copy before you run or land"
                raise StorageError(message)
            columns = self._folder.as_parquet(path, data).read(["seq", "kind", "body", "recorded_at"]).to_pydict()
            self._read_files[path] = list(zip(*columns.values(), strict=True))
        return self._read_files[path]

    def _load(self, row: _RowValues) -> LedgerRow:
        body, token = load_body(row[2], self.path)
        if "binding" in body:  # nearly all rows have the same, which takes most of their memory
            self._binding = body["binding"] = self._binding if self._binding == body["binding"] else body["binding"]
        return LedgerRow(row[0], row[1], body, row[3], token)

    def _check_format_of(self, path: str) -> None:
        """Check one file of another name, so that a new name does not join a table of another format."""
        for text in self._folder.read_table(path, ["body"])["body"].to_pylist():
            load_body(text, self.path)

    def _check(self, numbers: Sequence[int], first: int, last: int) -> None:
        end = first + len(numbers) - 1
        if list(numbers) != list(range(first, end + 1)) or last != end:
            message = (
                f"the ledger of {self.name} in {self.path} is damaged: its rows are numbered {_in_short(numbers)}, "
                f"its last commit has number {last}. Restore the table from a copy before you run or land"
            )
            raise InvariantError(message)

    def _write(self, rows: Sequence[LedgerRow], texts: Sequence[str]) -> AddAction:
        stored = [(row.seq, row.kind, text, row.recorded_at) for row, text in zip(rows, texts, strict=True)]
        return self._write_file(stored, data_change=True)

    def _write_file(self, stored: Sequence[_RowValues], *, data_change: bool) -> AddAction:
        arrays = [list(column) for column in zip(*stored, strict=True)]
        table = pa.table(arrays, schema=pa.schema([_SCHEMA.field(name) for name in _SCHEMA.names if name != "name"]))
        path, facts = self._folder.write_digested(f"name={self.name}", table)
        if is_uri(self.path):  # an object is never half-written, and its name says what is in it
            self._written[path] = list(stored)
        stats = {
            "numRecords": len(stored),
            "minValues": {"seq": stored[0][0]},
            "maxValues": {"seq": stored[-1][0]},
            "nullCount": {"seq": 0},
        }
        return AddAction(path, facts.bytes, {"name": self.name}, facts.modified_ms, data_change, json.dumps(stats))

    def compact(self) -> None:
        """Merge all small files of this name into one. The rows do not change."""
        seen = self._look()
        if seen is not None:
            small = [path for path in seen.paths if len(self._rows_of(path)) < _SMALL_ROWS]
            if len(small) > 1:
                self._merge(seen, small)

    def _merge(self, seen: _Snapshot, paths: Sequence[str]) -> None:
        """Merge some of this name's files into one. Neither rows nor numbers change.

        Concurrent or failed merges do no harm. The transaction id makes the second one fail: Delta alone would let both
        remove the same files and add the rows twice.
        """
        merged = self._write_file(self._rows_in(paths), data_change=False)
        actions: list[AddAction | RemoveAction] = [
            merged,
            *(removal(path, {"name": self.name}, data_change=False) for path in paths),
        ]
        self._seen = None  # its handle must not be used after a commit
        with suppress(DeltaError, OSError):
            commit_actions(seen.table, actions, self._merge_id, len(seen.rows))


class LandingLedgers:
    """The landing ledgers of a warehouse: of each feed always the same object, which reads no file twice."""

    def __init__(self, warehouse: str) -> None:
        """Bind to a folder or URI. Nothing is read."""
        self._warehouse = warehouse
        self._known: dict[str, Ledger] = {}

    def of(self, feed: str) -> Ledger:
        """Return a feed's ledger."""
        return self._known.setdefault(feed, Ledger(table_path(self._warehouse, LANDINGS), feed))


def _is_one_of(known: Sequence[tuple[str, LedgerRow]], row: _RowValues) -> bool:
    return row[0] <= len(known) and known[row[0] - 1][0] == row[2]


def _in_short(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[-5:])
    return f"..., {shown}" if len(numbers) > 5 else shown or "(none)"
