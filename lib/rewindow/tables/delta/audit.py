"""Read the staged files of an attempt back before it counts.

One pass over the bytes of each file finds a flipped, missing or foreign byte (`StagedFile.file_digest`); its footer says
how many rows it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.errors import StorageError
from rewindow.tables.delta.files import SMALL_BYTES, Folder, digest_of
from rewindow.tables.shared.audit import INTERNAL

_READERS = 4


def audit_files(reports: Sequence[TaskReport], roots: Mapping[str, str]) -> None:
    """Check every staged file against its manifest. ``roots`` has for each target the folder of its table.

    Raises `StorageError` (74) naming the first file that is missing, cut short or altered.
    """
    files = [file for report in reports for file in report.files if not file.target.startswith(INTERNAL)]
    folders = {target: Folder(root) for target, root in roots.items()}
    if sum(file.bytes for file in files) <= SMALL_BYTES:
        for file in files:
            _check_file(folders[file.target], file)
        return
    with ThreadPoolExecutor(_READERS) as readers:  # digests are computed outside the interpreter's lock
        for _ in readers.map(lambda file: _check_file(folders[file.target], file), files):
            pass


def _check_file(folder: Folder, file: StagedFile) -> None:
    if file.bytes <= SMALL_BYTES:  # one request reads it from a bucket
        try:
            data = folder.read_bytes(file.path)
        except StorageError as error:
            raise _not_as_staged(folder, file, "is gone") from error
        _check_bytes(folder, file, data.size, digest_of(data))
        parquet_file = folder.as_parquet(file.path, data, is_checked=True)
    else:
        facts = folder.facts(file.path)
        if facts is None:
            raise _not_as_staged(folder, file, "is gone")
        _check_bytes(folder, file, facts.bytes, folder.digest(file.path))
        parquet_file = folder.open_parquet(file.path, is_checked=True)
    with parquet_file as parquet:
        rows = parquet.metadata.num_rows
    if rows != file.rows or file.stats.get("numRecords", rows) != rows:
        raise _not_as_staged(folder, file, f"has {rows} rows, not {file.rows}")


def _check_bytes(folder: Folder, file: StagedFile, size: int, digest: str) -> None:
    if size != file.bytes:
        raise _not_as_staged(folder, file, f"has {size} bytes, not {file.bytes}")
    if digest != file.file_digest:
        raise _not_as_staged(folder, file, "has other bytes than were written")


def _not_as_staged(folder: Folder, file: StagedFile, what: str) -> StorageError:
    message = (
        f"the staged file {folder.full_path(file.path)} {what}. Nothing was committed: check the disk and run again"
    )
    return StorageError(message)
