"""Records as columns of text, and pages.

A page is a batch of records that is kept until it is known which types the columns have, and which rows are due.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rewindow.errors import RewindowError, StorageError, failed_io
from rewindow.storage.locations import filesystem_of


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a block of text: columns of text, the line of each record in the block, and the faults of records."""

    columns: Mapping[str, pa.Array]
    """Texts, all of the same length; null where a record has no value."""
    lines: npt.NDArray[np.int64]
    """The line in the block, from 0, in which each record begins."""
    faults: Mapping[int, str]
    """Maps the row of a wrong record to what is wrong with it. The columns of such a record are null."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of text: a batch in memory, or a range of bytes in a file that workers can read."""

    rows: int
    batch: pa.RecordBatch | None = None
    path: str = ""
    start: int = 0
    size: int = 0

    def read(self) -> pa.RecordBatch:
        """Return the rows. Raises `StorageError` (74) if the page's file is gone."""
        if self.batch is not None:
            return self.batch
        system, location = filesystem_of(self.path)
        try:
            with system.open_input_file(location) as file:
                file.seek(self.start)
                return pa.ipc.open_stream(file.read_buffer(self.size)).read_next_batch()
        except (OSError, pa.ArrowException) as error:
            raise not_read_back(self.path, error) from error


def written(batches: Iterator[pa.RecordBatch], folder: str) -> Sequence[Page]:
    """Write batches to a new file in a folder; return a page for each batch. Batches may have different schemas.

    Raises `StorageError` (74), or `LimitError` (71) if the disk is full.
    """
    head = next(batches, None)
    if head is None:
        return ()
    path = f"{folder}/text-{uuid4().hex}.arrow"
    system, location = filesystem_of(path)
    pages: list[Page] = []
    try:
        with system.open_output_stream(location, compression=None) as file:
            batch: pa.RecordBatch | None = head
            while batch is not None:
                start = file.tell()
                with pa.ipc.new_stream(file, batch.schema) as stream:
                    stream.write_batch(batch)
                pages.append(Page(batch.num_rows, None, path, start, file.tell() - start))
                batch = next(batches, None)
    except OSError as error:
        raise not_written(path, error) from error
    return tuple(pages)


def not_written(path: str, error: OSError) -> RewindowError:
    """Return the error for a temporary file of a landing that cannot be written."""
    return failed_io(
        error,
        "landing-file-not-written",
        "cannot write {file}: {reason}. Free space or fix access there (or set TMPDIR), then land again",
        file=path,
        reason=error.strerror or str(error),
    )


def not_read_back(path: str, error: Exception) -> StorageError:
    """Return the error for a temporary file of a landing that cannot be read back."""
    return StorageError(
        "landing-file-not-read-back",
        "{file}, which this landing wrote, cannot be read: {reason}. Land again",
        file=path,
        reason=str(error),
    )
