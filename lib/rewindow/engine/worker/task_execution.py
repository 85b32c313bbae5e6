"""Run the tasks of a sub-topology, from files to files, in the execution that was chosen for the sub-topology.

Record execution processes a task record by record:

read the logs -> for each epoch: merge the topics, replay, end the epoch -> stage outputs and changes -> report.

Vectorized execution processes a task in batches:

restore -> for each epoch: take batches in offset order, end the epoch -> stage outputs and changes -> report.

If vectorized execution was chosen but cannot finish a task, record execution runs it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rewindow.contracts.staged_files import QUARANTINE, StagedFile, TaskReport
from rewindow.contracts.tasks import Execution, SubTopologyWork, TaskWork
from rewindow.engine.worker.batch_size import rows_at_once
from rewindow.engine.worker.changelog_reader import Restore
from rewindow.engine.worker.log_reader import InternalReader, LogReader
from rewindow.engine.worker.record_writers import InternalWriter, OutputWriter, writer_of
from rewindow.engine.worker.sqlite_spill import spills
from rewindow.engine.worker.staging import DropWriter, shared_files, stage_changes, staging_target
from rewindow.engine.worker.vectorized import window_results as final_results
from rewindow.engine.worker.vectorized.arrays import UnfitError
from rewindow.engine.worker.vectorized.choose_execution import Plan, plan_vectorized
from rewindow.engine.worker.vectorized.plans import FinalResultsPlan, JoinPlan
from rewindow.engine.worker.vectorized.sent_results import SentResults, sent_results
from rewindow.engine.worker.vectorized.topic_reader import epochs_of
from rewindow.engine.worker.vectorized.vectorized_task import VectorizedTask
from rewindow.engine.worker.vectorized.window_results import WindowTask
from rewindow.errors import InvariantError
from rewindow.streams.checkpoint import Checkpoint, TaskState
from rewindow.streams.metrics import ENFORCED_PROCESSING
from rewindow.streams.nodes import SinkNode, SourceNode
from rewindow.streams.ordering import Rows
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.types_to_columns import LogShapes, bind_sink, bind_store, bound
from rewindow.streams.settings import TaskConfig
from rewindow.streams.sink import Sink, Write
from rewindow.streams.state.spill import Disk
from rewindow.streams.task import Task
from rewindow.streams.topology import SubTopology, Topology
from rewindow.streams.windows.session_sliding import SessionWindows

YOUNG_OBJECTS = 200_000
"""The number of new objects after which Python searches for reference cycles. Python's default is 700."""

ReadEpoch = Callable[[int, int], Iterator[Rows]]
"""A function that yields the rows of an epoch of one topic. It gets the epoch's number and the topic's next offset."""


def run_task(work: SubTopologyWork, task_work: TaskWork) -> TaskReport:
    """Replay one task's epochs and stage its files. Nothing is visible until the run is committed."""
    return next(run_tasks(work, [task_work]))


def run_tasks(work: SubTopologyWork, tasks: Iterable[TaskWork]) -> Iterator[TaskReport]:
    """Run several tasks, one after the other; yield their reports.

    All tasks share a vectorized plan if the plan has no user code. Otherwise a topology is built for each task, so that user
    code of different tasks shares no objects.
    """
    plan = _vectorized_plan(work, work.code.topology)
    for task_work in tasks:
        if plan and plan.has_functions:
            plan = _vectorized_plan(work, work.code.load_topology())
        with _rare_collections(), rows_at_once(work.rows_at_once):
            report = run_vectorized(work, task_work, plan) if plan else None
            if report is None:
                if (shared := shared_files()) is not None:
                    shared.forget()
                report = _run_records(work, task_work, _checked(work, work.code.load_topology()))
        yield report


def _vectorized_plan(work: SubTopologyWork, topology: Topology) -> Plan | None:
    if work.execution is Execution.AUTO:
        raise InvariantError(
            "execution-not-chosen",
            "the execution of sub-topology {sub_topology} was not chosen before it ran",
            sub_topology=work.sub_topology,
        )
    if work.execution is Execution.RECORD:
        return None
    part = _checked(work, topology).sub_topologies()[work.sub_topology]
    return plan_vectorized(topology, part, work.code.load_logs())


