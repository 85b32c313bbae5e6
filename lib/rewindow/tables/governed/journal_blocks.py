"""Blocks: staged files as values, and rows of the journal as workers make them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.staged_files import StagedFile
from rewindow.control.plan.stored_rows import stored_json
from rewindow.engine.worker.parquet_writer import DIGEST_BYTES

ROW = "sub_topology long, partition long, kind string, path string, text string, data binary"
ROW_SCHEMA = pa.schema(
    [
        ("sub_topology", pa.int64()),
        ("partition", pa.int64()),
        ("kind", pa.string()),
        ("path", pa.string()),
        ("text", pa.string()),
        ("data", pa.binary()),
    ]
)
ROOT = "block:"
"""The prefix of the roots of a run's targets: a prefix of block paths follows."""
BLOCK = "block"
"""The kind of the journal's rows that have the bytes of a staged file."""


def block_path(attempt: str, target: str, path: str) -> str:
    """Return the path of a staged file's block in the journal."""
    return f"{attempt}/{target}/{path}"


def digest_of(data: bytes | pa.Buffer) -> str:
    """Return the digest of a block, as `StagedFile.file_digest`."""
    return blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def journal_row(part: int, partition: int, kind: str, path: str, text: str, data: bytes | None) -> pa.RecordBatch:
    """Return one row of the journal as a record batch."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([value], field.type)
            for value, field in zip((part, partition, kind, path, text, data), ROW_SCHEMA, strict=True)
        ],
        schema=ROW_SCHEMA,
    )


def file_row(part: int, partition: int, attempt: str, file: StagedFile, root: str) -> pa.RecordBatch:
    """Return the row of a staged file below a local folder; delete the file."""
    path = Path(root, file.path)
    data = path.read_bytes()
    path.unlink()
    return journal_row(part, partition, BLOCK, block_path(attempt, file.target, file.path), stored_json({}), data)


def rows_of_block(data: bytes) -> pa.Table:
    """Return the rows of a block. Page checksums are verified."""
    return _block(data).read()


def batches_of_block(data: bytes | pa.Buffer, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a block batch by batch: decoded, a block can be much larger. Page checksums are verified."""
    for batch in _block(data).iter_batches():
        yield batch.select(list(names))


def _block(data: bytes | pa.Buffer) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
