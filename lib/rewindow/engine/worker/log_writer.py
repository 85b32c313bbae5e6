"""Write the rows of some partitions of one log as blocks: one per landing and partition.

Rows arrive sorted by partition, arrival and declared order. So a landing is a contiguous range of rows, and offsets
count up. Those of another job's output are put in the order of time first.
"""

from __future__ import annotations

import importlib
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from itertools import chain

import numpy as np
import pyarrow as pa

from rewindow.contracts.ingest import FAR, LogWrite, PendingLanding
from rewindow.contracts.landing import Block
from rewindow.engine.worker.landing.interleave import interleaved
from rewindow.engine.worker.log_blocks import ARRIVED, OpenBlock, by_partition, longs
from rewindow.engine.worker.nested_json import canonical_json, json_readers
from rewindow.engine.worker.timestamps import Extractor
from rewindow.errors import ConfigError, SourceError
from rewindow.streams.record import UNKNOWN


def write_log(write: LogWrite, batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    """Write the rows of sorted batches; yield a block for each landing and partition with rows.

    Raises `DataError` (65), naming the record, if the timestamp policy rejects one; `SourceError` (66) for rows that
    arrived after the landings were numbered.
    """
    name = write.spec.extractor
    extractor = load_extractor(name) if name else None
    block: OpenBlock | None = None
    positions = dict(write.starts)
    starts = [pending.start_ms for pending in write.landings]
    try:
        # An output has its rows key by key, so they are interleaved before they get offsets.
        ordered = interleaved(write, batches) if write.spec.is_output else batches
        for partition, rows in chain.from_iterable(map(by_partition, _canonical(write, ordered))):
            start = 0
            while start < rows.num_rows:
                landing, count, behind = _next_landing(write, starts, rows.slice(start))
                if block is None or (block.landing, block.partition) != (landing, partition):
                    if block is not None:
                        positions[block.partition] = block.position
                        yield block.close()
                    block = OpenBlock(write, landing, partition, positions.get(partition, (0, UNKNOWN)), extractor)
                part = rows.slice(start, count)
                block.add(_without_arrival(part) if write.spec.is_output else part, behind)
                start += count
        if block is not None:
            yield block.close()
            block = None
    finally:
        if block is not None:
            block.abort()


def load_extractor(name: str) -> Extractor:
    """Return the function of ``module:function``. Raises `ConfigError` (78) if it cannot be imported."""
    module_name, _, function_name = name.partition(":")
    try:
        # Standard output is for the command's own, such as JSON.
        with redirect_stdout(sys.stderr):
            extractor: Extractor = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            "timestamp-function-missing",
            "timestamp: {function} cannot be imported ({reason}). Use a module:function that the project's root can import",
            function=name,
            reason=str(error),
        ) from error
    return extractor


def _canonical(write: LogWrite, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    readers = json_readers(write.spec, write.columns)
    if not readers:
        return batches
    return (
        pa.RecordBatch.from_arrays(
            [
                canonical_json(column, readers[name]) if name in readers else column
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ],
            schema=batch.schema,
        )
        for batch in batches
    )


def _without_arrival(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Clear the arrivals of another job's output, which were epoch numbers."""
    position = rows.schema.get_field_index(ARRIVED)
    return rows.set_column(position, rows.schema.field(position), pa.nulls(rows.num_rows, pa.int64()))


def _next_landing(write: LogWrite, starts: list[int], rows: pa.RecordBatch) -> tuple[PendingLanding, int, int]:
    """Return the landing of the first row, its number of rows, and how many of these are behind."""
    if len(write.landings) == 1 and write.landings[0].interval is None:
        return write.landings[0], rows.num_rows, 0
    # Rows without an arrival come first, and rows of earlier intervals go to the first landing that is still to come.
    times = longs(rows.column(ARRIVED), -FAR)
    landing = write.landings[max(bisect_right(starts, int(times[0])) - 1, 0)]
    count = int(np.searchsorted(times, landing.end_ms, side="left"))
    # The landings were numbered from the same rows, so a row behind all of them was added since.
    if count == 0:
        raise SourceError(
            "source-changed-while-landing",
            "{source} received rows during the landing (arrival {arrival}). Land again",
            source=write.spec.source.name,
            arrival=int(times[0]),
        )
    # Rows without an arrival come first. Whether they are late is unknown.
    unknown = rows.column(ARRIVED).slice(0, count).null_count
    return landing, count, int(np.searchsorted(times[:count], landing.start_ms, side="left")) - unknown
