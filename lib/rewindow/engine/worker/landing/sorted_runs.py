"""The rows of a landing: their columns, their order, and how to sort more rows than fit into memory.

Chunks of rows are sorted and written to files as *runs*, and the runs are merged into sorted batches. In a run, each
partition is a range of batches. Merging keeps one batch of each run in memory. The order is Spark's: nulls come first, texts
are in the order of their UTF-8 bytes, and NaN is last.

Most rows arrive in order, and few rows have equal values in the first columns. So rows are compared by a column only if they
are equal in all columns before it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from math import isnan
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from rewindow.contracts.ingest import FAR, LogColumns, LogSpec
from rewindow.engine.worker.text.pages import not_read_back, not_written
from rewindow.storage.locations import filesystem_of

PARTITION, ARRIVED, TIMESTAMP, FAULT = "_partition", "_arrival", "_timestamp", "_fault"
"""The columns of incoming batches, except keys and values. A fault is the reason why a row cannot be landed; null if it can."""
FILE, ROW = "_file", "_row"
"""The columns of incoming batches that are landed in file order (`FILE_ORDER`): the file's number, which sorts as the file's
name, and the row's number."""
NO_TIME = "_no_time"
"""An optional column, for timestamps that are texts. It contains the texts that are not valid times; other rows have null."""
_Longs = npt.NDArray[np.int64]


def order_name(name: str) -> str:
    """Return the name of a column of incoming batches that only decides the order of rows, and is not landed."""
    return f"_order_{name}"


def longs(column: pa.Array, null: int) -> _Longs:
    """Return a column of 64-bit integers as an array, with ``null`` in place of nulls."""
    return np.asarray(column.fill_null(null) if column.null_count else column)


def cut(rows: pa.RecordBatch, *names: str) -> Iterator[pa.RecordBatch]:
    """Cut a batch wherever the value of one of some integer columns changes; yield the parts in order."""
    columns = [longs(rows.column(name).cast(pa.int64()), -FAR) for name in names]
    changes = np.logical_or.reduce([np.diff(column) != 0 for column in columns])
    for start, end in pairwise([0, *(np.flatnonzero(changes) + 1).tolist(), rows.num_rows]):
        if end > start:
            yield rows.slice(start, end - start)


