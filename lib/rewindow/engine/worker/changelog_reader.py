"""Restore a task's stores from changelog files, in the order of their runs, so that the latest row of a key wins.

An hourly run may have records of only a few keys, while its stores hold millions of keys. So a restore reads as little as
possible:

* It omits expired windows.
* If a task looks up only the keys of its own records in a store (`streams.topology`), the restore omits all other keys. To find
  the keys, it first reads the key columns of the run's records.

Omitted rows stay in the changelog, because a run writes only its changes.

A small file may have rows of several partitions. Each task reads the rows of its own partition, so several tasks of a process
read the same small file. Such a file is decoded once and cached. The cache key is the file's path, which contains the
checksum of its bytes, and its identity on the disk. Objects in buckets are not cached, because checking their identity would
cost a request.
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
from rewindow.contracts.tasks import TaskWork
from rewindow.engine.worker.arrow_rows import arrow_schema, decode
from rewindow.engine.worker.checksums import UNREADABLE, open_verified, uses_threads
from rewindow.engine.worker.log_reader import columns_of, ordered_batches
from rewindow.errors import StorageError
from rewindow.storage.locations import is_uri
from rewindow.streams.nodes import SinkNode
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.schema import PARTITION, Column, Shape
from rewindow.streams.serde.types_to_columns import LogShapes, bind_sink
from rewindow.streams.state.stores import KEY_VALUE, WINDOW, StoreBuilder
from rewindow.streams.topology import SubTopology, Topology, key_topics

_SMALL_ROWS = 32 * 1024
"""A file with rows of several partitions is decoded as a whole, and cached, if it has at most this many rows."""
_REMEMBERED = 20_000
"""The number of files whose statistics are cached."""
_MOST_BYTES = 32 << 20
"""The most bytes of decoded files in the cache."""
_Identity = tuple[int, int, int]


class _Cache:
    """Decoded files by path and columns. The least recently used file comes first."""

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
    """Return the names of the columns that make up a changelog row: key columns, value columns, tombstone flag."""
    return [*key.names, *value.names, "_tombstone"]


def rows_of(batches: Iterable[pa.RecordBatch], key: Shape, value: Shape) -> Iterator[tuple[Any, Any]]:
    """Yield a pair ``(key, value)`` for each row of batches with the columns of `row_columns`. A tombstone has the value None."""
    width = len(key.columns)
    for batch in batches:
        arrays = batch.columns
        gone = arrays[-1].to_pylist()
        values = decode(value, arrays[width:-1], len(gone))
        for row_key, row_value, is_gone in zip(decode(key, arrays[:width], len(gone)), values, gone, strict=True):
            yield row_key, None if is_gone else row_value


def changelog_batches(
    paths: Iterable[str], partition: int, columns: Sequence[str], *, wanted: RowGroupFilter | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one partition in changelog files, in order. Skips row groups whose metadata ``wanted`` rejects.

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
    """A filter that accepts a row group if, by its statistics, a column may have a value above ``above``.

    The maximum of each file is cached, because every run reads the old files again. The cache stays correct, because a file
    name with a checksum always means the same bytes.
    """

    _largest: ClassVar[dict[tuple[str, str], Any]] = {}

    def __init__(self, column: str, above: int) -> None:
        self._column, self._above = column, above

    def __call__(self, group: Any) -> bool:
        """Return whether to read a row group, given its metadata."""
        largest = self._known(group)
        return largest is None or largest > self._above

    def is_below(self, path: str) -> bool:
        """Return whether, according to the cache, no value in a file is above ``above``."""
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
        """Return the largest value of the column in a row group; None if the row group has no statistics of the column."""
        statistics = statistics_of(group, self._column)
        return None if statistics is None else statistics.max


def _read(path: str, partition: int, names: tuple[str, ...], wanted: RowGroupFilter | None) -> Iterator[pa.RecordBatch]:
    with open_verified(path) as parquet:
        metadata = parquet.metadata
        if wanted:
            wanted.note(path, metadata)
        # A file without a column of partitions has rows of a single partition, which is part of its path.
        is_mixed = PARTITION in parquet.schema_arrow.names
        if is_mixed and metadata.num_rows <= _SMALL_ROWS:
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
    """Return whether a row group may have rows of a partition, according to its metadata."""
    statistics = statistics_of(group, PARTITION)
    return statistics is None or statistics.min <= partition <= statistics.max


def statistics_of(group: Any, column: str) -> Any:
    """Return the statistics (``min``, ``max``) of a column in a row group; None if its metadata has no statistics."""
    for number in range(group.num_columns):
        chunk = group.column(number)
        if chunk.path_in_schema == column:
            statistics = chunk.statistics
            return statistics if statistics is not None and statistics.has_min_max else None
    return None


class _Decoded(NamedTuple):
    """Some columns of a file, and where the rows of each partition are."""

    rows: pa.RecordBatch
    parts: dict[int, list[tuple[int, int]]]
    """Maps each partition to the ranges of its rows, as pairs (first row, number of rows)."""
    identity: _Identity
    bytes: int

    def of(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, in order."""
        for start, count in self.parts.get(partition, ()):
            yield self.rows.slice(start, count)


