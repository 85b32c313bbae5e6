"""The shuffled source: where a task cannot open the files of its partition, Spark reads the log: one exchange, one sort.

What travels is not records but packs of them: a worker makes of some thousands of records one Arrow file for each task,
cut into pieces, and the exchange places and sorts those. The task's worker lays them down, and from there on everything is
as with the aligned source: the same lanes, the same merge of several topics, the same check that each offset is there
exactly once, and a partition may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.core.binding import LogShapes
from rewindow.core.land import LogColumns, LogSpec, PlacedLog, SourceSpec
from rewindow.core.schema import Column
from rewindow.core.staging import TaskReport
from rewindow.core.work import LogFile, LogSpan, LogTable, StageWork, TaskWork
from rewindow.errors import StorageError
from rewindow.spark.aligned import SPOOLED
from rewindow.spark.columns import landed, place_columns, source_columns, time_ms
from rewindow.spark.execute import run_task
from rewindow.spark.nested import Reader, canonical_json, json_readers
from rewindow.spark.opened import open_delta, shown
from rewindow.spark.rows import arrow_schema

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
PIECE_BYTES = 32 << 10
PACK_ROWS = 65_536
PACK_BYTES = 32 << 20
_HERE, _FROM = "_partition", "_stored"
_NO_TOPIC = -1
"""The topic of a pack that only says that there is a task."""


def shuffled_frame(
    spark: SparkSession,
    work: StageWork,
    groups: Sequence[Sequence[TaskWork]],
    logs: LogShapes,
    more: Sequence[DataFrame] = (),
) -> DataFrame:
    """Return the packs of a stage's tasks as the workers want them, with ``more`` of them. Nothing is read here."""
    group_of = {task.partition: number for number, group in enumerate(groups) for task in group}
    marks = [(group, task, _NO_TOPIC, -1, -1, -1, 0) for task, group in group_of.items()]
    parts = [_values(spark, marks, PLACES).withColumn(DATA, F.lit(None).cast("binary")), *more]
    for number, (topic, table) in enumerate(work.tables.items()):
        spans = [
            (group_of[task.partition], task.partition, span) for task in work.tasks for span in task.logs[topic].spans
        ]
        if spans:
            parts.append(_topic_packs(spark, number, topic, table, spans, logs))
    packs = reduce(DataFrame.unionByName, parts)
    placed = packs.repartitionById(len(groups), F.col(GROUP).cast("int"))
    return placed.sortWithinPartitions(TASK, TOPIC, FIRST, PACK, PIECE)


