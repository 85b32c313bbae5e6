"""A cache of decoded small changelog files: the tasks of a process read the same ones, each its partition's rows.

A file is looked up by its name, which contains the checksum of its bytes, and by its identity on the disk. Objects in buckets
are not cached, because a look would cost a request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.storage.locations import is_uri
from rewindow.streams.serde.schema import PARTITION

MOST_BYTES = 32 << 20
"""The size of the cache."""

_Identity = tuple[int, int, int]


class Decoded(NamedTuple):
    """Some columns of a file, and where the rows of each partition are: first row and number of rows."""

    rows: pa.RecordBatch
    parts: dict[int, list[tuple[int, int]]]
    identity: _Identity
    bytes: int

    def of(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, in order."""
        for start, count in self.parts.get(partition, ()):
            yield self.rows.slice(start, count)


class _Cache:
    """Decoded files by path and columns, least recently used first."""

    def __init__(self) -> None:
        self._files: OrderedDict[tuple[str, tuple[str, ...]], Decoded] = OrderedDict()
        self._bytes = 0

    def find(self, path: str, columns: tuple[str, ...]) -> Decoded | None:
        known = self._files.get((path, columns))
        if known is None or known.identity != _identity(path):
            return None
        self._files.move_to_end((path, columns))
        return known

    def add(self, path: str, columns: tuple[str, ...], decoded: Decoded) -> None:
        before = self._files.pop((path, columns), None)
        self._files[path, columns] = decoded
        self._bytes += decoded.bytes - (before.bytes if before else 0)
        while self._bytes > MOST_BYTES:
            _, oldest = self._files.popitem(last=False)
            self._bytes -= oldest.bytes


_cache = _Cache()
find = _cache.find


def decoded(path: str, columns: tuple[str, ...], rows: pa.Table) -> Decoded:
    """Return some columns of a file, given these and the column of its partitions, and cache them. Its bytes were verified."""
    partitions = np.asarray(rows[PARTITION])
    starts = np.flatnonzero(np.diff(partitions, prepend=partitions[:1] - 1))
    parts: dict[int, list[tuple[int, int]]] = {}
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(partitions)], strict=True):
        parts.setdefault(int(partitions[start]), []).append((start, end - start))
    own = rows.select(list(columns)).combine_chunks()
    batch = own.to_batches()[0] if own.num_rows else pa.RecordBatch.from_pylist([], schema=own.schema)
    identity = _identity(path)
    made = Decoded(batch, parts, identity or (0, 0, 0), batch.nbytes)
    if identity is not None:
        _cache.add(path, columns, made)
    return made


def _identity(path: str) -> _Identity | None:
    """Return which file this is; None if it does not exist or is in a bucket."""
    if is_uri(path):
        return None
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
