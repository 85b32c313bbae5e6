"""One run, from the ledger to the ledger. The only module that knows the whole way.

recover -> plan -> execute, sub-topology by sub-topology -> stage -> audit -> commit -> publish

`steps` is a machine: it yields the name of each step before it does it, so that whoever drives it can stop it between
any two. Killed anywhere, the next call finishes what was decided, or does again what was not (`DESIGN.md`, "The commit").
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from rewindow.contracts.staged_files import METRICS, StagedFile, TaskReport
from rewindow.contracts.steps import Step
from rewindow.contracts.tasks import LogFile, LogTable, SubTopologyWork
from rewindow.control.ingest.landings import Feed
from rewindow.control.ledger import Ledger, update
from rewindow.control.plan.branches import JobState, LedgerRow
from rewindow.control.plan.ledger_state import COMMIT, PLAN
from rewindow.control.plan.planner import Alive, UpToDate, check_is_pending, plan_run
from rewindow.control.plan.spec import Attempt, Commit, JobBinding, JournalFile, RunRequest, RunSpec
from rewindow.control.plan.tasks import METRICS_TARGET, JobCode, Restored, metrics_rows, sub_topology_work
from rewindow.errors import InvariantError
from rewindow.streams.record import TopicPartition
from rewindow.streams.serde.schema import Column
from rewindow.streams.topology import SubTopology

Steps = Generator[str, None, "RunReport | UpToDate"]

RootsOf = Callable[[RunSpec, Iterable[str]], Mapping[str, str]]
"""Gives for each target of a run, its internal topics included, the folder of its files."""

Restore = Callable[[JobState, RunSpec], Restored]
"""Gives the checkpoint that a run goes on from."""


class Engine(Protocol):
    """Where the work is done."""

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology of a run, all its tasks; return their reports by partition."""
        ...

    def stage_rows(
        self, target: str, root: str, attempt: str, columns: Sequence[Column], rows: Iterable[tuple[Any, ...]]
    ) -> list[StagedFile]:
        """Stage a few rows that the runner itself made."""
        ...


class Tables(Ledger[JobState], Protocol):
    """Where the truth is."""

    def publish(self, job: str, state: JobState, branch: str) -> Iterator[str]:
        """Bring a branch's tables up to the ledger; yield before each commit."""
        ...

    def check_published(self, job: str, state: JobState, branch: str) -> None:
        """See that a branch's outputs have the rows that were published, and no others."""
        ...

    def log_files(self, feed: Feed, where: TopicPartition, start: int, end: int) -> Sequence[LogFile]:
        """Return the files that hold the offsets ``[start, end)``."""
        ...

    def log_table(self, feed: Feed, topic: str) -> LogTable | None:
        """Return the table of a log that Spark has to read for the tasks; None if they can open its files."""
        ...

    def restore(self, state: JobState, spec: RunSpec) -> Restored:
        """Return the checkpoint that a run goes on from."""
        ...

    def roots(self, spec: RunSpec, internal: Iterable[str]) -> Mapping[str, str]:
        """Return the folder of each target, those of internal topics included."""
        ...

    def stage(self, spec: RunSpec, reports: Sequence[TaskReport]) -> JournalFile:
        """Append the attempt's manifest to the journal."""
        ...

    def check_repeats(self, spec: RunSpec, reports: Sequence[TaskReport], feed: Feed) -> None:
        """See that an attempt that repeats another made the same rows."""
        ...

    def audit(self, state: JobState, spec: RunSpec, staged: JournalFile, feed: Feed) -> Commit:
        """Read back what was staged; return the COMMIT that it is worth."""
        ...


