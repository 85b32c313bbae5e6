"""The first or last rows of a table in the order of time, a batch at a time, so that a large table needs little memory."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rewindow.streams.serde.schema import OUTPUT_META
from rewindow.tables.delta.content_hash import read_batches

_BATCH_ROWS = 100_000


def first_rows(path: str, limit: int, *, last: bool = False, keys: Sequence[str] = ()) -> pa.Table:
    """Return the ``limit`` rows of an output table that come first in the order of timestamp, record and ``keys``.

    ``last``: those that come last, in the same order. Raises `StorageError` (74) if the table cannot be read.
    """
    names = [*(column.name for column in OUTPUT_META if column.name != "_run"), *keys]
    reader = read_batches(path)
    order = [(name, "descending" if last else "ascending") for name in names if name in reader.schema.names]
    kept, waiting = reader.schema.empty_table(), []
    for batch in reader:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= _BATCH_ROWS:
            kept, waiting = _best(kept, waiting, order, limit), []
    kept = _best(kept, waiting, order, limit)
    return kept.take(pa.array(range(kept.num_rows - 1, -1, -1), pa.int64())) if last else kept


def _best(kept: pa.Table, more: Sequence[pa.RecordBatch], order: Sequence[tuple[str, str]], limit: int) -> pa.Table:
    rows = pa.concat_tables([kept, pa.Table.from_batches(more, kept.schema)])
    return rows.sort_by(list(order)).slice(0, limit)
