"""The colocated reader: a shuffle reader without a shuffle, because each Spark task reads the partitions of its own group.

The Delta table of a landed log is partitioned by partition, so Spark can prune to a group's files, and rows reach a worker
once. The worker packs them as the shuffle reader does, but writes the packs to local files directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import LogFile, SubTopologyWork, TaskWork
from rewindow.engine.spark.shuffle_reader import POSITION, run_with_files, topic_rows, values
from rewindow.engine.worker.log_reader import SPOOLED
from rewindow.engine.worker.packing import Packing, packed, positions_of
from rewindow.streams.serde.binding import LogShapes

MOST_GROUPS = 8
"""Each group needs its own scan, so with more groups a shuffle is cheaper."""


def _mark(group: int) -> int:
    """Return the position of a marker row, which makes sure that its group runs. It is its own inverse."""
    return -1 - group


def colocated_frame(
    spark: SparkSession, work: SubTopologyWork, groups: Sequence[Sequence[TaskWork]], logs: LogShapes
) -> tuple[DataFrame, Packing] | None:
    """Return the rows of a sub-topology's only log, with one Spark task per group, and their packing.

    Returns None if a shuffle is needed. Reads nothing yet.
    """
    if (
        len(groups) > MOST_GROUPS
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
        part = values(spark, [(_mark(number),)], (POSITION,))
        if here:
            found, packing = topic_rows(spark, 0, topic, table, here, logs, positions)
            part = found.unionByName(part, allowMissingColumns=True)
        parts.append(part.coalesce(1))
    rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    return rows, packing._replace(spans=every)


def run_colocated(
    work: SubTopologyWork, groups: Sequence[Sequence[TaskWork]], packing: Packing, batches: Iterable[pa.RecordBatch]
) -> Iterator[TaskReport]:
    """Write the incoming rows to local files, then run the tasks of their groups, one after the other."""
    (topic,) = work.tables
    marks: list[int] = []
    made: dict[int, list[LogFile]] = {}
    with TemporaryDirectory(prefix="rewindow-") as folder:
        for number, pack in enumerate(packed(packing, _unmarked(batches, marks))):
            path = f"{folder}/{number}{SPOOLED}"
            with pa.OSFile(path, "wb") as out, pa.ipc.new_file(out, pack.rows.schema) as writer:
                writer.write_batch(pack.rows)
            made.setdefault(pack.task, []).append(LogFile(path, pack.first, pack.last))
        for group in marks:
            for task in groups[group]:
                yield run_with_files(work, task, {topic: made.get(task.partition, [])})


def _unmarked(batches: Iterable[pa.RecordBatch], marks: list[int]) -> Iterator[pa.RecordBatch]:
    """Yield the rows; add the groups of marker rows to ``marks``."""
    for batch in batches:
        positions = np.asarray(batch.column(POSITION))
        is_mark = positions < 0
        if is_mark.any():
            marks += map(_mark, positions[is_mark].tolist())
            rows = batch.filter(pa.array(~is_mark))
            if rows.num_rows:
                yield rows
        else:
            yield batch