def _decoded(path: str, columns: tuple[str, ...], rows: pa.Table) -> _Decoded:
    """Return and cache some columns of a file whose bytes were verified. ``rows`` also has the column of partitions."""
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
    """Return the inode, the modification time (ns) and the size of a file; None if it does not exist or is in a bucket."""
    if is_uri(path):
        return None
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


_KEYS_MAX = 200_000
"""A task with more records than this restores its stores completely, because pruning would keep most keys."""

_ONE_TYPE = frozenset(("string", "long", "boolean", "binary"))
"""The types of key columns that store equal keys as equal values."""


class Restore:
    """Restores the stores of one task."""

    def __init__(self, task_work: TaskWork, topology: Topology, part: SubTopology, logs: LogShapes) -> None:
        """Find out, for each store, which topics have the keys that the task looks up in it. Reads nothing."""
        self._work, self._logs, self._everywhere = task_work, logs, part.global_stores
        self._key_topics = key_topics(part)
        self._senders = {node.topic: node for node in topology.nodes.values() if isinstance(node, SinkNode)}
        self._key_values: dict[str, list[pa.Array] | None] = {}

    def rows(self, store: StoreBuilder, key: Shape, value: Shape) -> Iterator[tuple[Any, Any]]:
        """Yield the ``(key, value)`` rows of a store, in the order of the runs that wrote them."""
        return rows_of(self.batches(store, key, value), key, value)

    def batches(self, store: StoreBuilder, key: Shape, value: Shape) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a store as columns (`row_columns`), in the order of the runs that wrote them."""
        paths = self._work.stores.get(store.name, ())
        own = key.columns[:-2] if store.kind == WINDOW else key.columns
        only = self._only(store, own) if paths else None
        if only is not None and any(len(values) == 0 for values in only):
            # These topics have no records, so the task looks up no key.
            return
        clock_ms = self._work.state.store_clocks.get(store.name, UNKNOWN) if self._work.state else UNKNOWN
        live_above = clock_ms - store.retention_ms if store.kind == WINDOW and clock_ms != UNKNOWN else None
        start = key.names[len(own)] if live_above is not None else ""
        wanted = RowGroupFilter(start, live_above) if live_above is not None else None
        partition = 0 if store.name in self._everywhere else self._work.partition
        for batch in changelog_batches(paths, partition, row_columns(key, value), wanted=wanted):
            kept = batch if live_above is None else batch.filter(pc.greater(batch.column(start), live_above))
            for position, values in enumerate(only or ()):
                kept = kept.filter(pc.is_in(kept.column(position), values))
            yield kept

    def _only(self, store: StoreBuilder, columns: Sequence[Column]) -> list[pa.Array] | None:
        """Return, for each key column of a store, the values that the task may look up; None if it may look up any key."""
        topics = self._key_topics.get(store.name, frozenset())
        types = [column.type for column in columns]
        if not topics or store.kind not in (KEY_VALUE, WINDOW) or not _ONE_TYPE.issuperset(types):
            return None
        of_topics: list[list[pa.Array]] = []
        for topic in sorted(topics):
            if topic not in self._key_values:
                self._key_values[topic] = self._read(topic, types)
            values = self._key_values[topic]
            if values is None:
                return None
            of_topics.append(values)
        return [pc.unique(pa.concat_arrays(several)) for several in zip(*of_topics, strict=True)]

    def _read(self, topic: str, types: Sequence[str]) -> list[pa.Array] | None:
        """Return, for each key column, the values that a topic's records have in it.

        Returns None if there are too many records, or if the topic's key columns have other types than ``types``.
        """
        is_internal = topic in self._work.internal
        shape = bind_sink(self._senders[topic], self._logs)[0] if is_internal else self._logs[topic][0]
        # The shape of an internal topic's key has a further column, which says whether the key is null.
        columns = shape.columns[: len(types)]
        if [column.type for column in columns] != list(types):
            return None
        names = [column.name for column in columns]
        batches: Iterable[pa.RecordBatch]
        if is_internal:
            batches = columns_of(self._work.internal[topic], names)
        else:
            log = self._work.logs[topic]
            start = min((first for first, end in log.bounds if end > first), default=0)
            end = max((end for first, end in log.bounds if end > first), default=0)
            if end - start > _KEYS_MAX:
                return None
            batches = ordered_batches(topic, log.files, start, end, ["offset", *names])
        parts: list[list[pa.Array]] = []
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            if rows > _KEYS_MAX:
                return None
            parts.append([pc.unique(batch.column(name)) for name in names])
        nothing = [pa.array([], field.type) for field in arrow_schema(columns)]
        return [pa.concat_arrays(several) for several in zip(nothing, *parts, strict=True)]
