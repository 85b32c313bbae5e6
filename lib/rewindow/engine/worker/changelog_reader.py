"""Read changelog files in the order of their runs, so that the latest row of a key wins.

A file may have rows of several partitions, of which a task reads its own. Each of the tasks of a process looks into the same
small files, so these are decoded once.

The tasks of a process read the same small files, each its partition's rows. So these are decoded once. A file is looked up by
its name, which contains the checksum of its bytes, and by its identity on the disk. Objects in buckets are not cached,
because a look would cost a request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.staged_files import named_checksum
from rewindow.engine.worker.arrow_rows import decode
from rewindow.engine.worker.checksums import UNREADABLE, open_verified, uses_threads
from rewindow.errors import StorageError
from rewindow.storage.locations import is_uri
from rewindow.streams.serde.schema import PARTITION, Shape

SMALL_ROWS = 32 * 1024
"""The most rows of a file that is decoded as a whole, for all partitions."""
_REMEMBERED = 20_000
"""How many files' statistics to cache."""
_MOST_BYTES = 32 << 20
"""The size of the cache."""
_Identity = tuple[int, int, int]


class _Cache:
    """Decoded files by path and columns, least recently used first."""

    def __init__(self) -> None:
        self._files: OrderedDict[tuple[str, tuple[str, ...]], _Decoded] = OrderedDict()
        self._bytes = 0

    def find(self, path: str, columns: tuple[str, ...]) -> _Decoded | None:
        decoded = self._files.get((path, columns))
        if decoded is None or decoded.identity != _identity(path):
            return None
        self._files.move_to_end((path, columns))
        return decoded

    def add(self, path: str, columns: tuple[str, ...], decoded: _Decoded) -> None:
        before = self._files.pop((path, columns), None)
        self._files[path, columns] = decoded
        self._bytes += decoded.bytes - (before.bytes if before else 0)
        while self._bytes > _MOST_BYTES:
            _, oldest = self._files.popitem(last=False)
            self._bytes -= oldest.bytes


_cache = _Cache()
_find = _cache.find


def row_columns(key: Shape, value: Shape) -> list[str]:
    """Return the columns of a changelog that make up a row: key, value, and whether it is a tombstone."""
    return [*key.names, *value.names, "_tombstone"]


def rows_of(batches: Iterable[pa.RecordBatch], key: Shape, value: Shape) -> Iterator[tuple[Any, Any]]:
    """Yield the ``(key, value)`` rows of batches with the columns of `row_columns`; a tombstone has the value None."""
    width = len(key.columns)
    for batch in batches:
        arrays = batch.columns
        values = decode(value, arrays[width:-1])
        gone = arrays[-1].to_pylist()
        for row_key, row_value, is_gone in zip(decode(key, arrays[:width]), values, gone, strict=True):
            yield row_key, None if is_gone else row_value


