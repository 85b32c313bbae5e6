"""Opening a Parquet file that a task reads: its bytes are checked before a row of them is believed.

Page checksums do not cover the headers of pages and the footer, and a flipped bit there can be a wrong number. So the
names of our own files say the CRC-32 of all their bytes, which costs a quarter of a nanosecond a byte.
What Spark reads for a task is checked in `verified`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.staged_files import named_checksum
from rewindow.errors import StorageError
from rewindow.storage.locations import is_uri, opened

UNREADABLE = (OSError, pa.ArrowException, KeyError, ValueError)
"""What Arrow raises for bytes that are no Parquet file, or one that lacks a column."""

_BLOCK = 1 << 20
_AT_ONCE = 64 << 20
"""So large a file of a bucket is read once, whole. A larger one is read twice, once for its checksum."""


def open_verified(path: str, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file. Raises one of `UNREADABLE` if it is gone, damaged or no Parquet file."""
    stated = named_checksum(path)
    if is_uri(path):
        return pq.ParquetFile(_of_bucket(path, stated), page_checksum_verification=True, **options)
    check_bytes(path)
    return pq.ParquetFile(path, page_checksum_verification=True, **options)


def check_bytes(path: str) -> None:
    """Read a file and compare it with the CRC-32 that its name states, if it states one. Raises one of `UNREADABLE`."""
    stated = named_checksum(path)
    if stated is None:
        return
    checksum = 0
    with _binary(path) as file:
        while block := file.read(_BLOCK):
            checksum = crc32(block, checksum)
    if checksum != stated:
        raise _damaged()


def unreadable(topic: str, path: str, error: BaseException) -> StorageError:
    """Return what it is to a person that a log's file cannot be read."""
    return StorageError(f"log {topic!r}: cannot read {path}: {error}. Restore the file, or land a new generation")


def _binary(path: str) -> Any:
    if not is_uri(path):
        return Path(path).open("rb")
    system, place = opened(path)
    return system.open_input_stream(place)


def _of_bucket(path: str, stated: int | None) -> Any:
    """Return an object as Arrow reads it, its bytes checked: in one request, if it is small enough to be held."""
    system, place = opened(path)
    file = system.open_input_file(place)
    if stated is None:
        return file
    size = file.size()
    if size <= _AT_ONCE:
        data = file.read_at(size, 0)
        file.close()
        if crc32(data) != stated:
            raise _damaged()
        return pa.BufferReader(data)
    checksum = 0
    while block := file.read(_BLOCK):
        checksum = crc32(block, checksum)
    if checksum != stated:
        raise _damaged()
    file.seek(0)
    return file


def _damaged() -> OSError:
    return OSError("its bytes are not what was written")
