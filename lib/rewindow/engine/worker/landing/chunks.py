"""Sort more rows than fit into memory: in chunks, which become runs in files if there are several."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

from rewindow.engine.worker.landing.exchange import Run, write_run
from rewindow.engine.worker.landing.merge import sorted_rows

SHARE = 7
"""A chunk of rows takes this part of the memory: concatenating and sorting copy it."""


def sorted_chunks(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], memory_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield rows in chunks that fit into the memory, each sorted by the named columns. Equal rows keep their order."""
    chunk: list[pa.RecordBatch] = []
    size = 0
    for rows in batches:
        chunk.append(rows)
        size += rows.nbytes
        if size * SHARE >= memory_bytes:
            yield _sorted(chunk, names)
            size = 0
    if chunk:
        yield _sorted(chunk, names)


def _sorted(chunk: list[pa.RecordBatch], names: Sequence[str]) -> pa.RecordBatch:
    """Return the rows of all batches, sorted. Empties the list, so that the batches are gone before sorting takes memory."""
    rows = pa.concat_batches(chunk)
    chunk.clear()
    pa.default_memory_pool().release_unused()  # otherwise the process keeps twice of what is in use
    return sorted_rows(rows, names)


def write_runs(chunks: Iterable[pa.RecordBatch], folder: str, attempt: str) -> Iterator[Run]:
    """Write sorted chunks to new runs in a folder. Not in a loop, whose variable would keep a chunk while the next is made."""
    return map(partial(write_run, folder, attempt), chunks)


def released(first: deque[pa.RecordBatch], others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield all chunks, and keep none of them in memory."""
    while first:
        yield first.popleft()
    yield from others
