"""Send final results: as columns to a table, or one by one through the nodes that follow them (the suffix of the plan)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import SubTopologyWork, TaskWork
from rewindow.engine.worker.arrow_rows import decode
from rewindow.engine.worker.record_writers import OutputWriter, writer_of
from rewindow.engine.worker.staging import staging_target
from rewindow.engine.worker.vectorized.arrays import UnfitError
from rewindow.engine.worker.vectorized.plans import FinalResultsPlan, JoinPlan, Suffix
from rewindow.engine.worker.vectorized.vectorized_task import VectorizedTask
from rewindow.errors import DataError
from rewindow.streams.assembly import assemble
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import Metrics
from rewindow.streams.record import Record
from rewindow.streams.serde.schema import OUTPUT_META, Shape
from rewindow.streams.sink import open_sinks
from rewindow.streams.task_context import TaskContext


class SentResults(ABC):
    """Receives the final results of a task. As a context manager, it deletes the files that it wrote if the block raises."""

    @property
    @abstractmethod
    def emitted(self) -> int:
        """The number that the sink's next record gets."""

    @abstractmethod
    def send(self, epoch: int, columns: Sequence[pa.Array]) -> None:
        """Send an epoch's results: the columns of keys, window bounds, values and timestamps."""

    @abstractmethod
    def close(self) -> list[StagedFile]:
        """Finish the files and return them."""

    @abstractmethod
    def abort(self) -> None:
        """Delete the files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abort()


class ColumnResults(SentResults):
    """Writes results to a table unchanged."""

    def __init__(self, plan: FinalResultsPlan | JoinPlan, work: SubTopologyWork, task_work: TaskWork) -> None:
        key, value = plan.sink_shapes
        columns = (*key.columns, *value.columns, *OUTPUT_META)
        target = staging_target(work, task_work, f"output/{plan.sink.topic}", ", ".join(plan.sink.parents))
        self._file = target.file(columns, [column.name for column in columns])
        self._partition, self._run = task_work.partition, work.identity.run
        self._emitted = task_work.state.emitted.get(plan.sink.topic, 0) if task_work.state else 0

    @property
    def emitted(self) -> int:
        """See `SentResults`."""
        return self._emitted

    def send(self, epoch: int, columns: Sequence[pa.Array]) -> None:
        """See `SentResults`."""
        rows, start = len(columns[0]), self._emitted
        numbers = pa.array(np.arange(start, start + rows))
        meta = [pa.repeat(epoch, rows), pa.repeat(self._partition, rows), numbers, pa.repeat(self._run, rows)]
        self._file.write(pa.RecordBatch.from_arrays([*columns, *meta], schema=self._file.schema))
        self._emitted += rows

    def close(self) -> list[StagedFile]:
        """See `SentResults`."""
        staged = self._file.close()
        return [staged] if staged else []

    def abort(self) -> None:
        """See `SentResults`."""
        self._file.abort()


def sent_results(task: VectorizedTask, work: SubTopologyWork, task_work: TaskWork) -> SentResults:
    """Return the receiver of a task's results."""
    plan = task.plan
    if plan.suffix and plan.result_shapes:
        downstream = Downstream(plan.suffix, task.clocks.metrics, work, task_work)
        return _SuffixResults(downstream, plan.result_shapes, task)
    return ColumnResults(plan, work, task_work)


class Downstream:
    """Sends records through the nodes of a suffix. The caller sets ``record_context`` to the event before it sends a record."""

    def __init__(self, suffix: Suffix, metrics: Metrics, work: SubTopologyWork, task_work: TaskWork) -> None:
        """Connect the processors and the sink."""
        (sink,) = suffix.part.sinks
        writer = self._writer = writer_of(work, task_work, sink, suffix.sink_shapes)
        state = task_work.state or TaskState()
        context = TaskContext(task_work.partition, state, {}, job=work.identity.job)
        context.metrics = metrics
        take = writer if isinstance(writer, OutputWriter) else writer.take
        sinks = open_sinks(suffix.part, lambda _: take, context, state.emitted, work.code.settings.limits)
        assembly = assemble(suffix.part, context, sinks, {})
        for name, processor in assembly.processors.items():
            processor.init(assembly.contexts[name])
        (self.process,), (self._sink,) = assembly.entries, sinks.values()
        self.record_context = context.record_context

    @property
    def emitted(self) -> int:
        """The number that the sink's next record gets."""
        return self._sink.number

    def begin(self, epoch: int) -> None:
        """Set the epoch of the next records."""
        self._writer.epoch = epoch

    def close(self) -> list[StagedFile]:
        """Finish the files and return them. Raises `UnfitError` for a record that does not fit the sink."""
        try:
            return self._writer.close()
        except DataError as error:
            raise UnfitError from error

    def abort(self) -> None:
        """Delete the files."""
        self._writer.abort()


class _SuffixResults(SentResults):
    """Decodes results and sends them through the nodes of a suffix to its sink."""

    def __init__(self, downstream: Downstream, shapes: tuple[Shape, Shape], task: VectorizedTask) -> None:
        """``shapes``: the shapes of the results' keys and values."""
        self._downstream, self._task = downstream, task
        self._key, self._value = shapes

    @property
    def emitted(self) -> int:
        """See `SentResults`."""
        return self._downstream.emitted

    def send(self, epoch: int, columns: Sequence[pa.Array]) -> None:
        """See `SentResults`.

        Raises `UnfitError` if a function fails or a record does not fit the sink. Record execution then raises an error that
        names the record.
        """
        task, context, take = self._task, self._downstream.record_context, self._downstream.process
        width = len(self._key.columns)
        rows = len(columns[-1])
        keys, values = decode(self._key, columns[:width], rows), decode(self._value, columns[width:-1], rows)
        closing = task.closing_order.of(task.due_ms(np.asarray(columns[width - 1])))
        self._downstream.begin(epoch)
        try:
            for key, value, timestamp, order_ms in zip(
                keys, values, columns[-1].to_pylist(), closing.tolist(), strict=True
            ):
                context.timestamp, context.order_ms = timestamp, order_ms
                take(Record(key, value, timestamp))
        except Exception as error:
            # User code may raise any exception.
            raise UnfitError from error

    def close(self) -> list[StagedFile]:
        """See `SentResults`. Raises `UnfitError` for a record that does not fit the sink."""
        return self._downstream.close()

    def abort(self) -> None:
        """See `SentResults`."""
        self._downstream.abort()
