"""Run the sub-topologies of a job with two logs one after the other, from files to files, in several runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rewindow.contracts.tasks import (
    Epoch,
    Execution,
    InternalFile,
    JobCode,
    LogFile,
    LogSlice,
    RunIdentity,
    StagingArea,
    SubTopologyWork,
    TaskWork,
)
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.engine.worker.task_execution import run_tasks
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import LogShapes, log_shape
from rewindow.streams.settings import Limits, Semantics, Settings
from rewindow.streams.topology import Topology
from tests.engine.executions import Case, Written, write_log

PARTITIONS = 2
Stages = dict[tuple[int, int], list[Written]]
"""What each task wrote, run by run, by sub-topology and partition."""


class Log(NamedTuple):
    """A log: its columns, how many of them are keys, its rows, and the offsets of each epoch."""

    columns: tuple[Column, ...]
    keys: int
    rows: list[tuple[Any, ...]]
    bounds: tuple[tuple[int, int], ...]


class TwoTopics(NamedTuple):
    """A job with two logs. The tasks of the first sub-topologies all read the same rows."""

    topology: Topology
    logs: Mapping[str, Log]
    epochs: tuple[Epoch, ...]
    semantics: Semantics
    limits: Limits = Limits()


def shapes(case: TwoTopics) -> LogShapes:
    """Return the shapes of the logs. One key or value column is bare."""
    return {
        topic: tuple(  # type: ignore[misc]  # two shapes
            log_shape(columns, is_scalar=len(columns) == 1)
            for columns in (log.columns[: log.keys], log.columns[log.keys :])
        )
        for topic, log in case.logs.items()
    }


def write_logs(case: TwoTopics, root: Path, files: int) -> dict[str, tuple[LogFile, ...]]:
    """Write the logs, each to several files."""
    return {
        topic: write_log(
            Case(case.topology, log.columns, log.keys, log.rows, case.epochs, log.bounds, case.semantics),
            root / topic,
            files=files,
        )
        for topic, log in case.logs.items()
    }


def replay(
    case: TwoTopics,
    files: Mapping[str, tuple[LogFile, ...]],
    root: Path,
    ranges: list[tuple[int, int]],
    modes: list[Execution],
) -> Stages:
    """Replay epochs ``[first, end)`` run by run, each restored from the files and states of the previous one."""
    states: dict[tuple[int, int], Any] = {}
    stores: dict[tuple[int, int], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    written: dict[tuple[int, int], list[Written]] = defaultdict(list)
    for run, ((first, end), execution) in enumerate(zip(ranges, modes, strict=True), start=1):
        sent: list[tuple[str, int, str, int]] = []
        for part in case.topology.sub_topologies():
            work = _work(case, root / str(run), run, (first, end), part, execution)
            tasks = []
            for partition in range(PARTITIONS):
                task = part.index, partition
                slices = {
                    source.topic: LogSlice(files[source.topic], case.logs[source.topic].bounds[first:end])
                    for source in part.sources
                    if not source.is_internal
                }
                internal = {
                    source.topic: tuple(
                        InternalFile(path, upstream)
                        for topic, upstream, path, to in sent
                        if to == partition and topic == source.topic
                    )
                    for source in part.sources
                    if source.is_internal
                }
                state = states.get(task)
                restored = TaskState.from_json(json.loads(json.dumps(state))) if state else None
                held = {store.name: tuple(stores[task][store.name]) for store in part.stores}
                tasks.append(TaskWork(partition, slices, internal, restored, held, enforced=run % 2))
            for partition, report in enumerate(run_tasks(work, tasks)):
                task = part.index, partition
                states[task] = report.state
                done = Written(report)
                for file in report.files:
                    path = f"{work.staging.roots[file.target]}/{file.path}"
                    done.files.setdefault(file.target, []).append(path)
                    kind, _, name = file.target.partition("/")
                    if kind == "changelog":
                        stores[task][name].append(path)
                    elif kind == "internal":
                        sent.append((name, partition, path, int(file.partition_values["_partition"])))
                written[task].append(done)
    return written


def _work(
    case: TwoTopics, root: Path, run: int, epochs: tuple[int, int], part: Any, execution: Execution
) -> SubTopologyWork:
    targets = [f"{'internal' if sink.is_internal else 'output'}/{sink.topic}" for sink in part.sinks]
    targets += [f"changelog/{store.name}" for store in part.stores]
    work = SubTopologyWork(
        sub_topology=part.index,
        identity=RunIdentity("job", run, f"run{run}", case.topology.fingerprint()),
        code=JobCode(lambda: case.topology, lambda: shapes(case), case.semantics, Settings(limits=case.limits)),
        epochs=case.epochs[slice(*epochs)],
        tasks=(),
        staging=StagingArea({target: str(root / target) for target in targets}, PARTITIONS),
    )
    return LocalEngine(execution).with_execution(work)