@dataclass(frozen=True, slots=True)
class RunReport:
    """A committed run: what was planned, what came of it, and what its tasks counted."""

    spec: RunSpec
    commit: Commit
    metrics: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A job bound to its feed, ready to be planned and run."""

    name: str
    code: JobCode
    binding: JobBinding
    feed: Feed


def steps(job: Job, request: RunRequest, attempt: Attempt, engine: Engine, tables: Tables, alive: Alive) -> Steps:
    """Make one run of a job, or find that there is nothing to do."""
    yield "recover"
    yield from tables.publish(job.name, tables.state(job.name), request.branch)
    tables.check_published(job.name, tables.state(job.name), request.branch)
    spec = yield from _plan(job, request, attempt, tables, alive)
    if isinstance(spec, UpToDate):
        return spec
    said = partial(Step, job=job.name, branch=spec.branch, run=spec.name, run_id=spec.run)
    yield said("execute")
    reports = yield from execute(job, spec, engine, tables, tables.roots)
    yield said("stage")
    staged = tables.stage(spec, reports)
    tables.check_repeats(spec, reports, job.feed)
    yield said("audit")
    commit = tables.audit(tables.state(job.name), spec, staged, job.feed)
    state = yield from _commit(spec, commit, tables, said("commit"))
    yield said("publish")
    for step in tables.publish(job.name, state, spec.branch):
        yield said(step)
    yield said("done")
    return RunReport(spec, commit, tuple(measure for report in reports for measure in report.metrics))


def _plan(
    job: Job, request: RunRequest, attempt: Attempt, tables: Tables, alive: Alive
) -> Generator[str, None, RunSpec | UpToDate]:
    """Append the PLAN row, which fences every earlier attempt of the branch; return its run."""

    def decide(state: JobState) -> LedgerRow | UpToDate:
        spec = plan_run(state, job.feed, request, job.binding, attempt, alive)
        return spec if isinstance(spec, UpToDate) else LedgerRow(spec.run, PLAN, spec.as_json())

    planned = yield from update(tables, job.name, "plan", decide)
    return planned if isinstance(planned, UpToDate) else RunSpec.from_json(planned.body)


def execute(
    job: Job, spec: RunSpec, engine: Engine, tables: Tables, roots_of: RootsOf, restore: Restore | None = None
) -> Generator[str, None, list[TaskReport]]:
    """Run each sub-topology once, upstream first; what it sends to internal logs is read by those after it."""
    parts = job.code.load_topology().sub_topologies()
    roots = roots_of(spec, [sink.topic for part in parts for sink in part.sinks if sink.is_internal])
    restored = (restore or tables.restore)(tables.state(job.name), spec)
    reports: list[TaskReport] = []
    for part in parts:
        yield Step(
            f"execute sub-topology {part.index}",
            job=job.name,
            branch=spec.branch,
            run=spec.name,
            run_id=spec.run,
            sub_topology=part.index,
            records=_records_due(job.feed, spec, part),
        )
        sent = [file for report in reports for file in report.files]
        reports += engine.run_sub_topology(_work(job, spec, part, tables, restored, sent, roots))
    measures = metrics_rows(spec, reports)
    counted = engine.stage_rows(METRICS_TARGET, roots[METRICS_TARGET], spec.attempt.id, METRICS, measures)
    return [*reports, TaskReport(len(parts), 0, tuple(counted), {}, (), {})]


def _records_due(feed: Feed, spec: RunSpec, part: SubTopology) -> int:
    """Return how many offsets of the feed's logs a sub-topology takes; those of internal logs are not known before."""
    places = [
        TopicPartition(source.topic, partition)
        for source in part.sources
        if not source.is_internal and spec.epochs
        for partition in range(feed.definition.partitions)
    ]
    return sum(
        feed.epoch_range(spec.last_epoch, place)[1] - feed.epoch_range(spec.first_epoch, place)[0] for place in places
    )


def first_run(job: Job, attempt: Attempt, tables: Tables) -> list[SubTopologyWork]:
    """Return what the engine would be asked in a run of its own over all epochs, one work a sub-topology. Nothing is run."""
    spec = plan_run(JobState(), job.feed, RunRequest(), job.binding, attempt, lambda _attempt: False)
    if isinstance(spec, UpToDate):
        return []
    parts = job.code.load_topology().sub_topologies()
    return [_work(job, spec, part, tables, Restored({}, {}), (), {}) for part in parts]


def _work(
    job: Job,
    spec: RunSpec,
    part: SubTopology,
    tables: Tables,
    restored: Restored,
    internal: Sequence[StagedFile],
    roots: Mapping[str, str],
) -> SubTopologyWork:
    """Return what the engine is asked for one sub-topology. ``internal``: what those before it have sent."""
    return sub_topology_work(
        spec,
        job.code,
        job.feed,
        part,
        files=lambda where, start, end: tables.log_files(job.feed, where, start, end),
        table=lambda topic: tables.log_table(job.feed, topic),
        restored=restored,
        internal=internal,
        roots=roots,
    )


def _commit(spec: RunSpec, commit: Commit, tables: Tables, step: Step) -> Generator[str, None, JobState]:
    """Append the COMMIT row, which makes the run true, unless another attempt has fenced this one."""

    def decide(state: JobState) -> LedgerRow:
        check_is_pending(state, spec)
        return LedgerRow(state.rows + 1, COMMIT, commit.as_json())

    yield from update(tables, spec.job, step, decide)
    state = tables.state(spec.job)
    if state.find_run(spec.run) is None:
        message = f"run {spec.name}: its COMMIT row was written and is not there. Restore the ledger table"
        raise InvariantError(message)
    return state
