"""The blocks of a store reach a worker in pieces, and each task of the worker gets its own files."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from rewindow.contracts.tasks import Execution, TaskWork
from rewindow.engine.spark.shuffle_reader import DATA, PACK_COLUMNS
from rewindow.engine.worker.packing import PIECE_BYTES
from rewindow.tables.governed.rows_engine import _BLOCK_TOPIC, ROOT, RowsEngine, _relocated, _write_blocks

SCHEMA = pa.schema([*((name, pa.int64()) for name in PACK_COLUMNS), (DATA, pa.binary())])
BLOCKS = {"a1/changelog/one": b"x" * PIECE_BYTES + b"yz", "a2/changelog/one": b"short"}


def rows(partition: int) -> list[dict[str, object]]:
    """Return what Spark delivers for one task: its blocks in pieces, then a pack of records."""
    made: list[dict[str, object]] = []
    for number, data in enumerate(BLOCKS.values()):
        for piece, first in enumerate(range(0, len(data), PIECE_BYTES)):
            position = (0, partition, _BLOCK_TOPIC, number, -1, -1, piece)
            made.append({**dict(zip(PACK_COLUMNS, position, strict=True)), DATA: data[first : first + PIECE_BYTES]})
    pack = (0, partition, 0, 0, 0, 0, 0)
    return [*made, {**dict(zip(PACK_COLUMNS, pack, strict=True)), DATA: b"records"}]


def test_a_block_in_pieces_is_whole_for_every_task_that_reads_it(tmp_path: Path) -> None:
    stores = {"one": tuple(f"{ROOT}{path}" for path in BLOCKS)}
    tasks = {partition: TaskWork(partition, {}, {}, None, stores) for partition in (0, 1)}
    delivered = [*rows(0), *rows(1)]
    batches = [pa.RecordBatch.from_pylist(delivered[at : at + 3], schema=SCHEMA) for at in range(0, len(delivered), 3)]
    yielded = [batch.column(DATA).to_pylist() for batch in _write_blocks(batches, tasks, str(tmp_path))]
    assert list(chain.from_iterable(yielded)) == [b"records", b"records"]
    for task in tasks.values():
        given = [Path(path).read_bytes() for path in _relocated(task, str(tmp_path)).stores["one"]]
        assert given == list(BLOCKS.values())


class Journal:
    """Has the blocks, as the journal's table."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def blocks(self, _attempts: list[str]) -> DataFrame:
        data = pa.array(list(BLOCKS.values()), pa.binary())
        return self._spark.createDataFrame(pa.table({"path": list(BLOCKS), "data": data}))


@pytest.mark.spark
def test_spark_cuts_blocks_into_the_pieces_that_a_worker_joins(spark: SparkSession, tmp_path: Path) -> None:
    stores = {"one": tuple(f"{ROOT}{path}" for path in BLOCKS)}
    task = TaskWork(0, {}, {}, None, stores)
    engine = RowsEngine(spark, lambda _job: cast("Any", Journal(spark)), slots=2, execution=Execution.RECORD)
    (frame,) = engine._blocks([[task]])
    found = sorted(frame.collect(), key=lambda row: (row["_first"], row["_piece"]))
    assert set(frame.columns) == {*PACK_COLUMNS, DATA}
    assert max(len(row[DATA]) for row in found) == PIECE_BYTES
    rows_in = pa.RecordBatch.from_pylist([row.asDict() for row in found], schema=SCHEMA)
    assert list(_write_blocks([rows_in], {0: task}, str(tmp_path))) == []
    given = [Path(path).read_bytes() for path in _relocated(task, str(tmp_path)).stores["one"]]
    assert given == list(BLOCKS.values())
