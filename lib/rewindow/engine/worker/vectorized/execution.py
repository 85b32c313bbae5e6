"""Run one task of one sub-topology in vectorized execution, from files to files.

restore -> for each epoch: batches in offset order, then its end -> stage outputs and changes -> report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import SubTopologyWork, TaskWork
from rewindow.engine.worker.log_reader import ordered_batches
from rewindow.engine.worker.staging import staging_target
from rewindow.engine.worker.vectorized import changelog, session_changelog
from rewindow.engine.worker.vectorized.batch import Batch, name_at
from rewindow.engine.worker.vectorized.errors import UnfitError
from rewindow.engine.worker.vectorized.final_results import WindowTask
from rewindow.engine.worker.vectorized.internal_source import InternalBatches
from rewindow.engine.worker.vectorized.plan import FinalResultsPlan
from rewindow.engine.worker.vectorized.sent_results import SentResults, sent_results
from rewindow.engine.worker.vectorized.session_results import SessionTask
from rewindow.engine.worker.vectorized.task import VectorizedTask
from rewindow.streams.metrics import ENFORCED_PROCESSING
from rewindow.streams.record import UNKNOWN
from rewindow.streams.windows.session_sliding import SessionWindows


def run_vectorized(work: SubTopologyWork, task_work: TaskWork, plan: FinalResultsPlan) -> TaskReport | None:
    """Run one task. Return None, without sent files, if its values exceed the kernels (`UnfitError`)."""
    task: VectorizedTask
    restore: Any
    stage: Any
    if isinstance(plan.windows, SessionWindows):
        task = SessionTask(plan, plan.windows, work.code.semantics, task_work.state)
        restore, stage = session_changelog.restore, session_changelog.stage
    else:
        task = WindowTask(plan, plan.windows, work.code.semantics, task_work.state)
        restore, stage = changelog.restore, changelog.stage
    results = sent_results(task, work, task_work)
    buffers = [plan.suppress.store] if plan.suppress else []
    stores = [plan.store.name, *buffers]
    targets = {name: staging_target(work, task_work, f"changelog/{name}") for name in stores}
    if times := task_work.enforced:
        task.clocks.metrics.measure("task", "", ENFORCED_PROCESSING).record_many(times, times, 1, 1)
    first = task.clocks.offset
    try:
        with results:
            restore(task, task_work.stores)
            _replay(work, task_work, task, results)
            changed = stage(task, targets, partition=task_work.partition, run=work.identity.run)
            sent = results.close()
    except UnfitError:
        return None
    clocks = {plan.store.name: task.newest_ms, **dict.fromkeys(buffers, UNKNOWN)}
    held = dict.fromkeys(buffers, task.held)
    state = task.clocks.state({plan.sink.topic: results.emitted}, clocks, held)
    return TaskReport(
        sub_topology=work.sub_topology,
        partition=task_work.partition,
        files=(*sent, *changed),
        state=state.as_json(),
        metrics=tuple(task.clocks.metrics.as_rows()),
        consumed={plan.topic: task.clocks.offset - first},
        is_vectorized=True,
    )


def _replay(work: SubTopologyWork, task_work: TaskWork, task: VectorizedTask, results: SentResults) -> None:
    plan = task.plan
    batches: _LogBatches | InternalBatches = (
        InternalBatches(plan.internal, task_work.internal.get(plan.topic, ()), plan.read_indexes)
        if plan.internal
        else _LogBatches(plan, task_work)
    )
    for epoch in work.epochs:
        for batch in batches.epoch(epoch.number):
            task.take(batch)
        if sent := task.end_epoch(epoch):
            results.send(epoch.number, sent)
        task.closing_order.end_epoch()


class _LogBatches:
    """Reads one log of one task, epoch by epoch."""

    def __init__(self, plan: FinalResultsPlan, task_work: TaskWork) -> None:
        log = task_work.logs[plan.topic]
        self._bounds = iter(log.bounds)
        spans = [bound for bound in log.bounds if bound[1] > bound[0]]
        start, end = (spans[0][0], spans[-1][1]) if spans else (0, 0)
        key = plan.key
        operands = plan.read_indexes
        self._width = 2 + len(key.columns)
        self._names = [name_at(plan.log_value, operand) for operand in operands]
        columns = ["offset", "timestamp", *key.names, *(plan.log_value.names[operand] for operand in operands)]
        texts = [column.name for column in key.columns if column.type == "string"]
        self._batches = ordered_batches(plan.topic, log.files, start, end, columns, dictionary=texts)
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
