"""The shuffle reader: where a task cannot open the files of its partition, Spark reads the log: one exchange, one sort.

What travels is not records but packs of them: a worker makes of some thousands of records one Arrow file for each task,
cut into pieces, and the exchange places and sorts those. The task's worker lays them down, and from there on everything is
as with the partition-local reader: the same modes, the same merge of several topics, the same check that each offset is there
exactly once, and a partition may be larger than memory. Where the log's own layout does the exchange: `colocated`.
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
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import LogColumns, LogSpec, SourceOffsets, SourceSpec
from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import LogFile, LogSpan, LogTable, SubTopologyWork, TaskWork
from rewindow.engine.spark.exchange import repartition_by
from rewindow.engine.spark.ingest_columns import landed, offset_columns, source_columns, time_ms
from rewindow.engine.spark.open_table import open_delta, shown
from rewindow.engine.worker.arrow_rows import arrow_schema
from rewindow.engine.worker.log_reader import SPOOLED
from rewindow.engine.worker.nested_json import Reader, json_readers
from rewindow.engine.worker.packing import Packing, cut, packed
from rewindow.engine.worker.record_execution import run_task
from rewindow.errors import StorageError
from rewindow.streams.serde.binding import LogShapes
from rewindow.streams.serde.schema import Column

PLACES = GROUP, TASK, TOPIC, FIRST, LAST, PACK, PIECE = (
    "_group",
    "_task",
    "_topic",
    "_first",
    "_last",
    "_pack",
    "_piece",
)
DATA = "_data"
_PLACES = ", ".join(f"{name} long" for name in PLACES)
HERE, FROM = "_partition", "_stored"
_NO_TOPIC = -1
"""The topic of a pack that only says that there is a task."""


def shuffle_frame(
    spark: SparkSession,
    work: SubTopologyWork,
    groups: Sequence[Sequence[TaskWork]],
    logs: LogShapes,
    more: Sequence[DataFrame] = (),
) -> DataFrame:
    """Return the packs of a stage's tasks as the workers want them, with ``more`` of them. Nothing is read here."""
    group_of = {task.partition: number for number, group in enumerate(groups) for task in group}
    marks = [(group, task, _NO_TOPIC, -1, -1, -1, 0) for task, group in group_of.items()]
    parts = [values(spark, marks, PLACES).withColumn(DATA, F.lit(None).cast("binary")), *more]
    for number, (topic, table) in enumerate(work.tables.items()):
        spans = [
            (group_of[task.partition], task.partition, span) for task in work.tasks for span in task.logs[topic].spans
        ]
        if spans:
            rows, packing = topic_rows(spark, number, topic, table, spans, logs)
            parts.append(rows.mapInArrow(partial(_packs, packing), f"{_PLACES}, {DATA} binary"))
    packs = reduce(DataFrame.unionByName, parts)
    source_offsets = repartition_by(packs, len(groups), F.col(GROUP))
    return source_offsets.sortWithinPartitions(TASK, TOPIC, FIRST, PACK, PIECE)


def run_shuffle(
    work: SubTopologyWork, tasks: Mapping[int, TaskWork], batches: Iterable[pa.RecordBatch]
) -> Iterator[TaskReport]:
    """Run the tasks whose packs come in, one after the other."""
    topics = list(work.tables)
    with TemporaryDirectory(prefix="rewindow-") as folder:
        for partition, pieces in groupby(_pieces(batches), key=itemgetter(0)):
            files: dict[str, list[LogFile]] = {topic: [] for topic in topics}
            for number, ((_, topic, first, last, _), datas) in enumerate(
                groupby(pieces, key=itemgetter(0, 1, 2, 3, 4))
            ):
                if topic != _NO_TOPIC:
                    place = Path(folder) / f"{number}{SPOOLED}"
                    with place.open("wb") as out:
                        out.writelines(piece[-1] for piece in datas)
                    files[topics[topic]].append(LogFile(str(place), first, last))
            yield run_on(work, tasks[partition], files)


