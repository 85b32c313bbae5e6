"""Writes the records of some partitions of one log, and cuts them into blocks: one per landing and partition.

Record batches in, `Block`s out; no Spark. Rows come sorted by partition, arrival and the declared order; so a landing is
a stretch of rows, and an offset is a count.
"""

from __future__ import annotations

import importlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from rewindow.contracts.ingest import FAR, Block, LogWrite, Slot
from rewindow.engine.worker.log_blocks import ARRIVED, PARTITION, OpenBlock, longs
from rewindow.engine.worker.nested_json import canonical_json, json_readers
from rewindow.engine.worker.timestamps import Extractor
from rewindow.errors import ConfigError, SourceError
from rewindow.streams.record import UNKNOWN


def write_log(write: LogWrite, batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    """Write the rows of sorted batches and give a block for each landing and partition that got any.

    Raises `DataError` (65) for a record that the policy refuses, naming it; `SourceError` (66) for rows of an arrival
    that was not there when the landings were numbered.
    """
    name = write.spec.extractor
    extractor = load_extractor(name) if name else None
    block: OpenBlock | None = None
    places = dict(write.starts)
    slot_starts = [slot.start_ms for slot in write.slots]
    try:
        for partition, rows in _stretches(_canonical(write, batches)):
            at = 0
            while at < rows.num_rows:
                slot, count, behind = _next_slot(write, slot_starts, rows.slice(at))
                if block is None or (block.slot, block.partition) != (slot, partition):
                    if block is not None:
                        places[block.partition] = block.place
                        yield block.close()
                    block = OpenBlock(write, slot, partition, places.get(partition, (0, UNKNOWN)), extractor)
                part = rows.slice(at, count)
                block.add(_without_arrival(part) if write.spec.is_output else part, behind)
                at += count
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
        extractor: Extractor = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        message = (
            f"timestamp: {name} cannot be imported ({error}). Give module:function, importable from the project's root"
        )
        raise ConfigError(message) from error
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


def _stretches(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in batches:
        partitions = np.asarray(batch.column(PARTITION))
        cuts = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), batch.num_rows]
        for start, end in pairwise(cuts):
            if end > start:
                yield int(partitions[start]), batch.slice(start, end - start)


def _without_arrival(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of another job's output without their epochs, which stood for their arrival."""
    at = rows.schema.get_field_index(ARRIVED)
    return rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, pa.int64()))


def _next_slot(write: LogWrite, slot_starts: list[int], rows: pa.RecordBatch) -> tuple[Slot, int, int]:
    """Return the landing of the first row, how many rows from there are its, and how many of these are behind."""
    if len(write.slots) == 1 and write.slots[0].interval is None:
        return write.slots[0], rows.num_rows, 0
    times = longs(rows.column(ARRIVED), -FAR)
    slot = write.slots[max(bisect_right(slot_starts, int(times[0])) - 1, 0)]
    count = int(np.searchsorted(times, slot.end_ms, side="left"))
    if count == 0:
        message = f"{write.spec.source.name} got rows while it was being landed (arrival {int(times[0])}): land again"
        raise SourceError(message)
    return slot, count, int(np.searchsorted(times[:count], slot.start_ms, side="left"))
