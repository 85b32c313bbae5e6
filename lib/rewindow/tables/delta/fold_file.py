"""The stored fold of a ledger: a file beside the ledger's files, which says what the rows in some of them give (ADR-127).

It names these files, whose names are the digests of their bytes. So it fits no other ledger, no older copy and no changed
row. A file that is missing, torn, of another version or of other files is as good as none: then all rows are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import pyarrow as pa

from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.stored_rows import StoredFold, known_part
from rewindow.errors import RewindowError
from rewindow.tables.delta.files import Folder
from rewindow.tables.shared.packed_folds import packed, unpacked

FOLDS = "_folds"
"""The folder below a ledger. Delta and Spark take no file for data whose path begins with an underscore."""
_CHECKED = "_checked_folds"
"""The folder with the digests of the stored folds that were compared with the rows."""
Check = Callable[[str, Sequence[LedgerRow]], None]
"""Raises `InvariantError` (70) if the stored fold of a ledger, given by its name, is not what the rows give."""


def read_fold(folder: Folder, name: str) -> StoredFold | None:
    """Return the stored fold of a ledger; None if there is none that this version can use."""
    with suppress(RewindowError, OSError):
        removal = f"Delete the folder {folder.full_path(FOLDS)}"
        found = unpacked(name, bytes(folder.read_bytes(fold_path(name))), removal)
        return found.fold if found and found.fold.covers else None
    return None


def check_once(folder: Folder, name: str, rows: Sequence[LedgerRow], check: Check) -> None:
    """Compare a stored fold with the rows, unless a file beside it says that this was done. Raises as ``check`` does.

    It reads all rows, so a ledger that is used for years would pay for its length at every `gc`.
    """
    stored, _ = known_part(rows)
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
