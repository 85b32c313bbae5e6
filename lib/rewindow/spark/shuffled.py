"""The shuffled source: where a task cannot open the files of its partition, Spark reads the log: one exchange, one sort.

The rows come to the workers task by task, topic by topic, in offset order. What a task gets is laid down in Arrow files
of the worker's own, and from there on everything is as with the aligned source: the same lanes, the same merge of several
topics, and a partition may be larger than memory. An offset that is missing or doubled is an error, never a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.core.binding import LogShapes
from rewindow.core.land import LogColumns, LogSpec, PlacedLog, SourceSpec
from rewindow.core.schema import Column
from rewindow.core.staging import TaskReport
from rewindow.core.work import LogFile, LogTable, StageWork, TaskWork
from rewindow.errors import StorageError
from rewindow.spark.columns import landed, place_columns, source_columns, time_ms
from rewindow.spark.execute import run_task
from rewindow.spark.nested import canonical_json, json_readers
from rewindow.spark.rows import arrow_schema

GROUP, TASK, TOPIC, OFFSET, TIMESTAMP = "_group", "_task", "_topic", "_offset", "_timestamp"
_SPAN = ("_group", "_task", "_generation", "_first", "_last", "_base")
_ZONE = "spark.sql.session.timeZone"
_HERE, _FROM = "_partition", "_stored"
_NO_TOPIC = -1
"""The topic of a row that only says that there is a task."""


def shuffled_frame(
    spark: SparkSession, work: StageWork, groups: Sequence[Sequence[TaskWork]], logs: LogShapes
) -> DataFrame:
    """Return the rows of a stage's tasks as the workers want them. Nothing is read here."""
    group_of = {task.partition: number for number, group in enumerate(groups) for task in group}
    marks = [(group, task, _NO_TOPIC, -1) for task, group in group_of.items()]
    parts = [_values(spark, marks, (GROUP, TASK, TOPIC, OFFSET))]
    for number, (topic, table) in enumerate(work.tables.items()):
        spans = [
            (group_of[task.partition], task.partition, span.generation, span.first, span.last, span.base)
            for task in work.tasks
            for span in task.logs[topic].spans
        ]
        if spans:
            parts.append(_topic_rows(spark, topic, table, spans, logs).withColumn(TOPIC, F.lit(number).cast("long")))
    rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    placed = rows.repartitionById(len(groups), F.col(GROUP).cast("int"))
    return placed.sortWithinPartitions(TASK, TOPIC, OFFSET)


def run_shuffled(
    work: StageWork, tasks: Mapping[int, TaskWork], batches: Iterable[pa.RecordBatch]
) -> Iterator[TaskReport]:
    """Run the tasks whose rows come in, one after the other."""
    logs = work.load_logs()
    spool: _Spool | None = None
    with TemporaryDirectory(prefix="rewindow-") as folder:
        for partition, number, rows in _stretches(batches):
            if spool is None or spool.task.partition != partition:
                if spool is not None:
                    yield run_task(work, spool.close())
                    spool.remove()
                spool = _Spool(work, tasks[partition], logs, Path(folder))
            if number != _NO_TOPIC:
                spool.add(number, rows)
        if spool is not None:
            yield run_task(work, spool.close())


@contextmanager
def in_utc(spark: SparkSession) -> Iterator[None]:
    """Read times without a zone as UTC, whatever the session's zone: the feed's own is applied by expressions."""
    before = spark.conf.get(_ZONE)
    spark.conf.set(_ZONE, "UTC")
    try:
        yield
    finally:
        spark.conf.set(_ZONE, str(before))


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


def _topic_rows(
    spark: SparkSession, topic: str, table: LogTable, spans: Sequence[tuple[int, ...]], logs: LogShapes
) -> DataFrame:
    """Return the rows of one topic that the tasks ask for, with their tasks."""
    frame = spark.read.format("delta").load(table.location)
    columns = [column for shape in logs[topic] for column in shape.columns]
    generation: Expression | None = None
    if table.placed is None:
        generation, partition, offset = (F.col(name).cast("long") for name in ("generation", "partition", "offset"))
        cells = [F.col("timestamp").alias(TIMESTAMP), *(F.col(f"`{column.name}`") for column in columns)]
    else:
        spec = placed_spec(topic, table, table.placed)
        found = source_columns(spec, frame.schema)
        partition, offset = place_columns(spec, found)
        cells = [time_ms(spec, spec.timestamp, found).alias(TIMESTAMP), *(landed(spec, one, found) for one in columns)]
    cells = [*cells[:1], *(cell.alias(_cell_name(topic, n)) for n, cell in enumerate(cells[1:]))]
    first, last = (pick(span[3 + n] + span[5] for span in spans) for n, pick in enumerate((min, max)))
    # What Delta can prune by stands before the join.
    frame = frame.where(offset.between(first, last) & partition.isin(sorted({span[1] for span in spans})))
    if generation is not None:
        frame = frame.where(generation.isin(sorted({span[2] for span in spans})))
    made = generation if generation is not None else F.lit(0).cast("long")
    rows = frame.select(partition.alias(_HERE), made.alias(_FROM), offset.alias(OFFSET), *cells)
    wanted = F.broadcast(_values(spark, spans, _SPAN))
    is_wanted = (F.col(_HERE) == F.col(TASK)) & F.col(OFFSET).between(
        F.col("_first") + F.col("_base"), F.col("_last") + F.col("_base")
    )
    if generation is not None:
        is_wanted &= F.col(_FROM) == F.col("_generation")
    ours = rows.join(wanted, is_wanted).withColumn(OFFSET, F.col(OFFSET) - F.col("_base"))
    names = [_cell_name(topic, n) for n in range(len(columns))]
    return ours.select(GROUP, TASK, OFFSET, TIMESTAMP, *names)


