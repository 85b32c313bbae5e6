"""Rows that keep an order of their source: the results of another job, and records of a topic with its offsets.

Rows of another job's output are sorted by time before they get offsets. In an output, the rows of one partition follow those of
another, and the results of windows that close together are ordered by key. In this order, most rows would be late for a job with
shorter windows or another key (ADR-134, ADR-137).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rewindow.contracts.ingest import OUTPUT_ORDER, OUTPUT_TIME, LogSpec, LogWrite
from rewindow.engine.worker.digest import row_hashes
from rewindow.engine.worker.landing.sorted_runs import (
    ARRIVED,
    FAULT,
    PARTITION,
    TIMESTAMP,
    by_partition,
    cut,
    longs,
    merged,
    order_name,
    read_run,
    released,
    sorted_chunks,
    write_runs,
)
from rewindow.errors import DataError
from rewindow.storage.scratch import scratch_folder
from rewindow.streams.record import UNKNOWN

_SOURCE, _OFFSET = map(order_name, OUTPUT_ORDER)
_STREAM_TIME = "_stream_time"
"""A column of a row's stream time: the largest time so far of the row's key in its source partition, among the rows of one
log partition."""
_ORDER = (_STREAM_TIME, _SOURCE, _OFFSET)
_Longs = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]
_NEVER = np.iinfo(np.int64).min


def interleaved(write: LogWrite, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each partition and epoch in the order of stream time, source partition and offset.

    ``batches`` are sorted by partition, epoch, source partition and offset. The rows of a key in one source partition keep
    their order. The stream time of a row is the largest time so far of its key. Stream time never decreases in this order, so
    a row is late only if an earlier row of its own key makes it late.
    """
    parts = chain.from_iterable(cut(batch, PARTITION, ARRIVED) for batch in batches)
    for (partition, _), group in groupby(parts, key=_group_of):
        yield from _in_order(write, partition, group)


class TopicOffsets:
    """The last offset of each partition of a recorded topic. Offsets may have gaps, but no offset may occur twice."""

    def __init__(self, write: LogWrite) -> None:
        self._write = write
        self.last = {number: write.starts[number][0] + base - 1 for number, base in write.bases.items()}

    def checked(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches unchanged. Raises `DataError` (65) if an offset occurs twice, or was landed before."""
        (name,) = self._write.spec.order
        for batch in batches:
            for partition, rows in by_partition(batch):
                column = rows.column(name if name in rows.schema.names else order_name(name)).cast(pa.int64())
                last = self.last.get(partition, UNKNOWN)
                offsets = np.concatenate(([last], longs(column.filter(rows.column(FAULT).is_null()), UNKNOWN)))
                again = np.flatnonzero(np.diff(offsets) <= 0)
                if len(again):
                    raise DataError(
                        "topic-offset-repeated",
                        "feed {feed}, topic {topic}: offset {offset} of partition {partition} occurs again in {source}, or is "
                        "lower than landed ones. Nothing was landed. Remove copies, and land files in the order of offsets",
                        feed=self._write.feed,
                        topic=self._write.spec.topic,
                        offset=int(offsets[again[0] + 1]),
                        partition=partition,
                        source=self._write.spec.source.name,
                    )
                self.last[partition] = int(offsets[-1])
            yield batch


def _in_order(write: LogWrite, partition: int, group: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    chunks = sorted_chunks(_with_stream_time(write.spec, group), _ORDER, write.memory_bytes)
    head = deque(islice(chunks, 2))
    # A single chunk means that all rows fit into memory, so no files are needed for sorting.
    if len(head) < 2:
        yield from head
        return
    with scratch_folder() as folder:
        runs = list(write_runs(released(head, chunks), folder, write.attempt))
        yield from merged([read_run(run, partition) for run in runs], _ORDER)


def _with_stream_time(spec: LogSpec, group: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    name = order_name(OUTPUT_TIME) if spec.extractor else TIMESTAMP
    source, key_times = None, _KeyTimes()
    for rows in chain.from_iterable(cut(batch, _SOURCE) for batch in group):
        if (own := rows.column(_SOURCE)[0].as_py()) != source:
            source, key_times = own, _KeyTimes()
        times = longs(rows.column(name).cast(pa.int64()), _NEVER)
        yield rows.append_column(_STREAM_TIME, pa.array(key_times.add(_hashes_of_keys(spec, rows), times)))


def _hashes_of_keys(spec: LogSpec, rows: pa.RecordBatch) -> _Words:
    """Return the hash of each row's key in the output. Keys with the same hash are treated as one key."""
    names = (name if name in rows.schema.names else order_name(name) for name in spec.output_keys)
    return row_hashes(rows.select(list(names)))


def _group_of(rows: pa.RecordBatch) -> tuple[int, int]:
    return rows.column(PARTITION)[0].as_py(), rows.column(ARRIVED)[0].as_py()


class _KeyTimes:
    """The largest time so far of each key. A key is represented by its 64-bit hash, so an entry takes 16 bytes."""

    def __init__(self) -> None:
        """Begin without rows."""
        self._hashes = np.empty(0, dtype=np.uint64)
        self._latest = np.empty(0, dtype=np.int64)

    def add(self, hashes: _Words, times: _Longs) -> _Longs:
        """Add rows in order (at least one). Return, for each row, the largest time of its key up to and including that row."""
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        is_first = np.concatenate(([True], hashes[1:] != hashes[:-1]))
        keys, numbers = hashes[is_first], np.cumsum(is_first) - 1
        positions, is_known = self._find(keys)
        before = np.full(len(keys), _NEVER)
        before[is_known] = self._latest[positions[is_known]]
        latest = np.maximum(_largest_so_far(numbers, times[order]), before[numbers])
        last = latest[np.concatenate((is_first[1:], [True]))]
        self._latest[positions[is_known]] = last[is_known]
        if not is_known.all():
            self._hashes = np.insert(self._hashes, positions[~is_known], keys[~is_known])
            self._latest = np.insert(self._latest, positions[~is_known], last[~is_known])
        stream_times: _Longs = np.empty_like(latest)
        stream_times[order] = latest
        return stream_times

    def _find(self, keys: _Words) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        """Return the position of each key among the known keys (or where to insert it), and a mask of the known keys."""
        positions = np.searchsorted(self._hashes, keys)
        is_known = positions < len(self._hashes)
        is_known[is_known] = self._hashes[positions[is_known]] == keys[is_known]
        return positions, is_known


def _largest_so_far(numbers: _Longs, times: _Longs) -> _Longs:
    """Return for each row the largest time so far in its group. ``numbers`` has each row's group: numbers from 0, ascending."""
    values, ranks = np.unique(times, return_inverse=True)
    base = numbers * len(values)
    largest: _Longs = values[np.maximum.accumulate(base + ranks) - base]
    return largest
