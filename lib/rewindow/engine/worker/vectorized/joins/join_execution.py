"""Run one task of one sub-topology with a join, from its input files to its staged files.

restore -> for each epoch: take merged batches in the task's order, end the epoch -> stage outputs and changes -> report.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
import pyarrow as pa

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.contracts.tasks import SubTopologyWork, TaskWork
from rewindow.dsl.operators.stream_join import StreamJoin
from rewindow.engine.worker.arrow_rows import arrow_schema, encode, encode_values
from rewindow.engine.worker.staging import staging_target
from rewindow.engine.worker.vectorized.arrays import Array, UnfitError
from rewindow.engine.worker.vectorized.batches import merged
from rewindow.engine.worker.vectorized.joins.join_task import Joined, JoinTask
from rewindow.engine.worker.vectorized.joins.stream_task import StreamJoinTask
from rewindow.engine.worker.vectorized.joins.table_task import TableJoinTask, TablesJoinTask
from rewindow.engine.worker.vectorized.plans import JoinPlan
from rewindow.engine.worker.vectorized.sent_results import ColumnResults, Downstream
from rewindow.engine.worker.vectorized.topic_reader import epochs_of
from rewindow.streams.metrics import ENFORCED_PROCESSING
from rewindow.streams.record import Record


def run_join(work: SubTopologyWork, task_work: TaskWork, plan: JoinPlan) -> TaskReport | None:
    """Run one task. If record execution must run it instead (`UnfitError`), return None and leave no files."""
    task = _kind(plan)(plan, work.code.semantics, task_work.state, work.code.settings.limits)
    results = _join_results(task, work, task_work)
    targets = {name: staging_target(work, task_work, f"changelog/{name}") for name in plan.stores}
    if times := task_work.enforced:
        task.clocks.metrics.measure("task", "", ENFORCED_PROCESSING).record_many(times, times, 1, 1)
    starts = dict(task.clocks.offsets)
    try:
        with results:
            task.restore(work, task_work)
            _replay(work, task_work, task, results)
            changed = task.stage(targets, partition=task_work.partition, run=work.identity.run)
            sent = results.close()
    except UnfitError:
        return None
    state = task.clocks.state({plan.sink.topic: results.emitted}, task.store_clocks, {})
    return TaskReport(
        sub_topology=work.sub_topology,
        partition=task_work.partition,
        files=(*sent, *changed),
        state=state.as_json(),
        metrics=tuple(task.clocks.metrics.as_rows()),
        consumed={topic: end - starts[topic] for topic, end in task.clocks.offsets.items()},
        is_vectorized=True,
    )


def _kind(plan: JoinPlan) -> type[JoinTask]:
    if plan.supplier is None:
        return TablesJoinTask
    return StreamJoinTask if isinstance(plan.supplier, StreamJoin) else TableJoinTask


def _replay(work: SubTopologyWork, task_work: TaskWork, task: JoinTask, results: _JoinResults) -> None:
    topics = [epochs_of(join_input, task_work) for join_input in task.plan.inputs]
    for epoch in work.epochs:
        for batch in merged([read_epoch(epoch.number) for read_epoch in topics]):
            for joined in task.take(batch):
                results.send(epoch.number, joined)
        for joined in task.end_epoch(epoch):
            results.send(epoch.number, joined)


class _JoinResults(ABC):
    """Receives the results of a join. As a context manager, it deletes the files that it wrote if the block raises."""

    def __init__(self, task: JoinTask, most: int) -> None:
        """``most``: the largest number of results that one record may have."""
        self._task, self._most = task, most

    def send(self, epoch: int, joined: Joined) -> None:
        """Make and send the results of an epoch.

        Raises `UnfitError` if a function fails, a result does not fit the sink, or a record has too many results. Record
        execution then raises an error that names the record.
        """
        if _largest_run(joined.positions) > self._most:
            raise UnfitError
        try:
            self._send(epoch, joined)
        except Exception as error:
            # User code may raise anything.
            raise UnfitError from error

    @property
    @abstractmethod
    def emitted(self) -> int:
        """The number that the sink's next record will have."""

    @abstractmethod
    def close(self) -> list[StagedFile]:
        """Finish the files and return them."""

    @abstractmethod
    def abort(self) -> None:
        """Delete the files."""

    @abstractmethod
    def _send(self, epoch: int, joined: Joined) -> None:
        """Send results. May raise anything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abort()


class _JoinedColumns(_JoinResults):
    """Writes the results of a join to a table."""

    def __init__(self, task: JoinTask, work: SubTopologyWork, task_work: TaskWork) -> None:
        """Prepare to write. The file is created with the first result."""
        super().__init__(task, work.code.settings.limits.outputs_per_record)
        self._results = ColumnResults(task.plan, work, task_work)

    @property
    def emitted(self) -> int:
        """See `_JoinResults`."""
        return self._results.emitted

    def close(self) -> list[StagedFile]:
        """See `_JoinResults`."""
        return self._results.close()

    def abort(self) -> None:
        """See `_JoinResults`."""
        self._results.abort()

    def _send(self, epoch: int, joined: Joined) -> None:
        shape = self._task.plan.sink_shapes[1]
        columns: Sequence[pa.Array]
        # A result may be a list that user code changes later, so it is encoded immediately.
        if shape.has_json:
            rows = [shape.encode(value) for value in joined.values]
            columns = encode(rows, arrow_schema(shape.columns), "").columns
        else:
            columns = encode_values(shape, list(joined.values), "")
        self._results.send(epoch, [*self._task.keys.columns(joined.keys), *columns, pa.array(joined.times)])


class _JoinedRecords(_JoinResults):
    """Sends the results of a join through the nodes of a suffix."""

    def __init__(self, task: JoinTask, downstream: Downstream, most: int) -> None:
        """See `_JoinResults`."""
        super().__init__(task, most)
        self._downstream = downstream

    @property
    def emitted(self) -> int:
        """See `_JoinResults`."""
        return self._downstream.emitted

    def close(self) -> list[StagedFile]:
        """See `_JoinResults`. Raises `UnfitError` for a record that does not fit the sink."""
        return self._downstream.close()

    def abort(self) -> None:
        """See `_JoinResults`."""
        self._downstream.abort()

    def _send(self, epoch: int, joined: Joined) -> None:
        context, take = self._downstream.record_context, self._downstream.process
        self._downstream.begin(epoch)
        keys = self._task.key_values(joined.keys)
        arrays = (joined.times.tolist(), joined.orders.tolist(), joined.positions.tolist())
        for key, value, timestamp, order_ms, position in zip(keys, joined.values, *arrays, strict=True):
            context.timestamp, context.order_ms = timestamp, order_ms
            # The position is used instead of the offset, because the limit of outputs per record has to know the current
            # record.
            context.topic, context.offset = (None if position < 0 else ""), position
            take(Record(key, value, timestamp))


def _join_results(task: JoinTask, work: SubTopologyWork, task_work: TaskWork) -> _JoinResults:
    """Return the receiver of a task's results."""
    plan = task.plan
    if plan.suffix is None:
        return _JoinedColumns(task, work, task_work)
    downstream = Downstream(plan.suffix, task.clocks.metrics, work, task_work)
    return _JoinedRecords(task, downstream, work.code.settings.limits.outputs_per_record)


def _largest_run(positions: Array) -> int:
    """Return the largest number of results that one record has. Results at the end of an epoch (-1) belong to no record."""
    own = positions[positions >= 0]
    return int(np.bincount(own).max()) if len(own) else 0
