"""Pack the rows of a log that Spark passes to a worker. Each pack has rows of one task in offset order.

A pack is an Arrow file. The worker that creates a pack writes it to a local file, or sends it in pieces to the worker of the
pack's task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rewindow.contracts.tasks import LogSpan
from rewindow.engine.worker.arrow_rows import distinct
from rewindow.engine.worker.spark_json import Reader, canonical_json

PACK_ROWS = 65_536
PACK_BYTES = 32 << 20
PIECE_BYTES = 8 << 10
"""A piece has this many bytes. Spark sends each piece as one row, so a batch of 10,000 rows has 80 MB. (10,000 is Spark's
default, and some platforms do not let users change it.)"""


LONG_BITS = 63
"""The number of bits of a long, without the sign."""


class Positions(NamedTuple):
    """The layout of a row's position: a long with the row's slice in the upper bits, and its offset in the lower bits.

    A slice is a pair of generation and partition.
    """

    has_generations: bool
    partition_bits: int
    """The number of lower bits of a slice that hold the partition. The upper bits hold the generation."""
    offset_bits: int
    """The number of lower bits of a position that hold the offset. If 0, a position is only a slice, and the offset has its
    own column."""

    def slice_of(self, task: int, span: LogSpan) -> int:
        """Return the slice of a span. ``task`` is the span's partition."""
        return (span.generation << self.partition_bits | task) if self.has_generations else task


class Packing(NamedTuple):
    """How a worker packs the rows of one topic: to which tasks they belong, and how their columns are converted."""

    topic: int
    spans: tuple[tuple[int, int, LogSpan], ...]
    """Triples (group, task, span)."""
    schema: pa.Schema
    readers: Mapping[str, Reader]
    positions: Positions


class Pack(NamedTuple):
    """Some rows of a task, in offset order, and their first and last offset."""

    group: int
    task: int
    rows: pa.RecordBatch
    first: int
    last: int


def positions_of(spans: Sequence[tuple[int, int, LogSpan]], *, has_generations: bool) -> Positions:
    """Return the layout of positions for the rows of spans, which are triples (group, task, span).

    The offset is part of the position if slice and offset fit into a long.
    """
    partition_bits = max(task for _, task, _ in spans).bit_length()
    bare = Positions(has_generations, partition_bits, 0)
    first, last = offset_bounds(spans)
    offset_bits = last.bit_length()
    slice_bits = max(bare.slice_of(task, span) for _, task, span in spans).bit_length()
    return bare._replace(offset_bits=offset_bits) if first >= 0 and slice_bits + offset_bits <= LONG_BITS else bare


def offset_bounds(spans: Sequence[tuple[int, int, LogSpan]]) -> tuple[int, int]:
    """Return the first and the last offset of all spans together, as they are in the table."""
    return min(span.first + span.base for *_, span in spans), max(span.last + span.base for *_, span in spans)


def packed(packing: Packing, batches: Iterable[pa.RecordBatch]) -> Iterator[Pack]:
    """Yield the rows within the spans of ``packing`` as packs.

    Batches are combined first. From each combined batch, at most one pack is made for each span.

    The first column of a batch is the row's position. If positions do not contain the offset, the second column is the row's
    offset in the table.
    """
    positions = packing.positions
    offset_bits = positions.offset_bits
    for batch in _larger(batches):
        slices, *columns = batch.columns
        here = np.asarray(slices)
        if offset_bits:
            offsets = here & ((1 << offset_bits) - 1)
            here = here >> offset_bits
            columns.insert(0, pa.array(offsets))
        else:
            offsets = np.asarray(columns[0])
        arrays = [_column(column, field, packing) for column, field in zip(columns, packing.schema, strict=True)]
        rows = pa.RecordBatch.from_arrays(arrays, schema=packing.schema)
        present = set(distinct(here).tolist())
        for group, task, span in packing.spans:
            number = positions.slice_of(task, span)
            if number not in present:
                continue
            own = offsets - span.base
            chosen = np.flatnonzero((here == number) & (own >= span.first) & (own <= span.last))
            if len(chosen) == 0:
                continue
            if _counts_up(chosen) and _counts_up(own[chosen]):
                # The rows are consecutive and in order, so no copy is needed.
                some = rows.slice(int(chosen[0]), len(chosen))
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
    """Concatenate batches into batches of up to `PACK_ROWS` rows or `PACK_BYTES` bytes."""
    some: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        some.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= PACK_ROWS or size >= PACK_BYTES:
            yield pa.concat_batches(some)
            some, rows, size = [], 0, 0
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
    # Spark passes texts as bytes, because that is faster.
    return column.view(field.type) if pa.types.is_string(field.type) else column.cast(field.type)
