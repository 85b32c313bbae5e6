"""Pack the rows of a log that Spark hands to a worker: each pack holds rows of one task in offset order.

A pack is an Arrow file. The worker that creates it stores it, or sends it in pieces to the worker of its task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.contracts.tasks import LogSpan
from rewindow.engine.worker.distinct import distinct
from rewindow.engine.worker.nested_json import Reader, canonical_json

PACK_ROWS = 65_536
PACK_BYTES = 32 << 20
PIECE_BYTES = 8 << 10
"""Size of a row with a piece: 80 MB in a batch of 10,000 rows, Spark's default, which some platforms do not let us change."""


class Packing(NamedTuple):
    """How a worker packs the rows of one topic: which task they belong to, and how columns are converted."""

    topic: int
    spans: tuple[tuple[int, int, LogSpan], ...]
    """Each span with its group and task."""
    schema: pa.Schema
    readers: Mapping[str, Reader]
    has_generations: bool


class Pack(NamedTuple):
    """Some rows of a task, in offset order."""

    group: int
    task: int
    rows: pa.RecordBatch
    first: int
    last: int


def packed(packing: Packing, batches: Iterable[pa.RecordBatch]) -> Iterator[Pack]:
    """Yield the rows within the requested spans as packs, one for each span and set of batches.

    Batches start with three columns: a row's partition, its generation, and its offset in the table.
    """
    for batch in _larger(batches):
        here, made, offsets = (np.asarray(batch.column(position)) for position in range(3))
        arrays = [
            _column(column, field, packing) for column, field in zip(batch.columns[2:], packing.schema, strict=True)
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=packing.schema)
        present = set(distinct(here).tolist())
        for group, task, span in packing.spans:
            if task not in present:
                continue
            own = offsets - span.base
            is_wanted = (here == task) & (own >= span.first) & (own <= span.last)
            if packing.has_generations:
                is_wanted &= made == span.generation
            chosen = np.flatnonzero(is_wanted)
            if len(chosen) == 0:
                continue
            if _counts_up(chosen) and _counts_up(own[chosen]):
                some = rows.slice(int(chosen[0]), len(chosen))  # already in file order: no copy
            else:
                chosen = chosen[np.argsort(own[chosen], kind="stable")]
                some = rows.take(pa.array(chosen))
            some = some.set_column(0, "offset", pa.array(own[chosen]))
            yield Pack(group, task, some, int(own[chosen[0]]), int(own[chosen[-1]]))


def cut(rows: pa.RecordBatch) -> pa.Array:
    """Return an Arrow file with these rows, cut into pieces."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_batch(rows)
    data = sink.getvalue()
    bounds = np.append(np.arange(0, data.size, PIECE_BYTES), data.size).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), data])


def _larger(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Concatenate batches up to `PACK_ROWS` rows or `PACK_BYTES` bytes."""
    some: list[pa.RecordBatch] = []
    for batch in batches:
        some.append(batch)
        if sum(one.num_rows for one in some) >= PACK_ROWS or sum(one.nbytes for one in some) >= PACK_BYTES:
            yield pa.concat_batches(some)
            some = []
    if some:
        yield pa.concat_batches(some)


def _counts_up(numbers: Any) -> bool:
    """Return whether each number is one more than the one before it."""
    return bool((np.diff(numbers) == 1).all())


def _column(column: pa.Array, field: pa.Field, packing: Packing) -> pa.Array:
    if field.name in packing.readers:
        return canonical_json(column, packing.readers[field.name])
    if column.type == field.type:
        return column
    # Texts arrive as bytes.
    return column.view(field.type) if pa.types.is_string(field.type) else column.cast(field.type)