def run_on(work: SubTopologyWork, task: TaskWork, files: Mapping[str, Sequence[LogFile]]) -> TaskReport:
    """Run a task on files that were laid down for it, by topic; remove them."""
    slices = {topic: replace(task.logs[topic], files=tuple(made)) for topic, made in files.items()}
    try:
        report = run_task(work, replace(task, logs={**task.logs, **slices}))
    except StorageError as error:
        places = ", ".join(
            table.source_offsets.table if table.source_offsets else shown(table.location)
            for table in work.tables.values()
        )
        message = f"{error} [read by Spark from {places}]"
        raise StorageError(message) from error
    for file in chain.from_iterable(files.values()):
        Path(file.path).unlink()
    return report


def source_offset_spec(topic: str, table: LogTable, source_offsets: SourceOffsets) -> LogSpec:
    """Return what the expressions of a log's columns are made by."""
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
) -> tuple[DataFrame, Packing]:
    """Return the rows of one topic, and how a worker packs them."""
    frame = open_delta(spark, table.location)
    columns = [column for shape in logs[topic] for column in shape.columns]
    made: Expression = F.lit(0)
    readers: Mapping[str, Reader] = {}
    if table.source_offsets is None:
        partition, offset = (F.col(name).cast("long") for name in ("partition", "offset"))
        made = F.col("generation")
        frame = frame.where(made.isin(sorted({span.generation for _, _, span in spans})))
        timestamp = F.col("timestamp")
        cells = [F.col(f"`{column.name}`") for column in columns]
    else:
        spec = source_offset_spec(topic, table, table.source_offsets)
        found = source_columns(spec, frame.schema)
        partition, offset = offset_columns(spec, found)
        timestamp = time_ms(spec, spec.timestamp, found).alias("timestamp")
        cells = [landed(spec, column, found) for column in columns]
        known = LogColumns(
            (), tuple(columns), scalar_key=False, scalar_value=False, source_schema=table.source_offsets.schema
        )
        readers = json_readers(spec, known)
    first, last = (pick(span[place] + span.base for _, _, span in spans) for pick, place in ((min, 1), (max, 2)))
    # What Delta can prune by; each row is looked at again by the worker that packs it.
    frame = frame.where(offset.between(first, last) & partition.isin(sorted({task for _, task, _ in spans})))
    schema = arrow_schema((Column("offset", "long"), Column("timestamp", "long"), *columns))
    packing = Packing(number, tuple(spans), schema, readers, table.source_offsets is None)
    # Spark hands over a text's bytes for half of what the text costs.
    cells = [
        (cell.cast("binary") if column.type == "string" else cell).alias(column.name)
        for column, cell in zip(columns, cells, strict=True)
    ]
    places = partition.alias(HERE), made.cast("long").alias(FROM), offset.alias("offset")
    return frame.select(*places, timestamp, *cells), packing


def _packs(packing: Packing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make packs of the rows that are asked for; give their pieces."""
    kinds = pa.schema([*(pa.field(name, pa.int64()) for name in PLACES), pa.field(DATA, pa.binary())])
    context = TaskContext.get()
    numbers = count((context.partitionId() if context else 0) << 32)
    for pack in packed(packing, batches):
        pieces = cut(pack.rows)
        places = (pack.group, pack.task, packing.topic, pack.first, pack.last, next(numbers))
        cells = [pa.repeat(pa.scalar(value, pa.int64()), len(pieces)) for value in places]
        cells.append(pa.array(range(len(pieces)), pa.int64()))
        yield pa.RecordBatch.from_arrays([*cells, pieces], schema=kinds)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Yield ``(task, topic, first offset, last offset, pack, data)``; of a task that is only named the data are None."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in PLACES[1:-1]]
        data = batch.column(DATA)
        for row, places in enumerate(zip(*columns, strict=True)):
            yield *places, data[row].as_buffer()


def values(spark: SparkSession, rows: Sequence[tuple[int, ...]], names: Sequence[str]) -> DataFrame:
    """Return a few rows of longs. As a text: `createDataFrame` would start Python workers for it."""
    listed = ", ".join("(" + ", ".join(f"{number}L" for number in row) + ")" for row in rows)
    return spark.sql(f"SELECT * FROM VALUES {listed} AS t({', '.join(names)})")  # noqa: S608 - numbers of our own