def _cell_name(topic: str, number: int) -> str:
    return f"{topic}/{number}".replace(".", "/")


def _values(spark: SparkSession, rows: Sequence[tuple[int, ...]], names: Sequence[str]) -> DataFrame:
    """Return a few rows of longs. As a text: `createDataFrame` would start Python workers for it."""
    listed = ", ".join("(" + ", ".join(f"{number}L" for number in row) + ")" for row in rows)
    return spark.sql(f"SELECT * FROM VALUES {listed} AS t({', '.join(names)})")  # noqa: S608 - numbers of our own


def _stretches(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Yield ``(partition, number of the topic, rows)``, rows of one topic each."""
    for batch in batches:
        partitions, topics = (np.asarray(batch.column(name)) for name in (TASK, TOPIC))
        changes = np.flatnonzero((np.diff(partitions) != 0) | (np.diff(topics) != 0)) + 1
        for start, end in pairwise([0, *changes.tolist(), batch.num_rows]):
            if end > start:
                yield int(partitions[start]), int(topics[start]), batch.slice(start, end - start)


class _Spool:
    """The rows of one task on a worker's disk: an Arrow file a topic."""

    def __init__(self, work: StageWork, task: TaskWork, logs: LogShapes, folder: Path) -> None:
        self.task = task
        self._logs, self._folder = logs, folder
        self._topics = list(work.tables.items())
        self._files: dict[str, LogFile] = {}
        self._open: _SpoolFile | None = None

    def add(self, number: int, rows: pa.RecordBatch) -> None:
        """Add rows of a topic. Raises `StorageError` (74) if an offset is missing or doubled."""
        topic, table = self._topics[number]
        if self._open is None or self._open.topic != topic:
            self._finish()
            columns = [column for shape in self._logs[topic] for column in shape.columns]
            bounds = self.task.logs[topic].bounds
            self._open = _SpoolFile(topic, table, columns, self._folder / f"{number}.arrow", _span(bounds))
        self._open.add(rows, self.task.partition)

    def close(self) -> TaskWork:
        """Return the task's work with these files. Raises `StorageError` (74) if a last offset is missing."""
        self._finish()
        slices = dict(self.task.logs)
        for topic, table in self._topics:
            bounds = slices[topic].bounds
            start, end = _span(bounds)
            if end > start and topic not in self._files:
                raise _not_there(topic, table, self.task.partition, start)
            files = (self._files[topic],) if topic in self._files else ()
            slices[topic] = replace(slices[topic], files=files)
        return replace(self.task, logs=slices)

    def remove(self) -> None:
        """Remove the files."""
        for file in self._files.values():
            Path(file.path).unlink()

    def _finish(self) -> None:
        if self._open is not None:
            self._files[self._open.topic] = self._open.close(self.task.partition)
            self._open = None


class _SpoolFile:
    """One topic of a task."""

    def __init__(
        self, topic: str, table: LogTable, columns: Sequence[Column], place: Path, span: tuple[int, int]
    ) -> None:
        self.topic = topic
        self._table, self._place = table, place
        self._start, self._end = span
        self._expected = self._start
        self._names = [OFFSET, TIMESTAMP, *(_cell_name(topic, n) for n in range(len(columns)))]
        self._schema = arrow_schema((Column("offset", "long"), Column("timestamp", "long"), *columns))
        self._readers = {}
        if placed := table.placed:
            known = LogColumns((), tuple(columns), scalar_key=False, scalar_value=False, source_schema=placed.schema)
            self._readers = json_readers(placed_spec(topic, table, placed), known)
        self._writer = pa.ipc.new_file(str(place), self._schema)

    def add(self, rows: pa.RecordBatch, partition: int) -> None:
        offsets = np.asarray(rows.column(OFFSET))
        expected = np.arange(self._expected, self._expected + len(offsets))
        if not np.array_equal(offsets, expected):
            wrong = int(np.flatnonzero(offsets != expected)[0])
            is_twice = offsets[wrong] < expected[wrong]
            raise _not_there(self.topic, self._table, partition, int(offsets[wrong] if is_twice else expected[wrong]))
        self._expected += len(offsets)
        arrays = [self._cell(rows.column(name), field) for name, field in zip(self._names, self._schema, strict=True)]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def close(self, partition: int) -> LogFile:
        self._writer.close()
        if self._expected != self._end:
            raise _not_there(self.topic, self._table, partition, self._expected)
        return LogFile(str(self._place), self._start, self._end - 1)

    def _cell(self, column: pa.Array, field: pa.Field) -> pa.Array:
        if field.name in self._readers:
            return canonical_json(column, self._readers[field.name])
        return column if column.type == field.type else column.cast(field.type)


def _span(bounds: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the first offset and the one behind the last of some epochs."""
    filled = [bound for bound in bounds if bound[1] > bound[0]]
    return (filled[0][0], filled[-1][1]) if filled else (0, 0)


def _not_there(topic: str, table: LogTable, partition: int, offset: int) -> StorageError:
    place = (
        f"{table.placed.table} ({table.placed.partition}, {table.placed.offset})" if table.placed else table.location
    )
    base = "from the first one landed " if table.placed else ""
    message = (
        f"log {topic!r}: offset {offset} (counted {base}in partition {partition}) is not in {place} exactly once. "
        "Somebody changed the table: restore it (Delta's own history), or land a new generation"
    )
    return StorageError(message)