def run_shuffled(
    work: StageWork, tasks: Mapping[int, TaskWork], batches: Iterable[pa.RecordBatch]
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
            task = tasks[partition]
            slices = {topic: replace(task.logs[topic], files=tuple(made)) for topic, made in files.items()}
            try:
                yield run_task(work, replace(task, logs={**task.logs, **slices}))
            except StorageError as error:
                places = ", ".join(
                    table.placed.table if table.placed else shown(table.location) for table in work.tables.values()
                )
                message = f"{error} [read by Spark from {places}]"
                raise StorageError(message) from error
            for made in files.values():
                for file in made:
                    Path(file.path).unlink()


def placed_spec(topic: str, table: LogTable, placed: PlacedLog) -> LogSpec:
    """Return what the expressions of a log's columns are made by."""
    return LogSpec(
        topic=topic,
        source=SourceSpec("delta", table.location, placed.table, {}),
        key=(),
        scalar_key=False,
        value=None,
        scalar_value=False,
        timestamp=placed.timestamp,
        renames=placed.renames,
        zone=placed.zone,
        placed=(placed.partition, placed.offset),
    )


class _Packing(NamedTuple):
    """How a worker packs the rows of one topic: whose they are, and how a table's cells become a log's."""

    topic: int
    spans: tuple[tuple[int, int, LogSpan], ...]
    """The group and the task of each span."""
    schema: pa.Schema
    readers: Mapping[str, Reader]
    has_generations: bool


def _topic_packs(
    spark: SparkSession,
    number: int,
    topic: str,
    table: LogTable,
    spans: Sequence[tuple[int, int, LogSpan]],
    logs: LogShapes,
) -> DataFrame:
    """Return the packs of one topic."""
    frame = open_delta(spark, table.location)
    columns = [column for shape in logs[topic] for column in shape.columns]
    made: Expression = F.lit(0)
    readers: Mapping[str, Reader] = {}
    if table.placed is None:
        partition, offset = (F.col(name).cast("long") for name in ("partition", "offset"))
        made = F.col("generation")
        frame = frame.where(made.isin(sorted({span.generation for _, _, span in spans})))
        cells = [F.col("timestamp"), *(F.col(f"`{column.name}`") for column in columns)]
    else:
        spec = placed_spec(topic, table, table.placed)
        found = source_columns(spec, frame.schema)
        partition, offset = place_columns(spec, found)
        cells = [
            time_ms(spec, spec.timestamp, found).alias("timestamp"),
            *(landed(spec, one, found) for one in columns),
        ]
        known = LogColumns((), tuple(columns), scalar_key=False, scalar_value=False, source_schema=table.placed.schema)
        readers = json_readers(spec, known)
    first, last = (pick(span[place] + span.base for _, _, span in spans) for pick, place in ((min, 1), (max, 2)))
    # What Delta can prune by; each row is looked at again by the worker that packs it.
    frame = frame.where(offset.between(first, last) & partition.isin(sorted({task for _, task, _ in spans})))
    schema = arrow_schema((Column("offset", "long"), Column("timestamp", "long"), *columns))
    pack = partial(_pack, _Packing(number, tuple(spans), schema, readers, table.placed is None))
    rows = frame.select(partition.alias(_HERE), made.cast("long").alias(_FROM), offset.alias("offset"), *cells)
    return rows.mapInArrow(pack, f"{_PLACES}, {DATA} binary")


def _pack(packing: _Packing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make packs of the rows that are asked for: one for some batches and each span; give their pieces."""
    kinds = pa.schema([*(pa.field(name, pa.int64()) for name in PLACES), pa.field(DATA, pa.binary())])
    context = TaskContext.get()
    numbers = count((context.partitionId() if context else 0) << 32)
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
            first = int(chosen[0])
            if _counts_up(chosen) and _counts_up(own[chosen]):
                some = rows.slice(first, len(chosen))  # as a file has them: nothing is copied
            else:
                chosen = chosen[np.argsort(own[chosen], kind="stable")]
                some = rows.take(pa.array(chosen))
            some = some.set_column(0, "offset", pa.array(own[chosen]))
            pieces = _cut(_as_file(some))
            places = (group, task, packing.topic, int(own[chosen[0]]), int(own[chosen[-1]]), next(numbers))
            cells = [pa.repeat(pa.scalar(value, pa.int64()), len(pieces)) for value in places]
            cells.append(pa.array(range(len(pieces)), pa.int64()))
            yield pa.RecordBatch.from_arrays([*cells, pieces], schema=kinds)


def _cut(data: pa.Buffer) -> pa.Array:
    """Return the pieces of a file, in their order."""
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


def _cell(column: pa.Array, field: pa.Field, packing: _Packing) -> pa.Array:
    if field.name in packing.readers:
        return canonical_json(column, packing.readers[field.name])
    return column if column.type == field.type else column.cast(field.type)


def _as_file(rows: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return sink.getvalue()


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Yield ``(task, topic, first offset, last offset, pack, data)``; of a task that is only named the data are None."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in PLACES[1:-1]]
        data = batch.column(DATA)
        for row, places in enumerate(zip(*columns, strict=True)):
            yield *places, data[row].as_buffer()


def _values(spark: SparkSession, rows: Sequence[tuple[int, ...]], names: Sequence[str]) -> DataFrame:
    """Return a few rows of longs. As a text: `createDataFrame` would start Python workers for it."""
    listed = ", ".join("(" + ", ".join(f"{number}L" for number in row) + ")" for row in rows)
    return spark.sql(f"SELECT * FROM VALUES {listed} AS t({', '.join(names)})")  # noqa: S608 - numbers of our own
