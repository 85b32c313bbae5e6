"""record execution: one task of one sub-topology, from files to files. Runs in a Spark worker, or in any process.

open -> for each epoch: merge the topics, replay, end the epoch -> stage outputs and changes -> report.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rewindow.contracts.staged_files import QUARANTINE, StagedFile, TaskReport
from rewindow.contracts.tasks import SubTopologyWork, TaskWork
from rewindow.engine.worker.batch_size import rows_at_once
from rewindow.engine.worker.log_reader import LogReader
from rewindow.engine.worker.output import InternalWriter, OutputWriter, StagingTarget, stage_changes
from rewindow.engine.worker.quarantine import DropWriter
from rewindow.engine.worker.repartition_reader import InternalReader
from rewindow.engine.worker.restore import Restore
from rewindow.engine.worker.sqlite_spill import spills
from rewindow.engine.worker.vectorized.execution import run_finals
from rewindow.engine.worker.vectorized.plan import Finals, choose_execution
from rewindow.errors import InvariantError
from rewindow.streams.checkpoint import Checkpoint, TaskState
from rewindow.streams.error_policy import policies_of
from rewindow.streams.metrics import ENFORCED_PROCESSING
from rewindow.streams.nodes import SinkNode, SourceNode
from rewindow.streams.ordering import Event, Rows, events, merge
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.binding import LogShapes, bind_sink, bind_store, bound
from rewindow.streams.serde.schema import Shape
from rewindow.streams.settings import TaskConfig
from rewindow.streams.sink import Sink, Write
from rewindow.streams.state.spill import Disk
from rewindow.streams.task import Task
from rewindow.streams.topology import SubTopology, Topology

YOUNG_OBJECTS = 200_000
"""How many objects may be new before Python looks for cycles among them; its own default is 700."""


def run_task(work: SubTopologyWork, task_work: TaskWork) -> TaskReport:
    """Replay one task's epochs and stage what comes of it. Nothing is visible until the run is committed."""
    return next(run_tasks(work, [task_work]))


def run_tasks(work: SubTopologyWork, tasks: Iterable[TaskWork]) -> Iterator[TaskReport]:
    """Do so with several tasks, one after the other. In vectorized execution they share one plan, which is made of values."""
    topology, part, logs = _load(work)
    plan = plan_of(work, part, logs)
    is_fresh = True
    for task_work in tasks:
        with _rare_collections(), rows_at_once(work.rows_at_once):
            report = run_finals(work, task_work, plan) if plan else None
            if report is None:
                if not is_fresh:
                    topology, part, logs = _load(work)
                is_fresh = False  # user code has seen it: the next task gets its own
                report = _run_records(work, task_work, topology, part, logs)
        yield report


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for cyclic garbage rarely: a task makes small tuples by the million, and next to none of them is in a cycle."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _load(work: SubTopologyWork) -> tuple[Topology, SubTopology, LogShapes]:
    topology = work.load_topology()
    if topology.fingerprint() != work.fingerprint:
        raise InvariantError(
            "the worker built another topology than the driver: build it without sets, hashes, clocks or dice"
        )
    return topology, topology.sub_topologies()[work.sub_topology], work.load_logs()


def plan_of(work: SubTopologyWork, part: SubTopology, logs: LogShapes) -> Finals | None:
    """Return how a stage runs in vectorized execution; None if it takes record execution."""
    keeps_dropped = QUARANTINE in work.roots or bool(policies_of(part, work.settings.on_error))
    plan = choose_execution(work.execution, part, logs, keeps_dropped=keeps_dropped)
    return plan if isinstance(plan, Finals) else None


