"""Read a topic of a task column by column, epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from rewindow.contracts.tasks import LogSlice, TaskWork
from rewindow.engine.worker.log_reader import ordered_batches
from rewindow.engine.worker.vectorized.batches import Batch, InternalBatches, name_at
from rewindow.engine.worker.vectorized.plans import FinalResultsPlan, JoinInput

ReadEpoch = Callable[[int], Iterator[Batch]]
"""A function that yields the batches of an epoch, given its number. The epochs must be requested in ascending order."""


Topic = FinalResultsPlan | JoinInput
"""The plan of a topic: the topic's name, its shapes, and the indexes of the value columns to read."""


def epochs_of(topic: Topic, task_work: TaskWork) -> ReadEpoch:
    """Return the reader of a topic's epochs."""
    if topic.internal:
        files = task_work.internal.get(topic.topic, ())
        return InternalBatches(topic.internal, files, topic.read_indexes).epoch
    return _LogBatches(topic, task_work.logs[topic.topic]).epoch


class _LogBatches:
    """Reads one log for one task, epoch by epoch."""

    def __init__(self, topic: Topic, log: LogSlice) -> None:
        self._bounds = iter(log.bounds)
        spans = [bound for bound in log.bounds if bound[1] > bound[0]]
        start, end = (spans[0][0], spans[-1][1]) if spans else (0, 0)
        key = topic.key
        operands = topic.read_indexes
        self._width = 2 + len(key.columns)
        self._names = [name_at(topic.log_value, operand) for operand in operands]
        columns = ["offset", "timestamp", *key.names, *(topic.log_value.names[operand] for operand in operands)]
        texts = [column.name for column in key.columns if column.type == "string"]
        self._batches = ordered_batches(
            topic.topic, log.files, start, end, columns, dictionary=texts, values=topic.log_value.columns
        )
        self._rest: pa.RecordBatch | None = None

    def epoch(self, _number: int) -> Iterator[Batch]:
        """Yield the batches of the next epoch."""
        start, end = next(self._bounds)
        missing = end - start
        while missing:
            batch = self._rest if self._rest is not None else next(self._batches)
            wanted = batch.slice(0, missing)
            self._rest = batch.slice(wanted.num_rows) if wanted.num_rows < batch.num_rows else None
            missing -= wanted.num_rows
            columns = wanted.columns
            values = dict(zip(self._names, columns[self._width :], strict=True))
            yield Batch(np.asarray(columns[1]), columns[2 : self._width], values)
