"""A small job on tables in memory: its tables, its engine, and its gc."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

from rewindow.contracts.expectations import EXPECTATIONS as EXPECTATIONS_TARGET
from rewindow.contracts.expectations import Observation, OnFail
from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.contracts.tasks import JobCode, SubTopologyWork
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.retention import dead_attempts, decide_snapshot
from rewindow.control.plan.spec import MAIN, JobBinding, TableSpec, totals
from rewindow.control.run import Job
from rewindow.streams.serde.schema import Column
from rewindow.streams.settings import Semantics
from rewindow.tables.delta.checkpoints import find_checkpoint
from rewindow.tables.shared.paths import EXPECTATIONS, METRICS
from tests.control.ledgers import BINDING, TOPIC, a_feed
from tests.crash.memory import ROOT, File, here
from tests.crash.memory_tables import MemoryTables

JOB = "counts"
PARTITIONS = 2
EPOCHS = 4

_LOGS = [SimpleNamespace(topic=TOPIC, is_internal=False)]
_SINKS = [SimpleNamespace(topic="totals", is_internal=False)]
_PART = SimpleNamespace(index=0, sources=_LOGS, sinks=_SINKS, stores=(), global_stores=frozenset())
_TOPOLOGY = SimpleNamespace(sub_topologies=lambda: (_PART,))
CODE = JobCode(lambda: _TOPOLOGY, lambda: None, Semantics())  # type: ignore[arg-type,return-value]
_COLUMNS = (Column("user", "string"),)


@lru_cache
def feed(landings: int) -> Feed:
    return a_feed(landings)


@lru_cache
def binding(branch: str) -> JobBinding:
    """Bind the job. Each branch has its own output; the changelog and the metrics are shared."""
    path = "out/totals" if branch == MAIN else f"out/totals__{branch}"
    tables = {
        "output/totals": TableSpec(path, _COLUMNS),
        "changelog/sums": TableSpec("state/sums", _COLUMNS),
        "metrics": TableSpec(METRICS, _COLUMNS),
        EXPECTATIONS_TARGET: TableSpec(EXPECTATIONS, _COLUMNS),
    }
    return replace(BINDING, tables=tables)


def step(before: str, partition: int, epoch: int) -> str:
    """Return the state after an epoch."""
    return blake2b(f"{before} {partition} {epoch}".encode(), digest_size=8).hexdigest()


class Expects:
    """Expects something of a run, which is on hold if it does not meet it."""

    def __init__(self, *, is_met: bool) -> None:
        self._failed = 0 if is_met else 1

    def observe(self, *_: object) -> list[Observation]:
        return [Observation("totals", "no rows", "rows", OnFail.HOLD, self._failed, "rows", "none")]


class MemoryJobGc:
    """Deletes the files of dead attempts in memory."""

    def __init__(self, tables: Tables, met: Counter[str]) -> None:
        self._tables, self._met = tables, met

    def drop_reports(self) -> int:
        return 0

    def merge(self, _least: int) -> Iterator[str]:
        return iter(())

    def garbage(self, _keep_ms: int) -> Iterator[str]:
        dead = dead_attempts(self._tables.state(JOB))
        for path in list(here().world.files):
            name = path.rpartition("/")[2]
            if "-".join(name.split("-")[:2]) in dead and not path.startswith(f"{ROOT}/rewindow/"):
                yield path

    def delete(self, garbage: Sequence[str]) -> None:
        for path in garbage:
            here().faults.point(f"{path}: delete")
            self._met["deleted"] += here().world.files.pop(path, None) is not None

    def compact_ledger(self) -> None:
        return


class MemoryEngine:
    """Continues from the restored state, epoch by epoch. Each epoch's row is a digest of all epochs so far."""

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        return [self._task(work, task.partition, task.stores) for task in work.tasks]

    def _task(self, work: SubTopologyWork, partition: int, _stores: object) -> TaskReport:
        state = here().restored.get(partition, "")  # type: ignore[attr-defined]
        rows, changes = [], []
        for epoch in work.epochs:
            state = step(state, partition, epoch.number)
            rows.append((partition, epoch.number, state))
        changes.append((partition, state))
        files = [
            self._stage(
                work.identity.attempt,
                work.staging.roots["output/totals"],
                "output/totals",
                partition,
                work.identity.run,
                rows,
            ),
            self._stage(
                work.identity.attempt,
                work.staging.roots["changelog/sums"],
                "changelog/sums",
                partition,
                work.identity.run,
                changes,
            ),
        ]
        return TaskReport(0, partition, tuple(files), {}, (), {TOPIC: 10 * len(work.epochs)})

    def stage_rows(self, target: str, root: str, attempt: str, _columns: object, rows: Any) -> list[StagedFile]:
        run = int(attempt.rpartition("-")[2])
        return [self._stage(attempt, root, target, 0, run, list(rows) or [()])]

    def _stage(
        self, attempt: str, root: str, target: str, partition: int, run: int, rows: Sequence[tuple[Any, ...]]
    ) -> StagedFile:
        process = here()
        process.faults.point(f"{target}: stage")
        path = f"{attempt}-{target.partition('/')[0]}-{partition}-{len(process.world.files)}"
        process.world.files[f"{root}/{path}"] = File((run, rows))
        digest = blake2b(repr(rows).encode(), digest_size=16).hexdigest()
        return StagedFile(target, partition, path, len(rows), 1, {"_partition": str(partition)}, {}, digest, "")


class Tables(MemoryTables):
    """Restores a chain's state as a task does: the last row of a partition counts."""

    def stage_snapshot(self, state: JobState, run: CommittedRun) -> LedgerRow:
        here().world.snapshots += 1
        number, attempt = state.rows + 1, f"snapshot-{here().world.snapshots}"
        checkpoint = find_checkpoint(ROOT, run, state.basis(run.spec.run), self.reports)
        files = []
        for (_, partition), paths in sorted(checkpoint.stores.items()):
            rows: dict[int, str] = {}
            for path in paths:
                rows |= dict(here().world.files[path].rows[1])
            changes = [(partition, rows[partition])]
            stage = MemoryEngine()._stage
            files.append(stage(attempt, f"{ROOT}/state/sums", "changelog/sums", partition, number, changes))
        reports = [TaskReport(0, 0, tuple(files), {}, (), {})]
        journal = self._journal(JOB).append(attempt, reports)
        return decide_snapshot(state, run, attempt, journal, totals(reports))

    def restore(self, state: Any, spec: Any) -> Any:
        checkpoint = super().restore(state, spec)
        restored: dict[int, str] = {}
        for (_store, _partition), paths in sorted(checkpoint.stores.items()):
            for path in paths:
                restored |= dict(here().world.files[path].rows[1])
        here().restored = restored  # type: ignore[attr-defined]
        return replace(checkpoint, states={})


def job(tables: Tables, branch: str, *, is_met: bool = True) -> Job:
    """Return the job of a run. ``is_met``: whether it meets what is expected, or is on hold."""
    return Job(JOB, CODE, binding(branch), tables.feed("activity"), Expects(is_met=is_met))
