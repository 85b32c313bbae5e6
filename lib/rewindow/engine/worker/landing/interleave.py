"""Interleave the keys of another job's output, so that a landing has its rows in the order of their times (ADR-134, ADR-137).

An output has the rows of one partition after those of another, and the results of windows that close together key by key. In
that order, a job with shorter windows or another key would find all but the first of them late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice

import pyarrow as pa

from rewindow.contracts.ingest import OUTPUT_ORDER, OUTPUT_TIME, LogSpec, LogWrite
from rewindow.engine.worker.digest import row_hashes
from rewindow.engine.worker.landing.chunks import released, sorted_chunks, write_runs
from rewindow.engine.worker.landing.exchange import read_run
from rewindow.engine.worker.landing.key_times import NEVER, KeyTimes, Words
from rewindow.engine.worker.landing.merge import merged
from rewindow.engine.worker.landing.scratch import scratch_folder
from rewindow.engine.worker.log_blocks import ARRIVED, PARTITION, TIMESTAMP, cut, longs, order_name

_SOURCE, _OFFSET = map(order_name, OUTPUT_ORDER)
_STREAM_TIME = "_stream_time"
"""The largest time so far of a row's key in its source partition, among the rows that go to the same partition of the log."""
_ORDER = (_STREAM_TIME, _SOURCE, _OFFSET)


def interleaved(write: LogWrite, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each partition and epoch in the order of stream time, source partition and offset.

    ``batches`` are sorted by partition, epoch, source partition and offset. The rows of a key in one source partition keep
    their order. No row gets later than it is among these: all rows before it have a stream time that is not larger.
    """
    parts = chain.from_iterable(cut(batch, PARTITION, ARRIVED) for batch in batches)
    for (partition, _), group in groupby(parts, key=_group_of):
        yield from _in_order(write, partition, group)


def _in_order(write: LogWrite, partition: int, group: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    chunks = sorted_chunks(_with_stream_time(write.spec, group), _ORDER, write.memory_bytes)
    first = deque(islice(chunks, 2))
    if len(first) < 2:  # everything fits into memory
        yield from first
        return
    with scratch_folder() as folder:
        runs = list(write_runs(released(first, chunks), folder, write.attempt))
        yield from merged([read_run(run, partition) for run in runs], _ORDER)


def _with_stream_time(spec: LogSpec, group: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    name = order_name(OUTPUT_TIME) if spec.extractor else TIMESTAMP
    source, known = None, KeyTimes()
    for rows in chain.from_iterable(cut(batch, _SOURCE) for batch in group):
        if (own := rows.column(_SOURCE)[0].as_py()) != source:
            source, known = own, KeyTimes()
        times = longs(rows.column(name).cast(pa.int64()), NEVER)
        yield rows.append_column(_STREAM_TIME, pa.array(known.add(_hashes_of_keys(spec, rows), times)))


def _hashes_of_keys(spec: LogSpec, rows: pa.RecordBatch) -> Words:
    """Return a hash of the output's key in each row. Rows of keys with the same hash count as rows of one key."""
    names = (name if name in rows.schema.names else order_name(name) for name in spec.output_keys)
    return row_hashes(rows.select(list(names)))


def _group_of(rows: pa.RecordBatch) -> tuple[int, int]:
    return rows.column(PARTITION)[0].as_py(), rows.column(ARRIVED)[0].as_py()
