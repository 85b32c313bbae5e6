"""Run one task of a declarative topology from files to files, in several runs, each in a given execution mode."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rewindow.contracts.tasks import (
    Epoch,
    Execution,
    JobCode,
    LogFile,
    LogSlice,
    RunIdentity,
    StagingArea,
    SubTopologyWork,
    TaskWork,
)
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.engine.worker.staging import StagingTarget
from rewindow.engine.worker.task_execution import run_tasks
from rewindow.streams.checkpoint import TaskState
from rewindow.streams.metrics import SUPPRESSION_BUFFER_COUNT, SUPPRESSION_BUFFER_SIZE
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import LogShapes, log_shape
from rewindow.streams.settings import Semantics, Settings
from rewindow.streams.topology import Topology

SAMPLED = (SUPPRESSION_BUFFER_COUNT, SUPPRESSION_BUFFER_SIZE)
"""Metrics that only record execution samples."""
PARTITION = 3


class Case(NamedTuple):
    """A job with one topic, the rows of its log, and its landings. ``keys``: the number of key columns."""

    topology: Topology
    columns: tuple[Column, ...]
    keys: int
    rows: list[tuple[Any, ...]]
    """Timestamp, key and value columns; the offset is the index in the list."""
    epochs: tuple[Epoch, ...]
    bounds: tuple[tuple[int, int], ...]
    semantics: Semantics
    settings: Settings = Settings()


@dataclass
class Written:
    """The files and the report of a run."""

    report: Any
    files: dict[str, list[str]] = field(default_factory=dict)

    def rows(self, target: str) -> list[str]:
        """Return the rows of a target as sorted texts, so that NaN equals NaN."""
        tables = [pq.read_table(path, partitioning=None) for path in self.files.get(target, ())]
        return sorted(str(row) for table in tables for row in table.to_pylist())

    @property
    def metrics(self) -> list[Any]:
        """Return the metrics that both execution modes have."""
        return [row for row in self.report.metrics if row["name"] not in SAMPLED]


def logs(case: Case) -> LogShapes:
    """Return the shapes of the log."""
    key, value = case.columns[: case.keys], case.columns[case.keys :]
    return {"events": (log_shape(key, is_scalar=case.keys == 1), log_shape(value, is_scalar=False))}


def write_log(case: Case, root: Path, *, files: int = 1) -> tuple[LogFile, ...]:
    """Write the log to several files."""
    columns = [Column("offset", "long"), Column("timestamp", "long"), *case.columns]
    rows = [(offset, *row) for offset, row in enumerate(case.rows)]
    size = len(rows) // files + 1
    written = []
    for first in range(0, len(rows), size):
        some = rows[first : first + size]
        buffer = StagingTarget("log/events", str(root), attempt="land", partition=PARTITION).buffer(columns, ["offset"])
        for row in some:
            buffer.append(row)
        (file,) = buffer.close()
        written.append(LogFile(f"{root}/{file.path}", first, first + len(some) - 1))
    return tuple(written)


def replay(
    case: Case,
    log: Sequence[LogFile],
    root: Path,
    ranges: Sequence[tuple[int, int]],
    modes: Sequence[Execution],
    *,
    topologies: Sequence[Topology] = (),
) -> list[Written]:
    """Replay epochs ``[first, end)`` run by run, each restored from the files and the state of the previous one.

    ``topologies``: the topology of each run, if it is not always that of the case. Each task follows one of another partition
    with two records, which may share its plan.
    """
    state: Any = None
    stores: dict[str, list[Any]] = {store.name: [] for store in case.topology.sub_topologies()[0].stores}
    written_runs = []
    for run, ((first, end), execution) in enumerate(zip(ranges, modes, strict=True), start=1):
        case = case._replace(topology=topologies[run - 1]) if topologies else case
        work = sub_topology_work(case, root / str(run), run, (first, end), execution)
        slices = {"events": LogSlice(tuple(log), case.bounds[first:end])}
        restored = None if state is None else TaskState.from_json(json.loads(json.dumps(state)))
        task = TaskWork(PARTITION, slices, {}, restored, {k: tuple(v) for k, v in stores.items()})
        _, report = run_tasks(work, [_other_task(case, log, end - first), task])
        state = report.state
        done = Written(report)
        for file in report.files:
            done.files.setdefault(file.target, []).append(f"{work.staging.roots[file.target]}/{file.path}")
            kind, _, name = file.target.partition("/")
            if kind == "changelog":
                stores[name].append(f"{work.staging.roots[file.target]}/{file.path}")
        written_runs.append(done)
    return written_runs


def _other_task(case: Case, log: Sequence[LogFile], epochs: int) -> TaskWork:
    few = min(2, len(case.rows))
    bounds = ((0, few), *([(few, few)] * (epochs - 1)))
    return TaskWork(PARTITION - 1, {"events": LogSlice(tuple(log), bounds)}, {}, None, {})


def sub_topology_work(
    case: Case, root: Path, run: int, epochs: tuple[int, int], execution: Execution
) -> SubTopologyWork:
    """Return the work of one run."""
    (part,) = case.topology.sub_topologies()
    targets = [f"output/{sink.topic}" for sink in part.sinks] + [f"changelog/{store.name}" for store in part.stores]
    work = SubTopologyWork(
        sub_topology=0,
        identity=RunIdentity("job", run, f"run{run}", case.topology.fingerprint()),
        code=JobCode(lambda: case.topology, lambda: logs(case), case.semantics, case.settings),
        epochs=case.epochs[slice(*epochs)],
        tasks=(),
        staging=StagingArea({target: str(root / target) for target in targets}, PARTITION + 1),
    )
    return LocalEngine(execution).with_execution(work)


def assert_equal(found: Sequence[Written], expected: Sequence[Written]) -> None:
    """Assert that runs are equal: rows of all tables, states, metrics, offsets."""
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        for target in sorted({*one.files, *other.files}):
            assert one.rows(target) == other.rows(target), f"run {number}, {target}"
        assert one.report.state == other.report.state, f"run {number}"
        assert one.metrics == other.metrics, f"run {number}"
        assert one.report.consumed == other.report.consumed, f"run {number}"
        assert _schemas(one) == _schemas(other), f"run {number}"
        assert _digests(one) == _digests(other), f"run {number}"


def _schemas(written: Written) -> dict[str, pa.Schema]:
    return {target: pq.read_schema(paths[0]) for target, paths in written.files.items()}


def _digests(written: Written) -> dict[str, Any]:
    return {file.target: (file.rows, file.rows_digest, dict(file.stats)) for file in written.report.files}
