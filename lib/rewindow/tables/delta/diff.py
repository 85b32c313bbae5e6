"""Compare tables of files key by key, and hash the content of a branch.

Both tables are split into partitions by key. All rows of a key are in the same partition of both tables. One partition at a
time is in memory, and the others are in local temporary files, so the tables may have any size.

The content hash of a store covers its current keys and values. The content hash of the metrics covers their totals and
extrema over the branch. So one run and a thousand runs over the same epochs have the same hashes (L2).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import CHANGELOG, OUTPUT
from rewindow.errors import failed_io
from rewindow.storage.scratch import scratch_folder
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.delta.checkpoints import store_rows
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.run_rows import metric_totals
from rewindow.tables.delta.table_rows import content_hash, count_rows, read_batches
from rewindow.tables.shared.content_hash import canonical_values, hash_rows, sorted_rows
from rewindow.tables.shared.diff import PARTITION_ROWS, TableDiff, check_keys, compare_pairs
from rewindow.tables.shared.paths import METRICS
from rewindow.tables.shared.publications import Reports

_FILES = 64
_PAIR = ("first", "second")

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(32)

Words = npt.NDArray[np.uint64]


def compare_tables(
    first: str, second: str, keys: Sequence[str], *, epochs: tuple[int, int], samples: int = 5
) -> TableDiff:
    """Compare the rows of two output tables with ``epochs[0] < _epoch <= epochs[1]``.

    One partition of the keys is in memory at a time. Raises `UsageError` (2) if the tables have different key columns.
    """
    after, through = epochs
    is_compared = (pc.field("_epoch") > after) & (pc.field("_epoch") <= through)
    first_rows, second_rows = (read_batches(path, where=is_compared) for path in (first, second))
    check_keys(first_rows.schema, second_rows.schema, keys)
    rows = max(count_rows(path) for path in (first, second))
    with closing(
        partition_pairs(first_rows, second_rows, keys, rows)
    ) as pairs:  # closing the generator removes the temporary files, even after an error
        return compare_pairs(pairs, keys, samples=samples)


def unstored_partition(target: str) -> list[str]:
    """Return the columns that files of a target may lack. In older changelogs, only directory names have the partition."""
    return [PARTITION] if target.startswith(CHANGELOG) else []


def staged_rows(root: str, reports: Sequence[TaskReport], target: str) -> pa.Table | None:
    """Return the rows that were staged for a target, in total order; None if there are none or a file is gone."""
    folder = Folder(root)
    files: list[StagedFile] = [file for report in reports for file in report.files if file.target == target]
    if not files or any(folder.facts(file.path) is None for file in files):
        return None
    return sorted_rows(pa.concat_tables([folder.read_table(file.path) for file in files]))


def partition_pairs(
    first: pa.RecordBatchReader, second: pa.RecordBatchReader, keys: Sequence[str], rows: int, level: int = 1
) -> Generator[tuple[pa.Table, pa.Table], None, None]:
    """Yield pairs: a partition of the first table, and the same partition of the second.

    ``rows``: about how many rows the larger table has. ``level``: how often the rows were split before; each level splits
    them differently. Raises `LimitError` (71) if the disk of temporary files is full, `StorageError` (74) for other errors of
    that disk.
    """
    count = min(_FILES, -(-rows // PARTITION_ROWS)) if keys else 1
    if count <= 1:
        yield first.read_all(), second.read_all()
        return
    with scratch_folder() as folder:
        pair = [Path(folder, side) for side in _PAIR]
        written = [_split(reader, keys, side, count, level) for reader, side in zip((first, second), pair, strict=True)]
        for number, most in enumerate(map(max, *written)):
            files = [side / str(number) for side in pair]
            with pa.OSFile(str(files[0])) as first_file, pa.OSFile(str(files[1])) as second_file:
                readers = pa.ipc.open_stream(first_file), pa.ipc.open_stream(second_file)
                # If a split leaves all rows in one partition, they have only one or a few keys. Such rows are not split again.
                yield from partition_pairs(*readers, keys, most if most < rows else 0, level + 1)


def _split(reader: pa.RecordBatchReader, keys: Sequence[str], folder: Path, count: int, level: int) -> list[int]:
    """Write rows to one file per partition, named by its number; return the number of rows in each file."""
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
        raise failed_io(
            error,
            "scratch-folder-not-writable",
            "{folder} cannot be written: {error}. Free space there, or set TMPDIR to another disk",
            folder=folder,
            error=error,
        ) from error
    return [int(number) for number in rows]


def _words(batch: pa.RecordBatch, keys: Sequence[str], level: int) -> Words:
    """Return an evenly distributed 64-bit hash of each row's key, which differs by ``level``."""
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


def branch_hashes(warehouse: str, state: JobState, name: str, reports: Reports) -> dict[str, str]:
    """Return the content hash of each target of a branch, by target. All runs of the branch must be published.

    A dropped branch has no hashes. A store has none if `gc` has deleted the state after the branch's last run.

    Raises `StorageError` (74) if a table cannot be read or a changelog was altered.
    """
    branch = state.branch(name)
    if branch.head is None or not branch.is_kept:
        return {}
    hashes = {}
    for target, table in sorted(branch.tables.items()):
        if target.startswith(OUTPUT):
            hashes[target] = content_hash(table_path(warehouse, table.path))
        elif target.startswith(CHANGELOG) and state.has_state(branch.head.spec.run):
            store = target.removeprefix(CHANGELOG)
            basis = state.basis(branch.head.spec.run)
            hashes[target] = hash_rows(store_rows(warehouse, branch.head, basis, store, reports))
        elif table.path == METRICS:
            hashes[target] = hash_rows(metric_totals(warehouse, branch.runs))
    return hashes