def by_partition(rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield pairs (partition, rows). The rows of a partition are consecutive in the batch."""
    for part in cut(rows, PARTITION):
        yield part.column(PARTITION)[0].as_py(), part


_PREFIX = "rewindow-land-"
_ABANDONED_S = 86_400


@contextmanager
def shared_folder(root: str) -> Iterator[str]:
    """Yield a new folder for temporary files, and remove it afterwards. It is in ``root``, which other machines can access.

    If the process is killed, the folder stays, and a later landing removes it. A folder that is less than a day old is not
    removed, because a process on another machine may still use it.
    """
    system, location = filesystem_of(root)
    system.create_dir(location, recursive=True)
    for info in system.get_file_info(fs.FileSelector(location)):
        # A bucket has no modification times of folders, so a folder's name contains the time of its creation.
        made_s = info.base_name.removeprefix(_PREFIX).partition("-")[0]
        if made_s.isdigit() and int(made_s) < time.time() - _ABANDONED_S:
            system.delete_dir(info.path)
    folder = f"{root}/{_PREFIX}{int(time.time())}-{uuid4().hex}"
    system.create_dir(f"{location}/{folder.rpartition('/')[2]}")
    try:
        yield folder
    finally:
        with suppress(OSError):
            system.delete_dir(f"{location}/{folder.rpartition('/')[2]}")


_SHARE = 7
"""The memory is divided by this number to get the size of a chunk of rows, because concatenating and sorting copy the chunk."""
_BATCH_ROWS = 32 * 1024
"""The number of rows in a batch of a run. A merge keeps one batch of each run in memory."""
_LEAST = np.iinfo(np.int64).min
_SMALL = np.iinfo(np.int16).max


def row_order(spec: LogSpec, columns: LogColumns) -> list[str]:
    """Return the columns that decide the order of rows.

    They are partition, arrival, the declared columns, timestamp, all other landed columns, and fault (ADR-136). For a log in
    file order, they are partition, arrival, file and row.
    """
    if spec.in_file_order:
        return [PARTITION, ARRIVED, FILE, ROW]
    landed = [column.name for column in columns.all]
    declared = [name if name in landed else order_name(name) for name in spec.order]
    others = [name for name in landed if name not in spec.order]
    return [PARTITION, ARRIVED, *declared, TIMESTAMP, *others, FAULT]


def sorted_chunks(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], memory_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield rows in chunks that fit into the memory, each sorted by the named columns. Equal rows keep their order."""
    chunk: list[pa.RecordBatch] = []
    size = 0
    for rows in batches:
        chunk.append(rows)
        size += rows.nbytes
        if size * _SHARE >= memory_bytes:
            yield _sorted(chunk, names)
            size = 0
    if chunk:
        yield _sorted(chunk, names)


def write_runs(chunks: Iterable[pa.RecordBatch], folder: str, attempt: str) -> Iterator[Run]:
    """Write sorted chunks to new runs in a folder."""
    # `map` is used because a loop's variable would keep the previous chunk in memory while the next one is made.
    return map(partial(write_run, folder, attempt), chunks)


def released(head: deque[pa.RecordBatch], others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the chunks of ``head``, then those of ``others``. A chunk is dropped from memory once the next one is requested."""
    while head:
        yield head.popleft()
    yield from others


@dataclass(frozen=True, slots=True)
class Run:
    """A file of sorted rows. ``batches`` maps a partition to the numbers ``[start, end)`` of its batches in the file."""

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
    """Write rows that are sorted by partition to a new file.

    Raises `StorageError` (74), or `LimitError` (71) if the disk is full.
    """
    path = f"{folder}/{attempt}-{uuid4().hex}.arrow"
    try:
        return Run(path, _write(path, rows))
    except OSError as error:
        raise not_written(path, error) from error


def read_run(run: Run, partition: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a partition, in order. Raises `StorageError` (74) if the file cannot be read."""
    system, location = filesystem_of(run.path)
    try:
        with system.open_input_file(location) as file, pa.ipc.open_file(file) as reader:
            for number in range(*run.batches[partition]):
                yield reader.get_batch(number)
    except (OSError, pa.ArrowException) as error:
        raise not_read_back(run.path, error) from error


def merged(runs: Sequence[Iterable[pa.RecordBatch]], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all runs, sorted by the named columns. Each run is sorted by these columns and has no empty batch."""
    cursors = [cursor for run in runs if (cursor := _Cursor(iter(run), names)).rows is not None]
    while len(cursors) > 1:
        # `limit` is the smallest last row of the current batches. All rows up to `limit` are in these batches, because later
        # batches only have rows that follow.
        limit = min(cursor.last for cursor in cursors)
        taken = [cursor.take_through(limit) for cursor in cursors if cursor.first <= limit]
        cursors = [cursor for cursor in cursors if cursor.rows is not None]
        yield taken[0] if len(taken) == 1 else sorted_rows(pa.concat_batches(taken), names)
    for cursor in cursors:
        yield from cursor.rest()


def sorted_rows(rows: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Return the rows sorted by the named columns; the same object if the rows are already sorted."""
    order = order_of([rows.column(name) for name in names]) if rows.num_rows else None
    return rows if order is None else rows.take(pa.array(order))


def order_of(columns: Sequence[pa.Array]) -> _Longs | None:
    """Return the row numbers in the order of the columns' values; None if the rows are sorted. Equal rows keep their order."""
    rows = len(columns[0])
    order: _Longs | None = None
    equal = np.arange(rows)
    """The positions, ascending, of rows that equal a neighbour in all columns compared so far. In `groups`, equal rows have
    the same number."""
    groups = np.zeros(rows, dtype=np.int64)
    for column in columns:
        if len(equal) < 2:
            break
        rows_so_far = equal if order is None else order[equal]
        ranks = _ranks(column if len(rows_so_far) == rows and order is None else column.take(pa.array(rows_so_far)))
        positions = _positions_of(groups, ranks)
        if positions is not None:
            order = np.arange(rows) if order is None else order
            order[equal] = rows_so_far[positions]
            ranks = ranks[positions]
        is_same = (ranks[1:] == ranks[:-1]) & (groups[1:] == groups[:-1])
        is_tied = np.concatenate((is_same, [False])) | np.concatenate(([False], is_same))
        is_one_group = groups[0] == groups[-1]
        numbers = ranks if is_one_group else np.cumsum(np.concatenate(([True], ~is_same)))
        equal, groups = equal[is_tied], numbers[is_tied]
    return order


def sort_key(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return a key that sorts a row as `order_of` does. ``row`` has a Python value for each column."""
    return tuple((0,) if value is None else (2,) if _is_nan(value) else (1, value) for value in row)


def _sorted(chunk: list[pa.RecordBatch], names: Sequence[str]) -> pa.RecordBatch:
    """Return the rows of all batches, sorted. Empties the list ``chunk``."""
    rows = pa.concat_batches(chunk)
    # The batches are dropped now, because sorting needs memory for a further copy.
    chunk.clear()
    # Otherwise Arrow's pool would keep the memory of the dropped batches, and so hold twice the memory that is in use.
    pa.default_memory_pool().release_unused()
    return sorted_rows(rows, names)


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
            first_batch = written
            for start in range(0, some.num_rows, _BATCH_ROWS):
                file.write_batch(some.slice(start, _BATCH_ROWS))
                written += 1
            batches[partition] = (first_batch, written)
    return batches


class _Cursor:
    """A run during a merge: its current batch (None at the end), and the sort keys of that batch's first and last rows.

    Most rows arrive in order, so most runs have no rows up to a merge's limit. The key of the first row is enough to see
    this.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> None:
        self._batches, self._names = batches, names
        self.rows: pa.RecordBatch | None = None
        self.first: tuple[Any, ...] = ()
        self.last: tuple[Any, ...] = ()
        self._next()

    def take_through(self, limit: tuple[Any, ...]) -> pa.RecordBatch:
        """Remove the rows up to and including ``limit`` from the current batch and return them: at least one row."""
        rows = self.rows
        assert rows is not None  # noqa: S101 - `merged` drops cursors at their end
        if self.last <= limit:
            self._next()
            return rows
        low, high = 0, rows.num_rows - 1
        while low < high:
            middle = (low + high) // 2
            if self._key(rows, middle) <= limit:
                low = middle + 1
            else:
                high = middle
        self.rows = rows.slice(low)
        self.first = self._key(rows, low)
        return rows.slice(0, low)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows."""
        if self.rows is not None:
            yield self.rows
        yield from self._batches

    def _next(self) -> None:
        self.rows = next(self._batches, None)
        if self.rows is not None:
            self.first = self._key(self.rows, 0)
            self.last = self._key(self.rows, self.rows.num_rows - 1)

    def _key(self, rows: pa.RecordBatch, row: int) -> tuple[Any, ...]:
        return sort_key([rows.column(name)[row].as_py() for name in self._names])


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)


def _positions_of(groups: _Longs, ranks: _Longs) -> _Longs | None:
    """Return the positions that sort the ranks within each group; None if they are sorted. ``groups`` is ascending."""
    if bool(((ranks[1:] >= ranks[:-1]) | (groups[1:] > groups[:-1])).all()):
        return None
    if groups[0] != groups[-1]:
        return np.lexsort((ranks, groups))
    if ranks.min() >= 0 and ranks.max() <= _SMALL:
        # NumPy sorts 16-bit integers with a radix sort, which is faster.
        return np.argsort(ranks.astype(np.int16), kind="stable")
    return np.argsort(ranks, kind="stable")


def _ranks(column: pa.Array) -> _Longs:
    """Return integers that sort as the values do. Nulls get the smallest integer."""
    if column.null_count == len(column):
        return np.zeros(len(column), dtype=np.int64)
    ranks = _value_ranks(column)
    if not column.null_count:
        return ranks
    nulls = np.asarray(column.is_null())
    if (ranks[~nulls] == _LEAST).any():
        ranks = np.unique(ranks, return_inverse=True)[1].astype(np.int64)
    ranks = ranks.copy()
    ranks[nulls] = _LEAST
    return ranks


def _value_ranks(column: pa.Array) -> _Longs:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        filled = column.fill_null(False if pa.types.is_boolean(kind) else 0) if column.null_count else column
        return np.asarray(filled.cast(pa.int64()))
    if pa.types.is_floating(kind):
        floats = np.asarray(column.fill_null(0.0) if column.null_count else column).astype(np.float64) + 0.0
        floats[np.isnan(floats)] = np.nan
        bits = floats.view(np.int64)
        return bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    coded = column.dictionary_encode() if not pa.types.is_dictionary(kind) else column
    ranks = np.empty(len(coded.dictionary), dtype=np.int64)
    ranks[np.asarray(pc.sort_indices(coded.dictionary))] = np.arange(len(ranks))
    of_rows: _Longs = ranks[np.asarray(coded.indices.fill_null(0) if coded.null_count else coded.indices)]
    return of_rows
