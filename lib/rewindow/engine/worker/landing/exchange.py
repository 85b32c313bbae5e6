"""The exchange between the two passes of a landing: files of sorted rows, a *run* each, with a batch range per partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa

from rewindow.engine.worker.log_blocks import by_partition
from rewindow.errors import StorageError, failed_io
from rewindow.storage.locations import filesystem_of

BATCH_ROWS = 32 * 1024
"""Rows per batch: what a merge holds of each run."""


@dataclass(frozen=True, slots=True)
class Run:
    """A file of sorted rows: for each partition its batches ``[start, end)``."""

    path: str
    batches: Mapping[int, tuple[int, int]]

    def as_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        """Return the value that `as_json` serialized."""
        return cls(data["path"], {int(number): (first, end) for number, (first, end) in data["batches"].items()})


def write_run(folder: str, attempt: str, rows: pa.RecordBatch) -> Run:
    """Write rows that are sorted by partition to a new file. Raises `StorageError` (74), or `LimitError` (71) if it is full."""
    path = f"{folder}/{attempt}-{uuid4().hex}.arrow"
    try:
        return Run(path, _write(path, rows))
    except OSError as error:
        fix = "Free space or fix access there (or set TMPDIR), then land again"
        message = f"cannot write {path}: {error.strerror or error}. {fix}"
        raise failed_io(error, message) from error


def _write(path: str, rows: pa.RecordBatch) -> dict[int, tuple[int, int]]:
    system, location = filesystem_of(path)
    batches: dict[int, tuple[int, int]] = {}
    written = 0
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        system.open_output_stream(location, compression=None) as stream,
        pa.ipc.new_file(stream, rows.schema, options=options) as file,
    ):
        for partition, some in by_partition(rows):
            first = written
            for start in range(0, some.num_rows, BATCH_ROWS):
                file.write_batch(some.slice(start, BATCH_ROWS))
                written += 1
            batches[partition] = (first, written)
    return batches


def read_run(run: Run, partition: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a partition, in order. Raises `StorageError` (74) if the file cannot be read."""
    system, location = filesystem_of(run.path)
    try:
        with system.open_input_file(location) as file, pa.ipc.open_file(file) as reader:
            for number in range(*run.batches[partition]):
                yield reader.get_batch(number)
    except (OSError, pa.ArrowException) as error:
        message = f"{run.path}, which this landing wrote, cannot be read: {error}. Land again"
        raise StorageError(message) from error
