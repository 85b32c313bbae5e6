"""The two passes of a landing: sort the source's rows into runs, then merge the runs of each partition into the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

from rewindow.contracts.blocks import Block
from rewindow.contracts.ingest import LogWrite
from rewindow.engine.worker.landing.exchange import Run, read_run, write_run
from rewindow.engine.worker.landing.merge import merged, sorted_rows
from rewindow.engine.worker.landing.source_rows import Portion, RowReader
from rewindow.engine.worker.log_writer import write_log

SHARE = 7
"""A chunk of rows takes this part of the memory: concatenating and sorting copy it."""


def sorted_chunks(reader: RowReader, portions: Iterable[Portion], memory_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the due rows of some portions in sorted chunks that fit into the memory."""
    chunk: list[pa.RecordBatch] = []
    size = 0
    for portion in portions:
        for rows in reader.read(portion):
            chunk.append(rows)
            size += rows.nbytes
            if size * SHARE >= memory_bytes:
                yield _sorted(chunk, reader.sort_names)
                size = 0
    if chunk:
        yield _sorted(chunk, reader.sort_names)


def _sorted(chunk: list[pa.RecordBatch], names: Sequence[str]) -> pa.RecordBatch:
    """Return the rows of all batches, sorted. Empties the list, so that the batches are gone before sorting takes memory."""
    rows = pa.concat_batches(chunk)
    chunk.clear()
    pa.default_memory_pool().release_unused()  # otherwise the process keeps twice of what is in use
    return sorted_rows(rows, names)


def split(
    reader: RowReader, portions: Iterable[Portion], memory_bytes: int, folder: str, attempt: str
) -> Iterator[Run]:
    """Write the due rows of some portions to new runs in a folder: the first pass."""
    return write_runs(sorted_chunks(reader, portions, memory_bytes), folder, attempt)


def write_runs(chunks: Iterable[pa.RecordBatch], folder: str, attempt: str) -> Iterator[Run]:
    """Write sorted chunks to new runs in a folder. Not in a loop, whose variable would keep a chunk while the next is made."""
    return map(partial(write_run, folder, attempt), chunks)


def merge(write: LogWrite, runs: Sequence[Run], partitions: Iterable[int], names: Sequence[str]) -> Iterator[Block]:
    """Write some partitions of a log from all runs: the second pass. Raises as `write_log` does."""
    return write_log(write, _of_partitions(runs, partitions, names))


def _of_partitions(runs: Sequence[Run], partitions: Iterable[int], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for partition in sorted(partitions):
        own = [read_run(run, partition) for run in runs if partition in run.batches]
        yield from merged(own, names)