def changelog_batches(
    paths: Iterable[str], partition: int, columns: Sequence[str], *, wanted: RowGroupFilter | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a partition has in changelog files, in order, without row groups whose metadata ``wanted`` rejects.

    Raises `StorageError` (74) for a file that cannot be read.
    """
    names = tuple(columns)
    for path in paths:
        if wanted and wanted.is_below(path):
            continue
        try:
            cached = _find(path, names)
            if cached is None:
                yield from _read(path, partition, names, wanted)
            else:
                yield from cached.of(partition)
        except UNREADABLE as error:
            raise StorageError(
                "checkpoint-file-unreadable",
                "cannot read the checkpoint file {file}: {reason}. Repeat the run that wrote it: `rewindow "
                "republish JOB`",
                file=path,
                reason=str(error),
            ) from error


class RowGroupFilter:
    """Selects the row groups that may have a value of a column above ``above``, by their statistics.

    It caches the maximum of each file: a name with a checksum always means the same bytes, and each run reads old files.
    """

    _largest: ClassVar[dict[tuple[str, str], Any]] = {}

    def __init__(self, column: str, above: int) -> None:
        self._column, self._above = column, above

    def __call__(self, group: Any) -> bool:
        """Return whether to read a row group, given its metadata."""
        largest = self._known(group)
        return largest is None or largest > self._above

    def is_below(self, path: str) -> bool:
        """Return whether the cache says that a file has no such value."""
        largest = self._largest.get((path, self._column))
        return largest is not None and largest <= self._above

    def note(self, path: str, metadata: Any) -> None:
        """Cache the maximum of a verified file."""
        largest = [self._known(metadata.row_group(number)) for number in range(metadata.num_row_groups)]
        if largest and None not in largest and named_checksum(path) is not None:
            if len(self._largest) >= _REMEMBERED:
                self._largest.clear()
            self._largest[path, self._column] = max(largest)

    def _known(self, group: Any) -> Any:
        """Return the largest value of the column in a row group; None if it has no statistics."""
        statistics = statistics_of(group, self._column)
        return None if statistics is None else statistics.max


def _read(path: str, partition: int, names: tuple[str, ...], wanted: RowGroupFilter | None) -> Iterator[pa.RecordBatch]:
    with open_verified(path) as parquet:
        metadata = parquet.metadata
        if wanted:
            wanted.note(path, metadata)
        # Otherwise the file's name is that of its partition.
        is_mixed = PARTITION in parquet.schema_arrow.names
        if is_mixed and metadata.num_rows <= SMALL_ROWS:
            rows = parquet.read(columns=[*names, PARTITION], use_threads=False)
            yield from _decoded(path, names, rows).of(partition)
            return
        groups = [
            number
            for number in range(metadata.num_row_groups)
            if (wanted is None or wanted(metadata.row_group(number)))
            and (not is_mixed or _may_have(metadata.row_group(number), partition))
        ]
        if groups:
            read = [*names, PARTITION] if is_mixed else list(names)
            for batch in parquet.iter_batches(columns=read, row_groups=groups, use_threads=uses_threads(parquet)):
                own = batch.filter(pc.equal(batch.column(PARTITION), partition)) if is_mixed else batch
                yield own.select(list(names))


def _may_have(group: Any, partition: int) -> bool:
    """Return whether a row group may have rows of a partition, given its metadata."""
    statistics = statistics_of(group, PARTITION)
    return statistics is None or statistics.min <= partition <= statistics.max


def statistics_of(group: Any, column: str) -> Any:
    """Return the statistics (``min``, ``max``) of a column in a row group, given its metadata; None if it has none."""
    for number in range(group.num_columns):
        chunk = group.column(number)
        if chunk.path_in_schema == column:
            statistics = chunk.statistics
            return statistics if statistics is not None and statistics.has_min_max else None
    return None


class _Decoded(NamedTuple):
    """Some columns of a file, and where the rows of each partition are: first row and number of rows."""

    rows: pa.RecordBatch
    parts: dict[int, list[tuple[int, int]]]
    identity: _Identity
    bytes: int

    def of(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, in order."""
        for start, count in self.parts.get(partition, ()):
            yield self.rows.slice(start, count)


def _decoded(path: str, columns: tuple[str, ...], rows: pa.Table) -> _Decoded:
    """Return some columns of a file, given these and the column of its partitions, and cache them. Its bytes were verified."""
    partitions = np.asarray(rows[PARTITION])
    starts = np.flatnonzero(np.diff(partitions, prepend=partitions[:1] - 1))
    parts: dict[int, list[tuple[int, int]]] = {}
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(partitions)], strict=True):
        parts.setdefault(int(partitions[start]), []).append((start, end - start))
    own = rows.select(list(columns)).combine_chunks()
    batch = own.to_batches()[0] if own.num_rows else pa.RecordBatch.from_pylist([], schema=own.schema)
    identity = _identity(path)
    made = _Decoded(batch, parts, identity or (0, 0, 0), batch.nbytes)
    if identity is not None:
        _cache.add(path, columns, made)
    return made


def _identity(path: str) -> _Identity | None:
    """Return which file this is; None if it does not exist or is in a bucket."""
    if is_uri(path):
        return None
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
