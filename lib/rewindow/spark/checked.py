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

UNREADABLE = (OSError, pa.ArrowException, KeyError, ValueError)
"""What Arrow raises for bytes that are no Parquet file, or one that lacks a column."""

_BLOCK = 1 << 20


def open_checked(path: str, **options: Any) -> pq.ParquetFile:
    """Open a local Parquet file. Raises one of `UNREADABLE` if it is gone, damaged or no Parquet file."""
    stated = named_checksum(path)
    if stated is not None and checksum_of(path) != stated:
        message = "its bytes are not what was written"
        raise OSError(message)
    return pq.ParquetFile(path, page_checksum_verification=True, **options)


def checksum_of(path: str) -> int:
    """Return the CRC-32 of a file's bytes."""
    checksum = 0
    with Path(path).open("rb") as file:
        while block := file.read(_BLOCK):
            checksum = crc32(block, checksum)
    return checksum
