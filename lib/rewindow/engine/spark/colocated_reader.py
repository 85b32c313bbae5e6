"""The shuffle reader where a log's own layout does the exchange: each of Spark's tasks reads the partitions of its group.

A log that `land` wrote is partitioned by partition, so Spark finds a group's files by itself, and rows reach a worker once.
It makes packs of them as for an exchange, but lays them down at once; sorting is putting these files in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import LogFile, SubTopologyWork, TaskWork
from rewindow.engine.spark.shuffle_reader import FROM, HERE, run_on, topic_rows, values
from rewindow.engine.worker.log_reader import SPOOLED
from rewindow.engine.worker.packing import Packing, packed
from rewindow.streams.serde.binding import LogShapes

MOST_GROUPS = 8
"""Each group is a scan of its own to plan; beyond this an exchange costs less."""

_MARK = -1
"""The generation of the row that only says that there is a group."""


def colocated_frame(
    spark: SparkSession, work: SubTopologyWork, groups: Sequence[Sequence[TaskWork]], logs: LogShapes
) -> tuple[DataFrame, Packing] | None:
    """Return the rows of a stage's only log, a group in each of Spark's tasks, and how they are packed.

    None where an exchange has to place them. Nothing is read here.
    """
    if (
        len(groups) > MOST_GROUPS
        or [table for table in work.tables.values() if table.source_offsets]
        or len(work.tables) > 1
    ):
        return None
    ((topic, table),) = work.tables.items()
    parts, spans = [], []
    packing: Packing | None = None
    for number, group in enumerate(groups):
        here = [(number, task.partition, span) for task in group for span in task.logs[topic].spans]
        part = values(spark, [(number, _MARK)], (HERE, FROM))
        if here:
            found, packing = topic_rows(spark, 0, topic, table, here, logs)
            part = found.unionByName(part, allowMissingColumns=True)
            spans += here
        parts.append(part.coalesce(1))
    if packing is None:
        return None
    rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    return rows, packing._replace(spans=tuple(spans))


def run_colocated(
    work: SubTopologyWork, groups: Sequence[Sequence[TaskWork]], packing: Packing, batches: Iterable[pa.RecordBatch]
) -> Iterator[TaskReport]:
    """Lay down what comes in, then run the tasks of the groups that it is for, one after the other."""
    (topic,) = work.tables
    marks: list[int] = []
    made: dict[int, list[LogFile]] = {}
    with TemporaryDirectory(prefix="rewindow-") as folder:
        for number, pack in enumerate(packed(packing, _unmarked(batches, marks))):
            place = f"{folder}/{number}{SPOOLED}"
            with pa.OSFile(place, "wb") as out, pa.ipc.new_file(out, pack.rows.schema) as writer:
                writer.write_batch(pack.rows)
            made.setdefault(pack.task, []).append(LogFile(place, pack.first, pack.last))
        for group in marks:
            for task in groups[group]:
                yield run_on(work, task, {topic: made.get(task.partition, [])})


def _unmarked(batches: Iterable[pa.RecordBatch], marks: list[int]) -> Iterator[pa.RecordBatch]:
    """Pass on rows; note the groups that marks name."""
    for batch in batches:
        is_mark = np.asarray(batch.column(FROM)) == _MARK
        if is_mark.any():
            marks += np.asarray(batch.column(HERE))[is_mark].tolist()
            rows = batch.filter(pa.array(~is_mark))
            if rows.num_rows:
                yield rows
        else:
            yield batch