def _run_records(
    work: SubTopologyWork, task_work: TaskWork, topology: Topology, part: SubTopology, logs: LogShapes
) -> TaskReport:
    writers = {sink.topic: _writer(work, task_work, sink, bind_sink(sink, logs)) for sink in part.sinks}
    store_shapes = {builder.name: bind_store(builder, logs) for builder in part.stores}
    restore = Restore(task_work, topology, part, logs)
    # The job asks for what is dropped by having the table.
    dropped = (
        DropWriter(_place(work, task_work, QUARANTINE), job=work.job, run=work.run)
        if QUARANTINE in work.roots
        else None
    )

    def writer_of(sink: SinkNode) -> Sink | Write:
        writer = writers[sink.topic]
        return writer if isinstance(writer, Sink) else writer.take

    rows = {store.name: restore.rows(store, *store_shapes[store.name]) for store in part.stores}
    with spills() as spill:
        task = Task(
            bound(part, logs),
            task_work.partition,
            writers=writer_of,
            config=TaskConfig(work.job, work.semantics, work.settings, topology.watermark_lags()),
            checkpoint=Checkpoint(task_work.state or TaskState(), rows),
            dropped=dropped.take if dropped else None,
            disk=Disk(spill, work.settings.limits.store_memory),
        )
        if times := task_work.enforced:
            task.task_context.metrics.measure("task", "", ENFORCED_PROCESSING).record_many(times, times, 1, 1)
        all_writers = [*writers.values(), *([dropped] if dropped else [])]
        consumed = _replay(work, task, _sources(task_work, topology, part, logs), all_writers)
        files: list[StagedFile] = [file for writer in all_writers for file in writer.close()]
        for name, shapes in store_shapes.items():
            changes = task.stores[name].take_changes()
            if changes:
                place = _place(work, task_work, f"changelog/{name}")
                files += stage_changes(place, shapes, changes, partition=task_work.partition, run=work.run)
        return TaskReport(
            sub_topology=work.sub_topology,
            partition=task_work.partition,
            files=tuple(files),
            state=task.state().as_json(),
            metrics=tuple(task.metrics_rows),
            consumed=consumed,
        )


def _replay(
    work: SubTopologyWork,
    task: Task,
    sources: dict[str, Callable[[int, int], Iterator[Rows]]],
    writers: Sequence[OutputWriter | InternalWriter | DropWriter],
) -> dict[str, int]:
    first = task.offsets
    for epoch in work.epochs:
        for writer in writers:
            writer.epoch = epoch.number
        offsets = task.offsets
        topics: list[Iterator[Event]] = [
            events(rank, source(epoch.number, offsets[topic])) for rank, (topic, source) in enumerate(sources.items())
        ]
        task.replay(merge(topics))
        if epoch.clock_to_ms != UNKNOWN:
            task.advance_wall_clock(epoch.clock_to_ms)
        task.end_epoch(epoch.watermark_ms, is_final=epoch.is_final, number=epoch.number)
    return {topic: end - first[topic] for topic, end in task.offsets.items()}


def _sources(
    task_work: TaskWork, topology: Topology, part: SubTopology, logs: Any
) -> dict[str, Callable[[int, int], Iterator[Rows]]]:
    """Return for each topic a function of (epoch, next offset) that gives the epoch's rows."""
    return {
        source.topic: _internal_source(task_work, topology, source, logs)
        if source.is_internal
        else _log_source(task_work, source, logs)
        for source in part.sources
    }


def _log_source(task_work: TaskWork, source: SourceNode, logs: Any) -> Callable[[int, int], Iterator[Rows]]:
    reader = LogReader(source.topic, task_work.logs[source.topic], *logs[source.topic])
    return lambda _epoch, _offset: reader.epoch()


def _internal_source(
    task_work: TaskWork, topology: Topology, source: SourceNode, logs: Any
) -> Callable[[int, int], Iterator[Rows]]:
    (sink,) = [n for n in topology.nodes.values() if isinstance(n, SinkNode) and n.topic == source.topic]
    key, value = bind_sink(sink, logs)
    files = task_work.internal.get(source.topic, ())
    return InternalReader(files, key, value).epoch


def _writer(
    work: SubTopologyWork, task_work: TaskWork, sink: SinkNode, shapes: tuple[Shape, Shape]
) -> OutputWriter | InternalWriter:
    sender = ", ".join(sink.parents)
    if sink.is_internal:
        place = _place(work, task_work, f"internal/{sink.topic}", sender)
        return InternalWriter(place, shapes, partitions=work.partitions)
    place = _place(work, task_work, f"output/{sink.topic}", sender)
    return OutputWriter(place, shapes, partition=task_work.partition, run=work.run)


def _place(work: SubTopologyWork, task_work: TaskWork, target: str, sender: str = "") -> StagingTarget:
    return StagingTarget(target, work.roots[target], attempt=work.attempt, partition=task_work.partition, sender=sender)
