"""Opening a Parquet file that a task reads: its bytes are checked before a row of them is believed.

Page checksums do not cover the headers of pages and the footer, and a flipped bit there can be a wrong number. So the
names of our own files say the CRC-32 of all their bytes, which costs a quarter of a nanosecond a byte.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.core.staging import named_checksum
from rewindow.storage.places import is_uri, opened

UNREADABLE = (OSError, pa.ArrowException, KeyError, ValueError)
"""What Arrow raises for bytes that are no Parquet file, or one that lacks a column."""

_BLOCK = 1 << 20
_AT_ONCE = 64 << 20
"""So large a file of a bucket is read once, whole. A larger one is read twice, once for its checksum."""


def open_checked(path: str, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file. Raises one of `UNREADABLE` if it is gone, damaged or no Parquet file."""
    stated = named_checksum(path)
    if is_uri(path):
        return pq.ParquetFile(_of_bucket(path, stated), page_checksum_verification=True, **options)
    if stated is not None and checksum_of(path) != stated:
        raise _damaged()
    return pq.ParquetFile(path, page_checksum_verification=True, **options)


def checksum_of(path: str) -> int:
    """Return the CRC-32 of a file's bytes."""
    checksum = 0
    with Path(path).open("rb") as file:
        while block := file.read(_BLOCK):
            checksum = crc32(block, checksum)
    return checksum


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
