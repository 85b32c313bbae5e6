"""The shuffle reader: Spark reads a log for tasks that cannot open the files of their partition, with one shuffle.

Spark does not shuffle records but packs: a worker converts thousands of records to one Arrow file per task, cut into pieces.
The task's worker writes the pieces to local files. From there, everything works as with the partition-local reader: both
execution modes, merging of topics, the check for missing and duplicate offsets, and partitions larger than memory. If the
layout of the log makes a shuffle unnecessary, `colocated_reader` replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, count, groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import LogColumns, LogSpec, SourceOffsets, SourceSpec
from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import LogFile, LogSpan, LogTable, SubTopologyWork, TaskWork
from rewindow.engine.spark.ingest_columns import landed, offset_columns, source_columns, time_ms
from rewindow.engine.spark.open_table import open_delta, shown
from rewindow.engine.spark.partitioning import repartition_by
from rewindow.engine.worker.arrow_rows import arrow_schema
from rewindow.engine.worker.log_reader import SPOOLED
from rewindow.engine.worker.nested_json import Reader, json_readers
from rewindow.engine.worker.packing import Packing, Positions, cut, offset_bounds, packed, positions_of
from rewindow.engine.worker.record_execution import run_task
from rewindow.errors import StorageError
from rewindow.streams.serde.binding import LogShapes
from rewindow.streams.serde.schema import Column

PACK_COLUMNS = GROUP, TASK, TOPIC, FIRST, LAST, PACK, PIECE = (
    "_group",
    "_task",
    "_topic",
    "_first",
    "_last",
    "_pack",
    "_piece",
)
DATA = "_data"
_PACK_SCHEMA = ", ".join(f"{name} long" for name in PACK_COLUMNS)
POSITION = "_position"
"""The first column of a row (`engine.worker.packing.Positions`)."""
_NO_TOPIC = -1
"""The topic of an empty pack, which makes sure that its task runs."""


def shuffle_frame(
    spark: SparkSession,
    work: SubTopologyWork,
    groups: Sequence[Sequence[TaskWork]],
    logs: LogShapes,
    more: Sequence[DataFrame] = (),
) -> DataFrame:
    """Return a frame with the packs of all tasks, plus the packs in ``more``. Reads nothing yet."""
    group_of = {task.partition: number for number, group in enumerate(groups) for task in group}
    marks = [(group, task, _NO_TOPIC, -1, -1, -1, 0) for task, group in group_of.items()]
    parts = [values(spark, marks, PACK_COLUMNS).withColumn(DATA, F.lit(None).cast("binary")), *more]
    for number, (topic, table) in enumerate(work.tables.items()):
        spans = [
            (group_of[task.partition], task.partition, span) for task in work.tasks for span in task.logs[topic].spans
        ]
        if spans:
            positions = positions_of(spans, has_generations=table.source_offsets is None)
            rows, packing = topic_rows(spark, number, topic, table, spans, logs, positions)
            parts.append(rows.mapInArrow(partial(_packs, packing), f"{_PACK_SCHEMA}, {DATA} binary"))
    packs = reduce(DataFrame.unionByName, parts)
    return repartition_by(packs, len(groups), F.col(GROUP)).sortWithinPartitions(TASK, TOPIC, FIRST, PACK, PIECE)


def run_shuffle(
    work: SubTopologyWork, tasks: Mapping[int, TaskWork], batches: Iterable[pa.RecordBatch]
) -> Iterator[TaskReport]:
    """Run the tasks of the incoming packs, one after the other."""
    topics = list(work.tables)
    with TemporaryDirectory(prefix="rewindow-") as folder:
        for partition, pieces in groupby(_pieces(batches), key=itemgetter(0)):
            files: dict[str, list[LogFile]] = {topic: [] for topic in topics}
            for number, ((_, topic, first, last, _), datas) in enumerate(
                groupby(pieces, key=itemgetter(0, 1, 2, 3, 4))
            ):
                if topic != _NO_TOPIC:
                    path = Path(folder) / f"{number}{SPOOLED}"
                    with path.open("wb") as out:
                        out.writelines(piece[-1] for piece in datas)
                    files[topics[topic]].append(LogFile(str(path), first, last))
            yield run_with_files(work, tasks[partition], files)


def run_with_files(work: SubTopologyWork, task: TaskWork, files: Mapping[str, Sequence[LogFile]]) -> TaskReport:
    """Run a task on local files, given by topic, and remove them afterwards."""
    slices = {topic: replace(task.logs[topic], files=tuple(made)) for topic, made in files.items()}
    try:
        report = run_task(work, replace(task, logs={**task.logs, **slices}))
    except StorageError as error:
        tables = ", ".join(
            table.source_offsets.table if table.source_offsets else shown(table.location)
            for table in work.tables.values()
        )
        message = f"{error} [read by Spark from {tables}]"
        raise StorageError(message) from error
    for file in chain.from_iterable(files.values()):
        Path(file.path).unlink()
    return report


def source_offset_spec(topic: str, table: LogTable, source_offsets: SourceOffsets) -> LogSpec:
    """Return the log specification of a table that has its own offsets."""
    return LogSpec(
        topic=topic,
        source=SourceSpec("delta", table.location, source_offsets.table, {}),
        key=(),
        scalar_key=False,
        value=None,
        scalar_value=False,
        timestamp=source_offsets.timestamp,
        renames=source_offsets.renames,
        zone=source_offsets.zone,
        source_offsets=(source_offsets.partition, source_offsets.offset),
    )


def topic_rows(
    spark: SparkSession,
    number: int,
    topic: str,
    table: LogTable,
    spans: Sequence[tuple[int, int, LogSpan]],
    logs: LogShapes,
    positions: Positions,
) -> tuple[DataFrame, Packing]:
    """Return the rows of one topic, and their packing. Its ``positions`` may number the rows of more spans."""
    frame = open_delta(spark, table.location)
    columns = [column for shape in logs[topic] for column in shape.columns]
    readers: Mapping[str, Reader] = {}
    if table.source_offsets is None:
        partition, offset = (F.col(name).cast("long") for name in ("partition", "offset"))
        generation = F.col("generation")
        frame = frame.where(generation.isin(sorted({span.generation for _, _, span in spans})))
        slices = F.shiftleft(generation.cast("long"), positions.partition_bits).bitwiseOR(partition)
        timestamp = F.col("timestamp")
        expressions = [F.col(f"`{column.name}`") for column in columns]
    else:
        spec = source_offset_spec(topic, table, table.source_offsets)
        found = source_columns(spec, frame.schema)
        partition, offset = offset_columns(spec, found)
        slices = partition
        timestamp = time_ms(spec, spec.timestamp, found).alias("timestamp")
        expressions = [landed(spec, column, found) for column in columns]
        known = LogColumns(
            (), tuple(columns), scalar_key=False, scalar_value=False, source_schema=table.source_offsets.schema
        )
        readers = json_readers(spec, known)
    first, last = offset_bounds(spans)
    # Delta prunes by these conditions; the worker that packs the rows checks each row exactly.
    frame = frame.where(offset.between(first, last) & partition.isin(sorted({task for _, task, _ in spans})))
    schema = arrow_schema((Column("offset", "long"), Column("timestamp", "long"), *columns))
    packing = Packing(number, tuple(spans), schema, readers, positions)
    # Spark converts each column of each row, so there are as few as possible.
    meta = [slices.alias(POSITION), offset.alias("offset")]
    if positions.offset_bits:
        meta = [F.shiftleft(slices, positions.offset_bits).bitwiseOR(offset).alias(POSITION)]
    # Passing a text as bytes costs Spark half as much.
    expressions = [
        (expression.cast("binary") if column.type == "string" else expression).alias(column.name)
        for column, expression in zip(columns, expressions, strict=True)
    ]
    return frame.select(*meta, timestamp, *expressions), packing


def _packs(packing: Packing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack the requested rows; yield the pieces of packs."""
    kinds = pa.schema([*(pa.field(name, pa.int64()) for name in PACK_COLUMNS), pa.field(DATA, pa.binary())])
    context = TaskContext.get()
    numbers = count((context.partitionId() if context else 0) << 32)
    for pack in packed(packing, batches):
        pieces = cut(pack.rows)
        numbers_of_pack = (pack.group, pack.task, packing.topic, pack.first, pack.last, next(numbers))
        arrays = [pa.repeat(pa.scalar(value, pa.int64()), len(pieces)) for value in numbers_of_pack]
        arrays.append(pa.array(range(len(pieces)), pa.int64()))
        yield pa.RecordBatch.from_arrays([*arrays, pieces], schema=kinds)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Yield ``(task, topic, first offset, last offset, pack, data)``. The data of an empty pack are None."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in PACK_COLUMNS[1:-1]]
        data = batch.column(DATA)
        for row, numbers in enumerate(zip(*columns, strict=True)):
            yield *numbers, data[row].as_buffer()


def values(spark: SparkSession, rows: Sequence[tuple[int, ...]], names: Sequence[str]) -> DataFrame:
    """Return a few rows of longs. It uses SQL text, because `createDataFrame` would start Python workers."""
    listed = ", ".join("(" + ", ".join(f"{number}L" for number in row) + ")" for row in rows)
    return spark.sql(f"SELECT * FROM VALUES {listed} AS t({', '.join(names)})")  # noqa: S608 - only our own numbers
