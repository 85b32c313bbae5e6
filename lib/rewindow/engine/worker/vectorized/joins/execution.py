"""Run one task of one sub-topology with a join, from files to files.

restore -> for each epoch: merged batches in the task's order, then its end -> stage outputs and changes -> report.
"""

from __future__ import annotations

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import SubTopologyWork, TaskWork
from rewindow.dsl.operators.stream_join import StreamJoin
from rewindow.engine.worker.staging import staging_target
from rewindow.engine.worker.vectorized.batches import epochs_of
from rewindow.engine.worker.vectorized.errors import UnfitError
from rewindow.engine.worker.vectorized.joins.plan import JoinPlan
from rewindow.engine.worker.vectorized.joins.results import JoinResults, join_results
from rewindow.engine.worker.vectorized.joins.stream_task import StreamJoinTask
from rewindow.engine.worker.vectorized.joins.table_task import TableJoinTask
from rewindow.engine.worker.vectorized.joins.tables_task import TablesJoinTask
from rewindow.engine.worker.vectorized.joins.task import JoinTask
from rewindow.engine.worker.vectorized.merged_batches import merged
from rewindow.streams.metrics import ENFORCED_PROCESSING


def run_join(work: SubTopologyWork, task_work: TaskWork, plan: JoinPlan) -> TaskReport | None:
    """Run one task. Return None, without sent files, if record execution must run it (`UnfitError`)."""
    task = _kind(plan)(plan, work.code.semantics, task_work.state, work.code.settings.limits)
    results = join_results(task, work, task_work)
    targets = {name: staging_target(work, task_work, f"changelog/{name}") for name in plan.stores}
    if times := task_work.enforced:
        task.clocks.metrics.measure("task", "", ENFORCED_PROCESSING).record_many(times, times, 1, 1)
    first = dict(task.clocks.offsets)
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
        consumed={topic: end - first[topic] for topic, end in task.clocks.offsets.items()},
        is_vectorized=True,
    )


def _kind(plan: JoinPlan) -> type[JoinTask]:
    if plan.supplier is None:
        return TablesJoinTask
    return StreamJoinTask if isinstance(plan.supplier, StreamJoin) else TableJoinTask


def _replay(work: SubTopologyWork, task_work: TaskWork, task: JoinTask, results: JoinResults) -> None:
    topics = [epochs_of(one, task_work) for one in task.plan.inputs]
    for epoch in work.epochs:
        for batch in merged([read_epoch(epoch.number) for read_epoch in topics]):
            for joined in task.take(batch):
                results.send(epoch.number, joined)
        for joined in task.end_epoch(epoch):
            results.send(epoch.number, joined)
