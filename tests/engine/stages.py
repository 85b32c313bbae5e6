"""Run the sub-topologies of a topology one after the other, from files to files, in several runs."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import (
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
from tests.engine.executions import Case, Written, logs

PARTITIONS = 2
Stages = dict[tuple[int, int], list[Written]]
"""What each task wrote, run by run, by sub-topology and partition."""


def drawn_runs(number: int, data: st.DataObject) -> tuple[list[tuple[int, int]], list[Execution]]:
    """Draw the epochs ``[first, end)`` of each run and its execution, which is vectorized in one run at least.

    ``number``: how many epochs there are.
    """
    inner = sorted(data.draw(st.sets(st.integers(1, max(1, number - 1)), max_size=2))) if number > 1 else []
    cuts = list(pairwise([0, *inner, number]))
    modes = data.draw(
        st.lists(
            st.sampled_from([Execution.AUTO, Execution.AUTO, Execution.RECORD]), min_size=len(cuts), max_size=len(cuts)
        )
    )
    assume(Execution.AUTO in modes)
    return cuts, modes


def replay_stages(
    case: Case, log: tuple[LogFile, ...], root: Path, ranges: list[tuple[int, int]], modes: list[Execution]
) -> Stages:
    """Replay run by run; two upstream tasks read the same log. Return what was written, internal files included."""
    states: dict[tuple[int, int], Any] = {}
    stores: dict[tuple[int, int], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    written: dict[tuple[int, int], list[Written]] = defaultdict(list)
    for run, ((first, end), execution) in enumerate(zip(ranges, modes, strict=True), start=1):
        sent: list[tuple[int, str, Any]] = []
        for part in case.topology.sub_topologies():
            work = _work(case, root / str(run), run, (first, end), part, execution)
            tasks = []
            for partition in range(PARTITIONS):
                topic = part.sources[0].topic
                slices = {} if part.index else {topic: LogSlice(log, case.bounds[first:end])}
                files = tuple(InternalFile(path, upstream) for upstream, path, to in sent if to == partition)
                state = states.get((part.index, partition))
                restored = TaskState.from_json(json.loads(json.dumps(state))) if state else None
                held = {store.name: tuple(stores[part.index, partition][store.name]) for store in part.stores}
                tasks.append(TaskWork(partition, slices, {topic: files} if part.index else {}, restored, held))
            for partition, report in enumerate(run_tasks(work, tasks)):
                states[part.index, partition] = report.state
                paths = _paths(work, report)
                for target, path, to in paths:
                    kind, _, name = target.partition("/")
                    if kind == "changelog":
                        stores[part.index, partition][name].append(path)
                    elif kind == "internal":
                        sent.append((partition, path, to))
                done = Written(report)
                for target, path, _ in paths:
                    done.files.setdefault(target, []).append(path)
                written[part.index, partition].append(done)
    return written


def _paths(work: SubTopologyWork, report: TaskReport) -> list[tuple[str, str, int]]:
    return [
        (file.target, f"{work.staging.roots[file.target]}/{file.path}", int(file.partition_values.get("_partition", 0)))
        for file in report.files
    ]


def _work(
    case: Case, root: Path, run: int, epochs: tuple[int, int], part: Any, execution: Execution
) -> SubTopologyWork:
    targets = [f"{'internal' if sink.is_internal else 'output'}/{sink.topic}" for sink in part.sinks]
    targets += [f"changelog/{store.name}" for store in part.stores]
    work = SubTopologyWork(
        sub_topology=part.index,
        identity=RunIdentity("job", run, f"run{run}", case.topology.fingerprint()),
        code=JobCode(lambda: case.topology, lambda: logs(case), case.semantics),
        epochs=case.epochs[slice(*epochs)],
        tasks=(),
        staging=StagingArea({target: str(root / target) for target in targets}, PARTITIONS),
    )
    return LocalEngine(execution).with_execution(work)
