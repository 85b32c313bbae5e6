"""Packs: what a worker makes of a log's rows that Spark hands to it. Those of one task together, in the order of offsets.

As Arrow files they are laid down where they are made, or travel, cut into pieces, to where their task runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.contracts.tasks import LogSpan
from rewindow.engine.worker.nested_json import Reader, canonical_json

PACK_ROWS = 65_536
PACK_BYTES = 32 << 20
PIECE_BYTES = 32 << 10


class Packing(NamedTuple):
    """How a worker packs the rows of one topic: whose they are, and how a table's cells become a log's."""

    topic: int
    spans: tuple[tuple[int, int, LogSpan], ...]
    """The group and the task of each span."""
    schema: pa.Schema
    readers: Mapping[str, Reader]
    has_generations: bool


class Pack(NamedTuple):
    """Some rows of a task, in the order of their offsets."""

    group: int
    task: int
    rows: pa.RecordBatch
    first: int
    last: int


def packed(packing: Packing, batches: Iterable[pa.RecordBatch]) -> Iterator[Pack]:
    """Yield the rows that are asked for: a pack for some batches and each span.

    Batches begin with three columns: the partition that a row is in, its generation, and its offset as the table has it.
    """
    for batch in _larger(batches):
        here, made, offsets = (np.asarray(batch.column(place)) for place in range(3))
        arrays = [
            _cell(column, field, packing) for column, field in zip(batch.columns[2:], packing.schema, strict=True)
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=packing.schema)
        present = set(np.unique(here).tolist())
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
                some = rows.slice(int(chosen[0]), len(chosen))  # as a file has them: nothing is copied
            else:
                chosen = chosen[np.argsort(own[chosen], kind="stable")]
                some = rows.take(pa.array(chosen))
            some = some.set_column(0, "offset", pa.array(own[chosen]))
            yield Pack(group, task, some, int(own[chosen[0]]), int(own[chosen[-1]]))


def cut(rows: pa.RecordBatch) -> pa.Array:
    """Return the pieces of an Arrow file with these rows, in their order."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_batch(rows)
    data = sink.getvalue()
    bounds = np.append(np.arange(0, data.size, PIECE_BYTES), data.size).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), data])


def _larger(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Put batches together, some ten thousand rows or a few dozen megabytes."""
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


def _cell(column: pa.Array, field: pa.Field, packing: Packing) -> pa.Array:
    if field.name in packing.readers:
        return canonical_json(column, packing.readers[field.name])
    if column.type == field.type:
        return column
    # Texts come as their bytes.
    return column.view(field.type) if pa.types.is_string(field.type) else column.cast(field.type)
