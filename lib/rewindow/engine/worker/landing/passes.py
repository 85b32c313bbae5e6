"""The two passes of a landing: sort the source's rows into runs, then merge the runs of each partition into the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from rewindow.contracts.ingest import LogWrite
from rewindow.contracts.landing import Block
from rewindow.engine.worker.landing.chunks import sorted_chunks, write_runs
from rewindow.engine.worker.landing.exchange import Run, read_run
from rewindow.engine.worker.landing.merge import merged
from rewindow.engine.worker.landing.source_rows import Portion, RowReader
from rewindow.engine.worker.log_writer import write_log


def due_chunks(reader: RowReader, portions: Iterable[Portion], memory_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the due rows of some portions in sorted chunks that fit into the memory."""
    return sorted_chunks(chain.from_iterable(map(reader.read, portions)), reader.sort_names, memory_bytes)


def split(
    reader: RowReader, portions: Iterable[Portion], memory_bytes: int, folder: str, attempt: str
) -> Iterator[Run]:
    """Write the due rows of some portions to new runs in a folder: the first pass."""
    return write_runs(due_chunks(reader, portions, memory_bytes), folder, attempt)


def merge(write: LogWrite, runs: Sequence[Run], partitions: Iterable[int], names: Sequence[str]) -> Iterator[Block]:
    """Write some partitions of a log from all runs: the second pass. Raises as `write_log` does."""
    return write_log(write, _of_partitions(runs, partitions, names))


def _of_partitions(runs: Sequence[Run], partitions: Iterable[int], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for partition in sorted(partitions):
        own = [read_run(run, partition) for run in runs if partition in run.batches]
        yield from merged(own, names)
