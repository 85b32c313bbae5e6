"""Write staged files: Parquet files that no table references yet, each described by a `StagedFile`.

A task may run twice (retry, speculation). This does no harm. File names contain the attempt and a new uuid, so no existing
file is overwritten. Only the manifest of one of the two executions is used, and so only its files. On a disk and in a bucket,
a file appears under its final name only when it is complete (`Draft`).
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from uuid import uuid4
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindow.contracts.staged_files import StagedFile, staged_name
from rewindow.engine.worker.digest import RowsDigest
from rewindow.errors import RewindowError, failed_io
from rewindow.storage.locations import filesystem_of, is_uri

ROW_GROUP = 128 * 1024
"""Rows per row group."""
DIGEST_BYTES = 16
Share = Callable[[pa.Table], bool]
"""A function that adds rows to a file that several writers share. If there are too many rows, it adds none and returns
False."""
_TEXT_LIMIT = 32
"""A column has bounds only if its texts have at most this many characters. Longer bounds would have to be shortened, and it
is easy to shorten an upper bound wrongly."""


class FileWriter:
    """A writer of one new file, with rows of one partition of one table. It creates nothing before the first row."""

    def __init__(
        self,
        table_root: str,
        directory: str,
        schema: pa.Schema,
        *,
        target: str,
        partition: int,
        attempt: str,
        partition_values: Mapping[str, str],
        stats_columns: Sequence[str],
        constants: Mapping[str, int] | None = None,
        undigested: Sequence[str] = (),
        share: Share | None = None,
    ) -> None:
        """Prepare a file in ``directory`` (relative to the table's root, ``""`` for the root itself).

        ``schema`` is the schema of the batches. ``partition_values`` has the table's partition columns and their values,
        which are the same for all rows. ``constants`` has further columns with the same value in all rows. The ``undigested``
        columns do not count in the digest of the rows. If the writer is closed before it has created its file, it offers its
        rows to ``share``. If ``share`` takes them, the writer creates no file.
        """
        self._attempt, self._token = attempt, uuid4().hex
        self._directory = directory
        # The file first gets another name, because its final name contains the checksum.
        self._new_draft = partial(draft, table_root, directory, f"{attempt}-{self._token}.parquet")
        self._schema, self._constants, self._share = schema, dict(constants or {}), share
        self._file_schema = pa.schema([*schema, *(pa.field(name, pa.int64()) for name in self._constants)])
        self._target, self._partition = target, partition
        self._partition_values = dict(partition_values)
        self._stats = {column: _ColumnStats() for column in stats_columns}
        self._rows = 0
        self._digest = RowsDigest(("_run", *undigested))
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._file: _DigestedFile | None = None
        self._parquet: pq.ParquetWriter | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the batches."""
        return self._schema

    @property
    def rows(self) -> int:
        """Rows written so far."""
        return self._rows

    def write(self, batch: pa.RecordBatch) -> None:
        """Add the rows of the next batch. Raises `StorageError` (74) if the file cannot be written."""
        if batch.num_rows == 0:
            return
        self._rows += batch.num_rows
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= ROW_GROUP:
            self._flush()

    def end_group(self, rows: int) -> None:
        """End the row group if it has at least ``rows`` rows. Raises `StorageError` (74) if the file cannot be written."""
        if self._waiting_rows >= rows:
            self._flush()

    def close(self) -> StagedFile | None:
        """Make the file durable and return its description; None if there were no rows, or if `share` took them."""
        if self._rows == 0:
            return None
        if self._share is not None and self._file is None and self._share(self._waiting_table()):
            self._waiting.clear()
            return None
        try:
            file, parquet = self._flush()
            parquet.close()
            name = staged_name(self._attempt, self._token, file.checksum)
            file.keep(name)
        except OSError as error:
            raise self._failure(error) from error
        return StagedFile(
            target=self._target,
            partition=self._partition,
            path=f"{self._directory}/{name}" if self._directory else name,
            rows=self._rows,
            bytes=file.size,
            partition_values=self._partition_values,
            stats=_delta_stats(self._rows, self._stats),
            rows_digest=self._digest.hexdigest(),
            file_digest=file.hexdigest(),
        )

    def abort(self) -> None:
        """Close and delete the file."""
        self._waiting.clear()
        if self._file is not None:
            self._file.discard()
        self._rows = 0

    def __enter__(self) -> Self:
        """Return the writer. An exception in the block deletes the file."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Delete the file if the block raised."""
        if kind is not None:
            self.abort()

    def _flush(self) -> tuple[_DigestedFile, pq.ParquetWriter]:
        try:
            if self._file is None or self._parquet is None:
                self._file, self._parquet = self._open()
            if self._waiting:
                # Many batches are small, and each write costs extra time. So batches are combined.
                rows = self._waiting_table().combine_chunks()
                for batch in rows.to_batches():
                    self._digest.update(batch)
                    for column, stats in self._stats.items():
                        stats.update(batch.column(column))
                count = self._waiting_rows
                # If fewer rows than two row groups remain, they are written as one row group, so that the last one is not
                # small.
                group = count if count < 2 * ROW_GROUP else ROW_GROUP
                self._parquet.write_table(rows, row_group_size=group)
        except OSError as error:
            raise self._failure(error) from error
        self._waiting.clear()
        self._waiting_rows = 0
        return self._file, self._parquet

    def _waiting_table(self) -> pa.Table:
        """Return the rows that are not written yet, with the constant columns."""
        rows = pa.Table.from_batches(self._waiting, self._schema)
        for name, value in self._constants.items():
            rows = rows.append_column(name, pa.repeat(pa.scalar(value, pa.int64()), rows.num_rows))
        return rows

    def _open(self) -> tuple[_DigestedFile, pq.ParquetWriter]:
        file = _DigestedFile(self._new_draft())
        longs = [field.name for field in self._file_schema if pa.types.is_integer(field.type)]
        texts = [field.name for field in self._file_schema if pa.types.is_string(field.type)]
        try:
            parquet = pq.ParquetWriter(
                file,
                self._file_schema,
                compression="zstd",
                use_dictionary=texts or False,
                column_encoding=dict.fromkeys(longs, "DELTA_BINARY_PACKED") or None,
                write_page_checksum=True,
                store_schema=False,
            )
        except BaseException:
            # `abort` cannot delete this file yet, because `_file` is not set.
            file.discard()
            raise
        return file, parquet

    def _failure(self, error: OSError) -> RewindowError:
        return failed_io(
            error,
            "staged-file-not-written",
            "cannot write {file}: {reason}. Free space or fix access, then run the command again",
            file=self._new_draft(),
            reason=error.strerror or str(error),
        )


class _DigestedFile:
    """The file object to which the Parquet writer writes. It computes the digest and the checksum of the written bytes."""

    def __init__(self, draft: Draft) -> None:
        self._draft, self._file = draft, draft.open()
        self._digest = blake2b(digest_size=DIGEST_BYTES)
        self.checksum = 0
        self.size = 0
        self.mode = "wb"
        self.closed = False

    def write(self, data: Any) -> int:
        # After `discard`, data is ignored, because the Parquet writer still writes its footer when it is garbage-collected.
        if self.closed:
            return len(data)
        self._digest.update(data)
        self.checksum = crc32(data, self.checksum)
        written = self._file.write(data)
        self.size += written
        return written

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._file.flush()

    def seekable(self) -> bool:
        return False

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def keep(self, name: str) -> None:
        self.closed = True
        self._draft.keep(name)

    def discard(self) -> None:
        self.closed = True
        self._draft.discard()

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _delta_stats(rows: int, columns: Mapping[str, _ColumnStats]) -> dict[str, Any]:
    bounded = {column: stats for column, stats in columns.items() if stats.smallest is not None}
    return {
        "numRecords": rows,
        "minValues": {column: stats.smallest for column, stats in bounded.items()},
        "maxValues": {column: stats.largest for column, stats in bounded.items()},
        "nullCount": {column: stats.nulls for column, stats in columns.items()},
    }


class _ColumnStats:
    """The number of nulls, the minimum and the maximum of a column.

    Minimum and maximum are left out if JSON cannot represent them exactly.
    """

    def __init__(self) -> None:
        """Start without values."""
        self.nulls = 0
        self.smallest: Any = None
        self.largest: Any = None
        self._bounded = True

    def update(self, column: pa.Array) -> None:
        """Add values of the column."""
        self.nulls += column.null_count
        if not self._bounded or column.null_count == len(column):
            return
        if not _is_bounded(column):
            self._bounded, self.smallest, self.largest = False, None, None
            return
        bounds = pc.min_max(column).as_py()
        self.smallest = bounds["min"] if self.smallest is None else min(self.smallest, bounds["min"])
        self.largest = bounds["max"] if self.largest is None else max(self.largest, bounds["max"])


def _is_bounded(column: pa.Array) -> bool:
    kind = column.type
    if pa.types.is_integer(kind):
        return True
    if pa.types.is_floating(kind):
        return math.isfinite(pc.sum(column).as_py() or 0.0)
    if pa.types.is_string(kind):
        # Bytes are counted first, which is faster. A text has no more characters than bytes.
        return any(
            (pc.max(length(column)).as_py() or 0) <= _TEXT_LIMIT for length in (pc.binary_length, pc.utf8_length)
        )
    return False


_BLOCK = 1 << 20


class Draft:
    """A new file that gets its final name when it is complete. A draft that a killed process leaves behind is harmless."""

    def __init__(self, root: str, directory: str, name: str) -> None:
        """Prepare a file below a table's root. Creates nothing."""
        self._path = Path(root.removeprefix("file://")) / directory / name
        self._file: IO[bytes] | None = None

    def __str__(self) -> str:
        """Return the path, for messages."""
        return str(self._path)

    def open(self) -> IO[bytes]:
        """Create the file. Raises OSError if the file exists or cannot be created."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        self._file = os.fdopen(descriptor, "wb")
        return self._file

    def keep(self, name: str) -> None:
        """Make the file durable under its final name, in the same directory."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        self._path = self._path.rename(self._path.with_name(name))

    def discard(self) -> None:
        """Close and delete the file."""
        if self._file is not None:
            # Closing fails on a full disk, because it writes the buffered bytes.
            with suppress(OSError):
                self._file.close()
            self._path.unlink(missing_ok=True)


class BucketDraft(Draft):
    """A new object in a bucket. Objects cannot be renamed, so the bytes stay in an unnamed local file until `keep`."""

    def __init__(self, root: str, directory: str, name: str) -> None:
        """Prepare an object below a table's root."""
        self._folder = f"{root.rstrip('/')}/{directory}".rstrip("/")
        self._name = name
        self._file: IO[bytes] | None = None

    def __str__(self) -> str:
        """Return the URI, for messages."""
        return f"{self._folder}/{self._name}"

    def open(self) -> IO[bytes]:
        """Create the unnamed file in ``TMPDIR``."""
        self._file = tempfile.TemporaryFile(prefix="rewindow-")  # noqa: SIM115 - `keep` and `discard` close it
        return self._file

    def keep(self, name: str) -> None:
        """Upload the object, atomically."""
        self._name = name
        if self._file is not None:
            self._file.seek(0)
            system, location = filesystem_of(str(self))
            with self._file, system.open_output_stream(location, compression=None) as stream:
                shutil.copyfileobj(self._file, stream, _BLOCK)

    def discard(self) -> None:
        """Close the file, which deletes it."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()


def draft(root: str, directory: str, name: str) -> Draft:
    """Return a draft below a table's root, local or in a bucket."""
    return (BucketDraft if is_uri(root.removeprefix("file://")) else Draft)(root, directory, name)
