"""The rows of a log's table, from landed blocks. The partition columns are in a block's path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.engine.spark.spark_job import mapped
from rewindow.engine.worker.failures import mark
from rewindow.errors import StorageError
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.blocks import rows_of_block
from rewindow.tables.governed.commit import ddl
from rewindow.tables.governed.journal import SparkJournal
from rewindow.tables.shared.feeds import LOG_PARTITIONS


def frame_of_log(
    spark: SparkSession, journal: SparkJournal, paths: Sequence[str], columns: Sequence[Column]
) -> DataFrame:
    """Return the rows of landed blocks: from memory if all are there, else decoded by workers.

    Raises `StorageError` (74) if the journal lacks a block.
    """
    names = [column.name for column in columns]
    if journal.in_memory(paths):
        data = journal.block_data(paths)
        batches = [batch for path in paths for batch in _rows_of(names, path, data[path])]
        return spark.createDataFrame(pa.Table.from_batches(batches), ddl(columns)).coalesce(1)
    rows = journal.blocks(sorted({path.partition("/")[0] for path in paths})).where(F.col("path").isin(list(paths)))
    if len(paths) <= _IN_ONE_TASK:
        return rows.coalesce(1).mapInArrow(partial(_decoded, names, set(paths)), ddl(columns))
    with mapped():
        staged = {row["path"] for row in rows.select("path").collect()}
    if staged != set(paths):
        raise StorageError(f"{journal.name}: {_GONE}")
    return rows.mapInArrow(partial(_decoded, names, set()), ddl(columns))


_IN_ONE_TASK = 64
"""So many blocks are decoded by one task, which sees whether all are there: a query less."""
_GONE = "blocks that were landed are gone from the journal: restore the journal from a copy"


def _decoded(names: Sequence[str], wanted: set[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = set()
    for batch in batches:
        for path, data in zip(batch.column("path").to_pylist(), batch.column("data").to_pylist(), strict=True):
            found.add(path)
            yield from _rows_of(names, path, data)
    if not wanted <= found:
        raise RuntimeError(mark(StorageError(_GONE)))


def _rows_of(names: Sequence[str], path: str, data: bytes) -> Iterator[pa.RecordBatch]:
    rows = rows_of_block(data)
    for part in path.split("/")[:-1]:
        column, found, number = part.partition("=")
        if found and column in LOG_PARTITIONS and column in names:
            rows = rows.append_column(column, pa.array([int(number)] * rows.num_rows, pa.int32()))
    yield from rows.select(list(names)).to_batches()