def _checked(work: SubTopologyWork, topology: Topology) -> Topology:
    if topology.fingerprint() != work.identity.fingerprint:
        raise InvariantError(
            "topology-not-deterministic",
            "the worker built another topology than the driver. Make the topology function deterministic: "
            "no iteration over sets, no hash(), no clock, no random numbers",
        )
    return topology


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let Python search for reference cycles only rarely while the block runs.

    A task makes millions of small tuples, and almost none of them is part of a cycle.
    """
    before = gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _run_records(work: SubTopologyWork, task_work: TaskWork, topology: Topology) -> TaskReport:
    code, identity = work.code, work.identity
    part, logs = topology.sub_topologies()[work.sub_topology], code.load_logs()
    writers = {sink.topic: writer_of(work, task_work, sink, bind_sink(sink, logs)) for sink in part.sinks}
    store_shapes = {builder.name: bind_store(builder, logs) for builder in part.stores}
    restore = Restore(task_work, topology, part, logs)
    dropped = _drop_writer(work, task_work)

    def sink_of(sink: SinkNode) -> Sink | Write:
        writer = writers[sink.topic]
        return writer if isinstance(writer, Sink) else writer.take

    rows = {store.name: restore.rows(store, *store_shapes[store.name]) for store in part.stores}
    with spills() as (spill, spilled):
        task = Task(
            bound(part, logs),
            task_work.partition,
            writers=sink_of,
            config=TaskConfig(identity.job, code.semantics, code.settings, topology.watermark_lags()),
            checkpoint=Checkpoint(task_work.state or TaskState(), rows),
            dropped=dropped.take if dropped else None,
            disk=Disk(spill, code.settings.limits.store_memory),
        )
        if times := task_work.enforced:
            task.task_context.metrics.measure("task", "", ENFORCED_PROCESSING).record_many(times, times, 1, 1)
        all_writers = [*writers.values(), *([dropped] if dropped else [])]
        consumed = _replay(work, task, _sources(task_work, topology, part, logs), all_writers)
        files: list[StagedFile] = [file for writer in all_writers for file in writer.close()]
        for name, shapes in store_shapes.items():
            changes = task.stores[name].take_changes()
            if changes and part.writes_changelog(name, task_work.partition):
                target = staging_target(work, task_work, f"changelog/{name}")
                files += stage_changes(target, shapes, changes, partition=task_work.partition, run=identity.run)
        return TaskReport(
            sub_topology=work.sub_topology,
            partition=task_work.partition,
            files=tuple(files),
            state=task.state().as_json(),
            metrics=tuple(task.metrics_rows),
            consumed=consumed,
            spilled=tuple(sorted(spilled)),
        )


def _replay(
    work: SubTopologyWork,
    task: Task,
    sources: dict[str, ReadEpoch],
    writers: Sequence[OutputWriter | InternalWriter | DropWriter],
) -> dict[str, int]:
    """Replay all epochs; return the number of records that were processed, by topic."""
    starts = task.offsets
    for epoch in work.epochs:
        for writer in writers:
            writer.epoch = epoch.number
        offsets = task.offsets
        task.replay_rows([source(epoch.number, offsets[topic]) for topic, source in sources.items()])
        if epoch.clock_to_ms != UNKNOWN:
            task.advance_wall_clock(epoch.clock_to_ms)
        task.end_epoch(epoch.watermark_ms, is_final=epoch.is_final, number=epoch.number)
    return {topic: end - starts[topic] for topic, end in task.offsets.items()}


def _sources(task_work: TaskWork, topology: Topology, part: SubTopology, logs: LogShapes) -> dict[str, ReadEpoch]:
    return {
        source.topic: _internal_source(task_work, topology, source, logs)
        if source.is_internal
        else _log_source(task_work, source, logs)
        for source in part.sources
    }


def _log_source(task_work: TaskWork, source: SourceNode, logs: LogShapes) -> ReadEpoch:
    reader = LogReader(source.topic, task_work.logs[source.topic], *logs[source.topic])
    return lambda _epoch, _offset: reader.epoch()


def _internal_source(task_work: TaskWork, topology: Topology, source: SourceNode, logs: LogShapes) -> ReadEpoch:
    (sink,) = [node for node in topology.nodes.values() if isinstance(node, SinkNode) and node.topic == source.topic]
    key, value = bind_sink(sink, logs)
    files = task_work.internal.get(source.topic, ())
    return InternalReader(files, key, value).epoch


def _drop_writer(work: SubTopologyWork, task_work: TaskWork) -> DropWriter | None:
    """Return the writer of dropped records if the job quarantines them; otherwise None."""
    # A job has a staging root for the quarantine only if it quarantines dropped records.
    if QUARANTINE not in work.staging.roots:
        return None
    return DropWriter(staging_target(work, task_work, QUARANTINE), job=work.identity.job, run=work.identity.run)


def run_vectorized(work: SubTopologyWork, task_work: TaskWork, plan: Plan) -> TaskReport | None:
    """Run one task. If record execution must run it instead (`UnfitError`), return None and leave no files."""
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
            _replay_windows(work, task_work, task, results)
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


def _replay_windows(work: SubTopologyWork, task_work: TaskWork, task: VectorizedTask, results: SentResults) -> None:
    plan = task.plan
    read_epoch = epochs_of(plan, task_work)
    for epoch in work.epochs:
        for batch in read_epoch(epoch.number):
            task.take(batch)
            if task.rows > work.code.settings.limits.store_rows:
                # Record execution checks the limit exactly, and names the store in its error.
                raise UnfitError
        if sent := task.end_epoch(epoch):
            results.send(epoch.number, sent)
        task.closing_order.end_epoch()
