"""Run one task of one sub-topology in vectorized execution, from its input files to its staged files.

restore -> for each epoch: take batches in offset order, end the epoch -> stage outputs and changes -> report.
"""

from __future__ import annotations

from typing import Any

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import SubTopologyWork, TaskWork
from rewindow.engine.worker.staging import staging_target
from rewindow.engine.worker.vectorized import window_results as final_results
from rewindow.engine.worker.vectorized.arrays import UnfitError
from rewindow.engine.worker.vectorized.choose_execution import Plan
from rewindow.engine.worker.vectorized.plans import FinalResultsPlan, JoinPlan
from rewindow.engine.worker.vectorized.sent_results import SentResults, sent_results
from rewindow.engine.worker.vectorized.topic_reader import epochs_of
from rewindow.engine.worker.vectorized.vectorized_task import VectorizedTask
from rewindow.engine.worker.vectorized.window_results import WindowTask
from rewindow.streams.metrics import ENFORCED_PROCESSING
from rewindow.streams.record import UNKNOWN
from rewindow.streams.windows.session_sliding import SessionWindows


def run_vectorized(work: SubTopologyWork, task_work: TaskWork, plan: Plan) -> TaskReport | None:
    """Run one task. Return None, and leave no files, if record execution must run the task (`UnfitError`)."""
    if isinstance(plan, JoinPlan):
        from rewindow.engine.worker.vectorized.joins.join_execution import run_join  # noqa: PLC0415 - few jobs join

        return run_join(work, task_work, plan)
    return _run_windows(work, task_work, plan)


def _run_windows(work: SubTopologyWork, task_work: TaskWork, plan: FinalResultsPlan) -> TaskReport | None:
    task: VectorizedTask
    restore: Any
    stage: Any
    if isinstance(plan.windows, SessionWindows):
        from rewindow.engine.worker.vectorized import session_results  # noqa: PLC0415 - few jobs have sessions
        from rewindow.engine.worker.vectorized.session_results import SessionTask  # noqa: PLC0415

        task = SessionTask(plan, plan.windows, work.code.semantics, task_work.state)
        restore, stage = session_results.restore, session_results.stage
    else:
        task = WindowTask(plan, plan.windows, work.code.semantics, task_work.state)
        restore, stage = final_results.restore, final_results.stage
    results = sent_results(task, work, task_work)
    buffers = [plan.suppress.store] if plan.suppress else []
    stores = [plan.store.name, *buffers]
    targets = {name: staging_target(work, task_work, f"changelog/{name}") for name in stores}
    if times := task_work.enforced:
        task.clocks.metrics.measure("task", "", ENFORCED_PROCESSING).record_many(times, times, 1, 1)
    start = task.clocks.offsets[plan.topic]
    try:
        with results:
            restore(task, task_work)
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
        consumed={plan.topic: task.clocks.offsets[plan.topic] - start},
        is_vectorized=True,
    )


def _replay(work: SubTopologyWork, task_work: TaskWork, task: VectorizedTask, results: SentResults) -> None:
    plan = task.plan
    read_epoch = epochs_of(plan, task_work)
    for epoch in work.epochs:
        for batch in read_epoch(epoch.number):
            task.take(batch)
            if task.rows > work.code.settings.limits.store_rows:
                # Record execution checks the limit exactly, and its error names the store.
                raise UnfitError
        if sent := task.end_epoch(epoch):
            results.send(epoch.number, sent)
        task.closing_order.end_epoch()
