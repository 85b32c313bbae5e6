"""Split two tables into partitions by key, so that all rows of a key, of both tables, are in one partition.

Tables of any size are compared in the memory of one partition; the others wait in local temporary files.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.errors import failed_io
from rewindow.tables.shared.content_hash import canonical_values
from rewindow.tables.shared.diff import PARTITION_ROWS

_FILES = 64
_PAIR = ("first", "second")

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(32)

Words = npt.NDArray[np.uint64]


def partition_pairs(
    first: pa.RecordBatchReader, second: pa.RecordBatchReader, keys: Sequence[str], rows: int, level: int = 1
) -> Generator[tuple[pa.Table, pa.Table], None, None]:
    """Yield the rows of two tables, partition by partition. ``rows``: about how many the larger table has.

    Raises `LimitError` (71) if the disk of temporary files is full, `StorageError` (74) for its other errors.
    """
    count = min(_FILES, -(-rows // PARTITION_ROWS)) if keys else 1
    if count <= 1:
        yield first.read_all(), second.read_all()
        return
    with TemporaryDirectory(prefix="rewindow-") as folder:
        pair = [Path(folder, side) for side in _PAIR]
        written = [_split(reader, keys, side, count, level) for reader, side in zip((first, second), pair, strict=True)]
        for number, most in enumerate(map(max, *written)):
            files = [side / str(number) for side in pair]
            with pa.OSFile(str(files[0])) as one, pa.OSFile(str(files[1])) as other:
                readers = pa.ipc.open_stream(one), pa.ipc.open_stream(other)
                # If a split does not divide a partition, its rows have one key, or nearly so. It is not split again.
                yield from partition_pairs(*readers, keys, most if most < rows else 0, level + 1)


def _split(reader: pa.RecordBatchReader, keys: Sequence[str], folder: Path, count: int, level: int) -> list[int]:
    """Write rows to files named by the number of their partition; return how many rows each got."""
    rows = np.zeros(count, dtype=np.int64)
    try:
        folder.mkdir()
        with ExitStack() as stack:
            files = [stack.enter_context(pa.OSFile(str(folder / str(number)), "wb")) for number in range(count)]
            writers = [stack.enter_context(pa.ipc.new_stream(file, reader.schema)) for file in files]
            for batch in reader:
                partitions = (_words(batch, keys, level) % np.uint64(count)).astype(np.int64)
                ordered = batch.take(pa.array(np.argsort(partitions, kind="stable")))
                sizes = np.bincount(partitions, minlength=count)
                for number, start in enumerate(np.cumsum(sizes) - sizes):
                    if sizes[number]:
                        writers[number].write_batch(ordered.slice(start, sizes[number]))
                rows += sizes
    except OSError as error:
        message = f"{folder} cannot be written: {error}. Free space there, or set TMPDIR to another disk"
        raise failed_io(error, message) from error
    return [int(number) for number in rows]


def _words(batch: pa.RecordBatch, keys: Sequence[str], level: int) -> Words:
    """Return a 64-bit hash of each row's key that spreads keys evenly."""
    rows = np.full(batch.num_rows, level, dtype=np.uint64)
    for name in keys:
        rows = (rows ^ _column_words(batch[name])) * _ODD
        rows ^= rows >> _SHIFT
        rows *= _MIX
        rows ^= rows >> _SHIFT
    return rows


def _column_words(column: pa.Array) -> Words:
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = pc.fill_null(canonical_values(column.cast(pa.float64())), 0.0)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        numbers = pc.fill_null(column.cast(pa.int64()), 0)
    else:
        texts = column.cast(pa.string()) if pa.types.is_decimal(kind) else column
        encoded = texts.cast(pa.binary()).dictionary_encode()
        sums = pa.array([*map(crc32, encoded.dictionary.to_pylist()), 0], pa.int64())
        numbers = sums.take(pc.fill_null(encoded.indices, len(sums) - 1))
    words: Words = numbers.to_numpy(zero_copy_only=False).view(np.uint64)
    return words
