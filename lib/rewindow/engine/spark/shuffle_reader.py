"""The shuffle reader: Spark reads a log for tasks that cannot open the files of their partition, with one shuffle.

Spark does not shuffle single records, but packs. A pack is an Arrow file with thousands of records of one task, cut into
pieces. The worker of the task writes the pieces to local files. The task then reads these files as it would with the
partition-local reader. So everything else works as with that reader: both executions, the merging of topics, the check for
missing and duplicate offsets, and partitions larger than memory.

A sub-topology with a single landed log and few groups of tasks uses the colocated reader instead. That reader needs no
shuffle, because each Spark task reads the partitions of its own group. The Delta table of a landed log is partitioned by
partition, so Spark reads only the group's files. The worker packs the rows as the shuffle reader does, but writes the packs
to local files directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, count, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import LogColumns, LogSpec, SourceOffsets, SourceSpec
from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import LogFile, LogSpan, LogTable, SubTopologyWork, TaskWork
from rewindow.engine.spark.ingest_frames import landed, offset_columns, source_columns, time_ms
from rewindow.engine.spark.spark_calls import open_delta, shown
from rewindow.engine.spark.spark_partitions import repartition_by
from rewindow.engine.worker.arrow_rows import arrow_schema
from rewindow.engine.worker.log_reader import SPOOLED
from rewindow.engine.worker.packing import Packing, Positions, cut, offset_bounds, packed, positions_of
from rewindow.engine.worker.spark_json import Reader, json_readers
from rewindow.engine.worker.task_execution import run_task
from rewindow.errors import StorageError
from rewindow.storage.scratch import scratch_folder
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import LogShapes

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
_POSITION = "_position"
"""The first column of a row. It contains the position of the row (`engine.worker.packing.Positions`)."""
_NO_TOPIC = -1
"""The topic number of an empty pack. Each task gets an empty pack, so that tasks without records run, too."""
_MOST_GROUPS = 8
"""The colocated reader is used for at most this many groups. Each group needs its own scan, so a shuffle of more groups is
cheaper."""


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
    parts = [_values(spark, marks, PACK_COLUMNS).withColumn(DATA, F.lit(None).cast("binary")), *more]
    for number, (topic, table) in enumerate(work.tables.items()):
        spans = [
            (group_of[task.partition], task.partition, span) for task in work.tasks for span in task.logs[topic].spans
        ]
        if spans:
            positions = positions_of(spans, has_generations=table.source_offsets is None)
            rows, packing = _topic_rows(spark, number, topic, table, spans, logs, positions)
            parts.append(rows.mapInArrow(partial(_packs, packing), f"{_PACK_SCHEMA}, {DATA} binary"))
    packs = reduce(DataFrame.unionByName, parts)
    return repartition_by(packs, len(groups), F.col(GROUP)).sortWithinPartitions(TASK, TOPIC, FIRST, PACK, PIECE)


def run_shuffle(
    work: SubTopologyWork, tasks: Mapping[int, TaskWork], batches: Iterable[pa.RecordBatch]
) -> Iterator[TaskReport]:
    """Write the packs in ``batches`` to local files, and run their tasks, one after the other.

    ``tasks`` maps a partition to its task.
    """
    topics = list(work.tables)
    with scratch_folder() as folder:
        for partition, pieces in groupby(_pieces(batches), key=itemgetter(0)):
            files: dict[str, list[LogFile]] = {topic: [] for topic in topics}
            for number, ((_, topic, start, end, _), datas) in enumerate(groupby(pieces, key=itemgetter(0, 1, 2, 3, 4))):
                if topic != _NO_TOPIC:
                    path = Path(folder) / f"{number}{SPOOLED}"
                    with path.open("wb") as out:
                        out.writelines(piece[-1] for piece in datas)
                    files[topics[topic]].append(LogFile(str(path), start, end))
            yield _run_with_files(work, tasks[partition], files)


def colocated_frame(
    spark: SparkSession, work: SubTopologyWork, groups: Sequence[Sequence[TaskWork]], logs: LogShapes
) -> tuple[DataFrame, Packing] | None:
    """Return a frame with the rows of a sub-topology's only log, one Spark task per group, and the packing of these rows.

    Returns None if a shuffle is needed. Reads nothing yet.
    """
    if (
        len(groups) > _MOST_GROUPS
        or [table for table in work.tables.values() if table.source_offsets]
        or len(work.tables) > 1
    ):
        return None
    ((topic, table),) = work.tables.items()
    spans = [
        [(number, task.partition, span) for task in group for span in task.logs[topic].spans]
        for number, group in enumerate(groups)
    ]
    every = tuple(chain.from_iterable(spans))
    if not every:
        return None
    positions = positions_of(every, has_generations=True)
    parts = []
    for number, here in enumerate(spans):
        part = _values(spark, [(_mark(number),)], (_POSITION,))
        if here:
            topic_rows, packing = _topic_rows(spark, 0, topic, table, here, logs, positions)
            part = topic_rows.unionByName(part, allowMissingColumns=True)
        parts.append(part.coalesce(1))
    rows = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)
    return rows, packing._replace(spans=every)


def run_colocated(
    work: SubTopologyWork, groups: Sequence[Sequence[TaskWork]], packing: Packing, batches: Iterable[pa.RecordBatch]
) -> Iterator[TaskReport]:
    """Write the rows in ``batches`` to local files, then run the tasks of their groups, one after the other."""
    (topic,) = work.tables
    marks: list[int] = []
    made: dict[int, list[LogFile]] = {}
    with scratch_folder() as folder:
        for number, pack in enumerate(packed(packing, _unmarked(batches, marks))):
            path = f"{folder}/{number}{SPOOLED}"
            with pa.OSFile(path, "wb") as out, pa.ipc.new_file(out, pack.rows.schema) as writer:
                writer.write_batch(pack.rows)
            made.setdefault(pack.task, []).append(LogFile(path, pack.first, pack.last))
        for group in marks:
            for task in groups[group]:
                yield _run_with_files(work, task, {topic: made.get(task.partition, [])})


def _run_with_files(work: SubTopologyWork, task: TaskWork, files: Mapping[str, Sequence[LogFile]]) -> TaskReport:
    """Run a task on local files, and remove the files afterwards. ``files`` maps a topic to its files."""
    slices = {topic: replace(task.logs[topic], files=tuple(made)) for topic, made in files.items()}
    try:
        report = run_task(work, replace(task, logs={**task.logs, **slices}))
    except StorageError as error:
        tables = ", ".join(
            table.source_offsets.table if table.source_offsets else shown(table.location)
            for table in work.tables.values()
        )
        error.surrounded(after=f" [read by Spark from {tables}]")
        raise
    for file in chain.from_iterable(files.values()):
        Path(file.path).unlink()
    return report


def _source_offset_spec(topic: str, table: LogTable, source_offsets: SourceOffsets) -> LogSpec:
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


def _topic_rows(
    spark: SparkSession,
    number: int,
    topic: str,
    table: LogTable,
    spans: Sequence[tuple[int, int, LogSpan]],
    logs: LogShapes,
    positions: Positions,
) -> tuple[DataFrame, Packing]:
    """Return the rows of one topic, and their packing.

    ``number`` is the topic's number. ``spans`` has triples (group, task, span). ``positions`` says how rows are numbered. The
    numbering may include the rows of other spans.
    """
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
        spec = _source_offset_spec(topic, table, table.source_offsets)
        sources = source_columns(spec, frame.schema)
        partition, offset = offset_columns(spec, sources)
        slices = partition
        timestamp = time_ms(spec, spec.timestamp, sources).alias("timestamp")
        expressions = [landed(spec, column, sources) for column in columns]
        log_columns = LogColumns(
            (), tuple(columns), scalar_key=False, scalar_value=False, source_schema=table.source_offsets.schema
        )
        readers = json_readers(spec, log_columns)
    first, last = offset_bounds(spans)
    # Delta prunes by these conditions; the worker that packs the rows checks each row exactly.
    frame = frame.where(offset.between(first, last) & partition.isin(sorted({task for _, task, _ in spans})))
    schema = arrow_schema((Column("offset", "long"), Column("timestamp", "long"), *columns))
    packing = Packing(number, tuple(spans), schema, readers, positions)
    # Spark converts each column of each row. So the offset is part of the position. It has its own column only if it is too
    # large for that.
    meta = [slices.alias(_POSITION), offset.alias("offset")]
    if positions.offset_bits:
        meta = [F.shiftleft(slices, positions.offset_bits).bitwiseOR(offset).alias(_POSITION)]
    # Spark takes half the time to pass texts if they are passed as bytes.
    expressions = [
        (expression.cast("binary") if column.type == "string" else expression).alias(column.name)
        for column, expression in zip(columns, expressions, strict=True)
    ]
    return frame.select(*meta, timestamp, *expressions), packing


def _packs(packing: Packing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack the rows within the spans of ``packing``. Yield the pieces of each pack, one row per piece."""
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
    """Yield ``(task, topic, first offset, last offset, pack, data)`` for each piece. ``data`` is None for an empty pack."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in PACK_COLUMNS[1:-1]]
        data = batch.column(DATA)
        for row, numbers in enumerate(zip(*columns, strict=True)):
            yield *numbers, data[row].as_buffer()


def _values(spark: SparkSession, rows: Sequence[tuple[int, ...]], names: Sequence[str]) -> DataFrame:
    """Return a frame with a few rows of longs."""
    # The rows are SQL text, because `createDataFrame` would start Python workers.
    listed = ", ".join("(" + ", ".join(f"{number}L" for number in row) + ")" for row in rows)
    return spark.sql(f"SELECT * FROM VALUES {listed} AS t({', '.join(names)})")  # noqa: S608 - only our own numbers


def _mark(group: int) -> int:
    """Return the position of a group's marker row. Given the position of a marker row, return its group.

    Each group has a marker row, so that its tasks run even if the group has no other rows.
    """
    return -1 - group


def _unmarked(batches: Iterable[pa.RecordBatch], marks: list[int]) -> Iterator[pa.RecordBatch]:
    """Yield the rows without the marker rows. Add the groups of the marker rows to ``marks``."""
    for batch in batches:
        positions = np.asarray(batch.column(_POSITION))
        is_mark = positions < 0
        if is_mark.any():
            marks += map(_mark, positions[is_mark].tolist())
            rows = batch.filter(pa.array(~is_mark))
            if rows.num_rows:
                yield rows
        else:
            yield batch
