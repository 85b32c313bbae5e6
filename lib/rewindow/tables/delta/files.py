"""The files below a table's folder, on a local disk or behind a URI that Arrow knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from hashlib import blake2b
from operator import itemgetter
from typing import Any, NamedTuple
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from rewindow.contracts.staged_files import named_checksum, staged_name
from rewindow.errors import DamagedFileError, RewindowError, StorageError, failed_io, unreadable
from rewindow.storage.locations import (
    FEW,
    Listed,
    filesystem_of,
    is_uri,
    local_files,
    local_sizes,
    object_files,
    object_sizes,
)
from rewindow.storage.objects import Objects
from rewindow.tables.shared.paths import LANDINGS, RUNS

_CHUNK = 1 << 20
_DIGEST_BYTES = 16
_ROWS_WITHOUT_THREADS = 32 * 1024
SMALL_BYTES = 4 << 20
"""Files of up to this size are read as a whole. Larger files are read in parts, after their checksum has been verified."""
_UNREADABLE = (OSError, pa.ArrowException, KeyError, ValueError)


class FileFacts(NamedTuple):
    """The size of a file in bytes, and when the file was last modified (epoch ms)."""

    bytes: int
    modified_ms: int


class Whole(NamedTuple):
    """A file that was read: its size in bytes, the digest of its bytes, and a function that returns its rows."""

    bytes: int
    digest: str
    rows: Callable[[], pa.Table]


class Folder:
    """A folder that contains a table's files. Paths are relative to the folder, with ``/``."""

    def __init__(self, root: str) -> None:
        """Bind to a local path or a URI. Nothing is read or created."""
        self.root = root.rstrip("/")
        self._fs, self._base = filesystem_of(self.root)
        self._objects = Objects(self.root) if is_uri(self.root) else None

    def full_path(self, path: str) -> str:
        """Return the path or URI of a file, for people and error messages."""
        return f"{self.root}/{path}"

    def facts(self, path: str) -> FileFacts | None:
        """Return a file's size and modification time; None if there is no such file."""
        info = self._fs.get_file_info(f"{self._base}/{path}")
        if info.type != fs.FileType.File:
            return None
        return FileFacts(info.size, (info.mtime_ns or 0) // 1_000_000)

    def read_table(self, path: str, columns: list[str] | None = None) -> pa.Table:
        """Return a Parquet file's rows; page checksums are verified where the file has them.

        Raises `StorageError` (74) for a file that is gone or damaged.
        """
        with self.open_parquet(path) as parquet:
            try:
                return parquet.read(columns=columns, use_threads=not is_small(parquet))
            except _UNREADABLE as error:
                raise _unreadable(self.full_path(path), error) from error

    def read_batches(self, path: str, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield a Parquet file's rows in batches, with those columns of ``names`` that it has. Raises as `read_table` does."""
        with self.open_parquet(path) as parquet:
            stored = set(parquet.schema_arrow.names)
            try:
                yield from parquet.iter_batches(columns=[name for name in names if name in stored])
            except _UNREADABLE as error:
                raise _unreadable(self.full_path(path), error) from error

    def open_parquet(self, path: str, *, is_checked: bool = False) -> pq.ParquetFile:
        """Open a Parquet file and read its footer. ``is_checked``: whether its bytes were just checked.

        Raises `StorageError` (74) if the file is gone, damaged or not a Parquet file.
        """
        try:
            data = self._small(path)
            if data is not None:
                return self.as_parquet(path, data, is_checked=is_checked)
            if not is_checked:
                self.check(path)
            return pq.ParquetFile(f"{self._base}/{path}", filesystem=self._fs, page_checksum_verification=True)
        except _UNREADABLE as error:
            raise _unreadable(self.full_path(path), error) from error

    def footer(self, path: str) -> dict[bytes, bytes]:
        """Return the key-value metadata in the footer of a Parquet file. Raises `StorageError` (74) if it is unreadable.

        The checksum in the file's name is not verified, because that would take reading all bytes.
        """
        try:
            stated: dict[bytes, bytes] | None = pq.read_metadata(f"{self._base}/{path}", filesystem=self._fs).metadata
        except _UNREADABLE as error:
            raise _unreadable(self.full_path(path), error) from error
        return stated or {}

    def as_parquet(self, path: str, data: pa.Buffer, *, is_checked: bool = False) -> pq.ParquetFile:
        """Open the Parquet file whose bytes are ``data``. ``path``: the file's path, for errors.

        Raises as `open_parquet` does.
        """
        if not is_checked:
            self._compare(path, crc32(data))
        try:
            return pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True, pre_buffer=False)
        except _UNREADABLE as error:
            raise _unreadable(self.full_path(path), error) from error

    def read_bytes(self, path: str) -> pa.Buffer:
        """Return the bytes of a file. Raises `StorageError` (74) if it is gone or cannot be read."""
        try:
            return self._read(path)
        except OSError as error:
            raise _unreadable(self.full_path(path), error) from error

    def read_whole(self, path: str, columns: list[str]) -> Whole | None:
        """Return the rows of a Parquet file with the size and digest of its bytes; None if there is no such file."""
        try:
            data = self._read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(self.full_path(path), error) from error
        return Whole(data.size, digest_of(data), lambda: self.as_parquet(path, data).read(columns, use_threads=False))

    def _read(self, path: str) -> pa.Buffer:
        """Return the bytes of a file. Raises FileNotFoundError if it does not exist, OSError if it cannot be read."""
        if self._objects is not None:
            return self._objects.get(path)
        with self._fs.open_input_file(f"{self._base}/{path}") as file:
            return file.read_buffer()

    def _small(self, path: str) -> pa.Buffer | None:
        """Return the bytes of a file; None if it is larger than `SMALL_BYTES`. In a bucket, this takes one request."""
        if self._objects is not None:
            return self._objects.get(path, most_bytes=SMALL_BYTES)
        with self._fs.open_input_file(f"{self._base}/{path}") as file:
            return file.read_buffer() if file.size() <= SMALL_BYTES else None

    def check(self, path: str) -> None:
        """Raise `StorageError` (74) if a file is gone, or its bytes do not have the CRC-32 in its name.

        Page checksums are not enough. They cover neither page headers nor the footer, and a flipped bit there can change a
        number.
        """
        if named_checksum(path) is None:
            return
        checksum = 0
        for block in self._blocks(path):
            checksum = crc32(block, checksum)
        self._compare(path, checksum)

    def _compare(self, path: str, checksum: int) -> None:
        if named_checksum(path) not in (None, checksum):
            message = "its bytes are not what was written"
            raise _unreadable(self.full_path(path), OSError(message))

    def write_table(self, path: str, table: pa.Table) -> FileFacts:
        """Write a new Parquet file with page checksums. Raises `StorageError` (74) if the storage fails."""
        return self._write(path, _as_parquet(table))

    def write_staged(self, directory: str, attempt: str, token: str, table: pa.Table) -> tuple[str, FileFacts]:
        """Write a new Parquet file in a directory (or ``""``), named like a file of a task; return its path and facts."""
        data = _as_parquet(table)
        path = f"{directory}/{staged_name(attempt, token, crc32(data))}".lstrip("/")
        return path, self._write(path, data)

    def write_digested(self, directory: str, table: pa.Table) -> tuple[str, FileFacts]:
        """Write a new Parquet file named by the `digest` of its bytes; return its path and facts."""
        data = _as_parquet(table)
        path = f"{directory}/{digest_of(data)}.parquet"
        return path, self._write(path, data)

    def write_bytes(self, path: str, data: pa.Buffer) -> None:
        """Write a file. Raises `StorageError` (74) if the storage fails."""
        self._write(path, data)

    def remove(self) -> None:
        """Delete the folder and its contents, if it exists."""
        if self._fs.get_file_info(self._base).type == fs.FileType.Directory:
            self._fs.delete_dir(self._base)

    def files(self) -> Iterator[tuple[str, int, int]]:
        """Yield path, size in bytes and modification time (epoch ms) of every file, sorted by path. Skips Delta's log."""
        for path, facts in self.listed():
            with suppress(FileNotFoundError):
                yield path, *facts()

    def listed(self) -> list[Listed]:
        """Return every file below the folder, sorted by path. Size and time are not read yet. Skips Delta's log."""
        files = object_files(self._fs, self._base) if is_uri(self.root) else local_files(self._base)
        return sorted(files, key=itemgetter(0))

    def sizes(self, paths: Collection[str] | None = None) -> dict[str, int]:
        """Return the sizes (bytes) of the files ``paths``, by path; of all files below the folder if ``paths`` is None.

        For many paths in a bucket, the sizes of all files are returned, because one listing takes fewer requests.
        """
        if paths is not None and (not is_uri(self.root) or len(paths) <= FEW):
            return object_sizes(self._fs, self._base, paths) if is_uri(self.root) else local_sizes(self._base, paths)
        return {path: size for path, size, _ in self.files()}

    def delete(self, path: str, *, is_folder: bool = False) -> None:
        """Delete a file, or a folder and its contents, if it exists. Raises `StorageError` (74)."""
        full = f"{self._base}/{path}"
        try:
            kind = self._fs.get_file_info(full).type
            if is_folder and kind == fs.FileType.Directory:
                self._fs.delete_dir(full)
            elif kind == fs.FileType.File:
                self._fs.delete_file(full)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(
                "file-undeletable",
                "{path} cannot be deleted: {error}. Fix the permission, then run the command again",
                path=self.full_path(path),
                error=error,
            ) from error

    def copy_from(self, other: Folder, path: str, size: int) -> None:
        """Copy a file of another folder to the same path here, unless a file of that size exists.

        Raises `StorageError` (74) if the file cannot be read or written, or if its bytes do not have the CRC-32 in its name.
        """
        facts = self.facts(path)
        if facts is not None and facts.bytes == size:
            return
        try:
            with other._fs.open_input_stream(f"{other._base}/{path}", compression=None) as stream:
                data = stream.read()
        except OSError as error:
            raise _unreadable(other.full_path(path), error) from error
        other._compare(path, crc32(data))
        self._write(path, data)

    def _write(self, path: str, data: pa.Buffer) -> FileFacts:
        full, shown, is_local = f"{self._base}/{path}", self.full_path(path), not is_uri(self.root)
        is_new = is_local and self.facts(path) is None
        try:
            # A bucket has neither folders nor half-written objects.
            if is_local:
                self._fs.create_dir(full.rpartition("/")[0], recursive=True)
            with self._fs.open_output_stream(full, compression=None) as stream:
                stream.write(data)
        except (OSError, pa.ArrowException) as error:
            if is_new:
                with suppress(OSError):
                    self._fs.delete_file(full)
            raise failed_io(
                error,
                "file-not-writable",
                "{path} cannot be written: {error}. Make room or fix the permission, then run again",
                path=shown,
                error=error,
            ) from error
        # If a put raises no error, the object is complete. Its modification time would take another request.
        facts = self.facts(path) if is_local else FileFacts(len(data), time.time_ns() // 1_000_000)
        if facts is None:
            raise StorageError(
                "file-deleted-after-write",
                "{path} was deleted right after it was written: stop whatever did that, then run again",
                path=shown,
            )
        return facts

    def digest(self, path: str) -> str:
        """Return the BLAKE2b digest (16 bytes, hexadecimal) of a file's bytes."""
        state: Any = blake2b(digest_size=_DIGEST_BYTES)
        for block in self._blocks(path):
            state.update(block)
        return str(state.hexdigest())

    def _blocks(self, path: str) -> Iterator[bytes]:
        try:
            with self._fs.open_input_stream(f"{self._base}/{path}", compression=None) as stream:
                while block := stream.read(_CHUNK):
                    yield block
        except OSError as error:
            raise _unreadable(self.full_path(path), error) from error


def is_small(parquet: pq.ParquetFile) -> bool:
    """Return whether a file has so few rows that decoding its columns in threads takes more time than it saves."""
    return bool(parquet.metadata.num_rows <= _ROWS_WITHOUT_THREADS)


def digest_of(data: pa.Buffer) -> str:
    """Return the digest that `Folder.digest` returns for a file with these bytes."""
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def _as_parquet(table: pa.Table) -> pa.Buffer:
    """Return a table as a Parquet file with page checksums."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=True)
    return sink.getvalue()


def _unreadable(path: str, error: Exception) -> RewindowError:
    if (refused := unreadable(path, error)) is not None:
        return refused
    fix = "Restore the file from a copy. `rewindow republish JOB` makes those of outputs and stores again"
    if any(f"/{ledger}/" in path for ledger in (RUNS, LANDINGS)):
        fix = "Restore the file from a copy. It is of a ledger, so no command can make it again"
    return DamagedFileError("file-unreadable", "{path} cannot be read: {error}. {fix}", path=path, error=error, fix=fix)
