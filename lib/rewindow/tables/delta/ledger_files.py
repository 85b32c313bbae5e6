"""The files of a ledger: which hold which rows, what is in them, and the stored fold, which says what their rows give (ADR-127).

A file never changes, and its name is the digest of its bytes. The stored fold, a file beside them, names the files that it
covers. So it fits no other ledger, no older copy and no changed row. A fold that is missing, torn, of another version or of
other files is as good as none: then all rows are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

import pyarrow as pa

from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.stored_rows import StoredFold, known_part
from rewindow.errors import InvariantError, RewindowError, StorageError
from rewindow.storage.locations import is_uri
from rewindow.tables.delta.files import FileFacts, Folder, digest_of
from rewindow.tables.delta.table_rows import TableFile
from rewindow.tables.shared.ledger import Bodies, packed, unpacked

RowValues = tuple[int, str, str, int]
"""A stored row: seq, kind, body, recorded_at."""

SMALL_ROWS = 400
"""Files with fewer rows are merged when there are many of them. Larger ones stay as they are."""

_DIGEST = re.compile(r"/([0-9a-f]{32})\.parquet$")
FOLDS = "_folds"
"""The folder below a ledger. Delta and Spark take no file for data whose path begins with an underscore."""
_CHECKED = "_checked_folds"
"""The folder with the digests of the stored folds that were compared with the rows."""
Check = Callable[[str, Sequence[LedgerRow]], None]
"""Raises `InvariantError` (70) if the stored fold of a ledger, given by its name, is not what the rows give."""


class LedgerFiles:
    """The rows in the files of one job or feed. Each file is read once."""

    def __init__(self, folder: Folder, name: str, schema: pa.Schema) -> None:
        """Bind to a ledger and a name. Nothing is read."""
        self._folder, self._name, self._schema = folder, name, schema
        self._bodies = Bodies(folder.root)
        self._read: dict[str, list[RowValues]] = {}
        self._written: dict[str, list[RowValues]] = {}

    @property
    def known(self) -> Collection[str]:
        """The files that were read, or written."""
        return self._read

    def forget_all_but(self, paths: Collection[str]) -> None:
        """Forget the files that the ledger does not have any more."""
        self._read = {path: rows for path, rows in self._read.items() if path in paths}

    def rows(self, paths: Collection[str]) -> list[RowValues]:
        """Return the rows of files by number. A row in two files is one row: it has the same writer's token."""
        return sorted({row for path in paths for row in self.rows_of(path)}, key=lambda row: row[0])

    def rows_of(self, path: str) -> list[RowValues]:
        """Return a file's rows. Raises `StorageError` (74) if it is gone or damaged."""
        if path in self._written:
            self._read[path] = self._written.pop(path)
        elif path not in self._read:
            parquet = self._folder.as_parquet(path, self._bytes(path))
            columns = parquet.read(["seq", "kind", "body", "recorded_at"], use_threads=False).to_pydict()
            self._read[path] = list(zip(*columns.values(), strict=True))
        return self._read[path]

    def load(self, row: RowValues) -> LedgerRow:
        """Return a stored row as what it says. Raises `CheckpointError` (76) if it has another format."""
        body, token = self._bodies.load(row[2])
        return LedgerRow(row[0], row[1], body, row[3], token)

    def check(self, paths: Collection[str]) -> None:
        """Raise `StorageError` (74) if files are gone, or their bytes are not what was written. Their rows are not read."""
        for path in sorted(paths):
            self._bytes(path)

    def write(self, stored: Sequence[RowValues]) -> tuple[str, FileFacts]:
        """Write rows into a new file; return its path and facts."""
        arrays = [list(column) for column in zip(*stored, strict=True)]
        table = pa.table(arrays, schema=pa.schema([field for field in self._schema if field.name != "name"]))
        path, facts = self._folder.write_digested(f"name={self._name}", table)
        # An object is never half-written, and its name says what is in it.
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


class EarlierRows:
    """The rows that a stored fold covers, read on first use."""

    def __init__(self, folder: Folder, name: str, schema: pa.Schema) -> None:
        """Bind to a ledger and a name. Nothing is read."""
        # A reference to the ledger would make a cycle, and in a cycle the copy of a bucket's log would be deleted before the
        # handle that reads it returns to the cache.
        self._of = (folder, name, schema)
        self._rows: list[LedgerRow] = []

    def __call__(self, fold: StoredFold) -> list[LedgerRow]:
        """Return the rows. Raises as `Ledger.read` does."""
        if not self._rows:
            folder, name, schema = self._of
            files = LedgerFiles(folder, name, schema)
            stored = files.rows(fold.covers)
            check_complete(folder.root, name, stored, 1, fold.rows)
            self._rows = [files.load(row) for row in stored]
        return self._rows


def is_small(file: TableFile) -> bool:
    """Return whether a file is merged when there are many such files."""
    return file.rows is None or file.rows < SMALL_ROWS


def end_of_large(files: Sequence[TableFile], begin: int) -> int:
    """Return the last row of the files after row ``begin`` that stay as they are and follow one another; 0 for none."""
    end = begin
    for file in files:
        if is_small(file) or file.first_seq != end + 1 or file.last_seq is None:
            break
        end = file.last_seq
    return end if end > begin else 0


def fits(fold: StoredFold, files: Sequence[TableFile]) -> bool:
    """Return whether a ledger has the files of a stored fold, and the rows in them in no other file."""
    others = [file for file in files if file.path not in fold.covers]
    return len(files) - len(others) == len(fold.covers) and all((file.first_seq or 0) > fold.rows for file in others)


def check_complete(path: str, name: str, rows: Sequence[RowValues], first: int, last: int) -> None:
    """Raise `InvariantError` (70) unless the numbers of rows are those from ``first`` to ``last``."""
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
    """Return the stored fold of a ledger; None if there is none that this version can use."""
    with suppress(RewindowError, OSError):
        removal = f"Delete the folder {folder.full_path(FOLDS)}"
        stored = unpacked(name, bytes(folder.read_bytes(fold_path(name))), removal)
        return stored.fold if stored and stored.fold.covers else None
    return None


def check_once(folder: Folder, name: str, rows: Sequence[LedgerRow], check: Check) -> None:
    """Compare a stored fold with the rows, unless a file beside it says that this was done. Raises as ``check`` does."""
    stored, _ = known_part(rows)
    # The check reads all rows, so a ledger that is used for years would pay for its length at every `gc`.
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
    """Store what the rows of some files give. A failure costs later commands time, and nothing else."""
    data = packed(name, fold, {"files": sorted(fold.covers)})
    with suppress(RewindowError):
        folder.write_bytes(fold_path(name), pa.py_buffer(data))


def fold_path(name: str) -> str:
    """Return the path of a ledger's stored fold below the ledger's table."""
    return f"{FOLDS}/{name}"
