"""Open the Parquet files that tasks read, and verify their checksums first.

Parquet's page checksums do not cover page headers and the footer, but a flipped bit there can change a value, too. So the name of
each file that rewindow writes contains the CRC-32 of all its bytes. Verifying the CRC-32 takes 0.25 ns per byte. For logs that
Spark reads, see `engine.spark.spark_engine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.staged_files import named_checksum
from rewindow.errors import StorageError
from rewindow.storage.locations import filesystem_of, is_uri
from rewindow.storage.objects import Objects

UNREADABLE = (OSError, pa.ArrowException, KeyError, ValueError)
"""The exceptions that Arrow raises for a file that is not Parquet, or lacks a column."""

_BLOCK = 1 << 20
_READ_BYTES = 1 << 20
"""Files smaller than this are read into memory at once. Larger files are read twice: first for the checksum, then by Arrow."""
_ROWS_WITHOUT_THREADS = 32 * 1024
_HELD_BYTES = 64 << 20
"""The largest object of a bucket that is held in memory. Larger objects are read twice: first for the checksum, then by
Arrow."""
_FULL_DICTIONARY = 1 << 20
"""Writers end a column's dictionary at this size in bytes, and store later values without a dictionary. To read those
dictionary-encoded, Arrow would have to hash them."""
_FEW_ROWS = 1024


def open_verified(path: str, *, dictionary: Sequence[str] = (), repeating: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a Parquet file. Raises one of `UNREADABLE` if the file is missing, corrupt or not Parquet.

    Columns in ``dictionary`` are read dictionary-encoded. Columns in ``repeating`` are read dictionary-encoded only if the
    file's dictionaries contain all values of the column, because only then is it faster.
    """
    source, options = _verified(path)
    if repeating:
        options["metadata"] = pq.read_metadata(source)
        dictionary = [*dictionary, *_encoded(options["metadata"], repeating)]
    return pq.ParquetFile(source, page_checksum_verification=True, read_dictionary=list(dictionary), **options)


def uses_threads(parquet: pq.ParquetFile) -> bool:
    """Return whether to decode the columns of a file in parallel. For few rows, threads take more time than they save."""
    return bool(parquet.metadata.num_rows > _ROWS_WITHOUT_THREADS)


def check_bytes(path: str) -> None:
    """Compare a file with the CRC-32 in its name, if its name has one. Raises one of `UNREADABLE`."""
    stated = named_checksum(path)
    if stated is None:
        return
    checksum = 0
    with _binary(path) as file:
        while block := file.read(_BLOCK):
            checksum = crc32(block, checksum)
    if checksum != stated:
        raise _mismatch()


def unreadable(topic: str, path: str, error: BaseException) -> StorageError:
    """Return the error for a file of a log that cannot be read."""
    return StorageError(
        "log-file-unreadable",
        "log {topic!r}: cannot read {file}: {reason}. Restore the file from a copy, or land the source again: "
        "`rewindow land FEED --new-generation`",
        topic=topic,
        file=path,
        reason=str(error),
    )


def _verified(path: str) -> tuple[Any, dict[str, Any]]:
    """Check a file's bytes. Return the file for Arrow, and the options with which Arrow reads it."""
    stated = named_checksum(path)
    if is_uri(path):
        return _of_bucket(path, stated), {}
    with Path(path).open("rb") as file:
        data = file.read(_READ_BYTES)
    if len(data) == _READ_BYTES:
        check_bytes(path)
        return path, {}
    if stated not in (None, crc32(data)):
        raise _mismatch()
    return pa.BufferReader(data), {"pre_buffer": False}


def _encoded(metadata: Any, columns: Sequence[str]) -> list[str]:
    """Return those columns whose values are all in the dictionaries of a file's row groups.

    Returns no columns if the file has few rows.
    """
    if metadata.num_rows < _FEW_ROWS:
        return []
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    # An older file may lack a column.
    positions = {name: position for position, name in enumerate(metadata.schema.names)}
    chunks = {name: [group.column(positions[name]) for group in groups] for name in columns if name in positions}
    return [name for name, of_column in chunks.items() if all(map(_is_encoded, of_column))]


def _is_encoded(chunk: Any) -> bool:
    return bool(chunk.has_dictionary_page and chunk.total_uncompressed_size < _FULL_DICTIONARY)


def _binary(path: str) -> Any:
    if not is_uri(path):
        return Path(path).open("rb")
    system, location = filesystem_of(path)
    return system.open_input_stream(location)


def _of_bucket(path: str, stated: int | None) -> Any:
    """Return an object of a bucket for Arrow, after checking its bytes. A small object takes one request."""
    system, location = filesystem_of(path)
    if stated is None:
        return system.open_input_file(location)
    folder, _, name = path.rpartition("/")
    data = Objects(folder).get(name, most_bytes=_HELD_BYTES)
    if data is not None:
        if crc32(data) != stated:
            raise _mismatch()
        return pa.BufferReader(data)
    check_bytes(path)
    return system.open_input_file(location)


def _mismatch() -> OSError:
    return OSError("its bytes differ from the checksum in its name")
