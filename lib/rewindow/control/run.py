"""One run, from the ledger to the ledger.

recover -> snapshot, if due -> plan -> execute, sub-topology by sub-topology -> check expectations, if any -> stage -> audit ->
commit -> publish

`steps` is a generator that yields the name of each step before the step, so its driver can stop between any two steps. If a
process is killed anywhere, the next call publishes what was committed and repeats what was not (`docs/internals/design.md`,
"The commit").

A snapshot of the stores is written before planning if that pays off, so that the next run need not read the changelogs of
many runs. `gc` writes such snapshots for all open branches.

Expectations are checked once, before the commit. The COMMIT row stores the results, so that from then on the ledger alone decides
what is published.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from rewindow.contracts.expectations import EXPECTATION_COLUMNS, EXPECTATIONS, Observation, OnFail
from rewindow.contracts.staged_files import METRICS, StagedFile, TaskReport
from rewindow.contracts.tasks import JobCode, LogFile, LogTable, SubTopologyWork
from rewindow.control.ingest.landings import Feed
from rewindow.control.ledger_steps import PLANS, Ledger, Step, update, write_snapshot
from rewindow.control.plan.job_fold import COMMIT, PLAN
from rewindow.control.plan.job_state import Branch, CommittedRun, JobState, LedgerRow
from rewindow.control.plan.planned_tasks import METRICS_TARGET, Restored, metrics_rows, records_due, sub_topology_work
from rewindow.control.plan.planner import Alive, UpToDate, check_is_pending, last_requested_epoch, plan_run
from rewindow.control.plan.retention import EVERY, due_before_run
from rewindow.control.plan.spec import Attempt, Commit, JobBinding, JournalFile, RunRequest, RunSpec
from rewindow.control.plan.zone_clocks import clocks_in
from rewindow.errors import ExpectationError, HintMessage, InvariantError, Lines, NotNowError
from rewindow.streams.record import UNKNOWN, TopicPartition
from rewindow.streams.serde.schema import Column
from rewindow.streams.topology import SubTopology, Topology
from rewindow.streams.zoned_topology import load_with_clocks, newest_ends

_Observe = Callable[[Sequence[TaskReport]], Sequence[Observation]]
"""Checks expectations on the rows that the tasks staged; returns the results."""


class StagedRows(Protocol):
    """The rows of runs, read from the files that the tasks staged. It does not matter whether the rows are published."""

    def staged_batches(
        self, spec: RunSpec, reports: Sequence[TaskReport], target: str, names: Sequence[str]
    ) -> Iterator[Any]:
        """Yield some columns of the rows that an attempt staged for a target, in order, as Arrow record batches."""
        ...

    def run_batches(self, run: CommittedRun, target: str, names: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of the rows that a committed run wrote to a target, in order, as Arrow record batches."""
        ...


class Evaluator(Protocol):
    """The checks of the expectations of a job's outputs."""

    def observe(
        self, spec: RunSpec, state: JobState, reports: Sequence[TaskReport], rows: StagedRows
    ) -> Sequence[Observation]:
        """Check the rows of an attempt; return one result per expectation.

        Reads only rows of this attempt and the run before it.
        """
        ...


def _check_met(spec: RunSpec, observed: Sequence[Observation]) -> None:
    """Raise `ExpectationError` (65) if the run does not meet an expectation with ``on_fail: fail``."""
    failed = [observation for observation in observed if not observation.is_met and observation.on_fail == OnFail.FAIL]
    if failed:
        listed = Lines(f"  - {observation.sentence}" for observation in failed)
        failed_words = "an expectation" if len(failed) == 1 else f"{len(failed)} expectations"
        raise ExpectationError(
            "expectations-not-met",
            "run {run} of {job} does not meet {expectations}:\n{observations}\nNothing was committed. Fix the data or "
            "the code, or change `expect:` (on_fail: hold commits without publishing, warn publishes)",
            run=spec.name,
            job=spec.job,
            expectations=failed_words,
            observations=listed,
        )


def _result_rows(spec: RunSpec, observed: Sequence[Observation]) -> list[tuple[Any, ...]]:
    """Return the rows that a run adds to the expectations table (`contracts.expectations.EXPECTATION_COLUMNS`)."""
    return [
        (
            *(
                spec.job,
                spec.branch,
                spec.run,
                observation.output,
                observation.name,
                observation.kind,
                observation.on_fail,
                observation.is_met,
                observation.failed,
            ),
            *(observation.observed, observation.expected, "\n".join(observation.examples)),
        )
        for observation in observed
    ]


def known_results(run: CommittedRun) -> _Observe | None:
    """Return a function that returns the results in a run's COMMIT row; None if the row has none."""
    # A replay must stage the committed results, even if the job's file has other expectations now.
    observed = run.commit.expectations
    return (lambda _reports: observed) if observed else None


Steps = Generator[str, None, "RunReport | UpToDate"]

_RootsOf = Callable[[RunSpec, Iterable[str]], Mapping[str, str]]
"""Returns the folder of each target of a run, given its internal topics."""

_Restore = Callable[[JobState, RunSpec], Restored]
"""Returns the checkpoint from which a run resumes."""


class Engine(Protocol):
    """Where sub-topologies run."""

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run all tasks of one sub-topology; return their reports by partition."""
        ...

    def stage_rows(
        self, target: str, root: str, attempt: str, columns: Sequence[Column], rows: Iterable[tuple[Any, ...]]
    ) -> list[StagedFile]:
        """Stage a few rows that were made by the driver, not by tasks."""
        ...


class Tables(Ledger[JobState], StagedRows, Protocol):
    """The tables of a job."""

    def publish(self, job: str, state: JobState, branch: str) -> Iterator[str]:
        """Make the commits of the ledger that a branch's tables lack; yield the name of each commit before making it."""
        ...

    def lagging(self, job: str, state: JobState, branch: str) -> Mapping[str, int]:
        """Return by target how many commits the tables of a branch lack. Tables that lack none are left out."""
        ...

    def check_ledger(self, job: str, state: JobState, branch: str) -> None:
        """Check that no table of a branch has publications that the ledger lacks. Raises `CheckpointError` (76)."""
        ...

    def check_published(self, job: str, state: JobState, branch: str, *, brief: bool = False) -> None:
        """Check that a branch's outputs have the rows that were published. ``brief``: in a bucket, check only the last run."""
        ...

    def log_files(self, feed: Feed, where: TopicPartition, start: int, end: int) -> Sequence[LogFile]:
        """Return the files that hold the offsets ``[start, end)``."""
        ...

    def log_table(self, feed: Feed, topic: str) -> LogTable | None:
        """Return the table of a log if only Spark can read it for the tasks; None if the tasks can open the log's files."""
        ...

    def restore(self, state: JobState, spec: RunSpec) -> Restored:
        """Return the checkpoint from which a run resumes."""
        ...

    def stage_snapshot(self, state: JobState, run: CommittedRun) -> LedgerRow:
        """Stage the rows of a snapshot; return the SNAPSHOT row that names them."""
        ...

    def check_targets(self, spec: RunSpec) -> None:
        """Raise the errors that `roots` would raise for existing tables of a planned run. Changes nothing."""
        ...

    def roots(self, spec: RunSpec, internal: Iterable[str]) -> Mapping[str, str]:
        """Return the folder of each target, internal topics included. Create missing tables."""
        ...

    def stage(self, spec: RunSpec, reports: Sequence[TaskReport]) -> JournalFile:
        """Append the attempt's manifest to the journal."""
        ...

    def check_repeats(self, spec: RunSpec, reports: Sequence[TaskReport], feed: Feed) -> None:
        """Check that an attempt made the same rows as the attempt that it repeats."""
        ...

    def audit(self, state: JobState, spec: RunSpec, staged: JournalFile, feed: Feed) -> Commit:
        """Read back what was staged; return the COMMIT of the attempt."""
        ...


@dataclass(frozen=True, slots=True)
class CleanUp:
    """What was cleaned up after a run: ``merged`` small files became ``into`` files, and ``deleted_files`` were deleted."""

    seconds: float
    merged: int = 0
    into: int = 0
    deleted_files: int = 0
    deleted_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RunReport:
    """A committed run: its plan, its commit and the metrics of its tasks."""

    spec: RunSpec
    commit: Commit
    metrics: tuple[Mapping[str, Any], ...]
    hints: tuple[HintMessage, ...] = ()
    """What may be wrong with the run."""
    is_published: bool = True
    """Whether the outputs have the run's rows. They lack these rows if this run or an earlier run of the branch is on hold."""
    left: int = 0
    """How many landings of the request are left for later runs."""
    spilled: tuple[str, ...] = ()
    cleaned: CleanUp | None = None
    """What was cleaned up after the run; None if nothing was due."""
    branch: Branch | None = field(default=None, repr=False, compare=False)
    """The branch after the run."""
    reports: tuple[TaskReport, ...] = field(default=(), repr=False, compare=False)
    """What the run's tasks reported."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job bound to its feed, ready to be planned and run. ``expectations`` is None if the job has none."""

    name: str
    code: JobCode
    binding: JobBinding
    feed: Feed
    expectations: Evaluator | None = None
    unaligned_schedules: Sequence[str] = ()
    """``file:line`` of each call that makes a schedule on stream time without an alignment."""


def steps(
    job: Job,
    request: RunRequest,
    attempt: Attempt,
    engine: Engine,
    tables: Tables,
    alive: Alive,
    *,
    snapshot_every: int = EVERY,
) -> Steps:
    """Run a job once, or return `UpToDate` if there is nothing to do. ``snapshot_every``: see `retention.is_due`."""
    yield "recover"
    state = tables.state(job.name)
    # Publish first what earlier commands committed, so that the tables can be checked.
    yield from tables.publish(job.name, state, request.branch)
    tables.check_published(job.name, state, request.branch, brief=True)
    # The snapshot is written before the plan, because the plan names the checkpoint from which its tasks restore.
    head = due_before_run(state, request.branch, snapshot_every)
    if head is not None:
        yield from write_snapshot(job.name, head, tables, snapshot_every)
    spec = yield from _plan(job, request, attempt, tables, alive)
    if isinstance(spec, UpToDate):
        return spec
    step = partial(Step, job=job.name, branch=spec.branch, run=spec.name, ledger_row=spec.run)
    yield step("execute")
    # Expectations are checked while the attempt stages its results. `observed` then goes into the COMMIT row.
    observed: list[Observation] = []
    observe = partial(_observe, job, spec, tables, observed) if job.expectations else None
    reports = yield from execute(job, spec, engine, tables, tables.roots, observe=observe)
    yield step("stage")
    staged = tables.stage(spec, reports)
    tables.check_repeats(spec, reports, job.feed)
    yield step("audit")
    # The audit reads the staged files back from storage, so that a run is committed only if its bytes are stored.
    audited = tables.audit(tables.state(job.name), spec, staged, job.feed)
    commit = replace(audited, expectations=tuple(observed), zone_ends=_zone_ends(job.code.topology, reports))
    state = yield from _commit(spec, commit, tables, step("commit"))
    # The run is committed. If publishing fails, the next command of the job continues it.
    yield step("publish")
    for commit_step in tables.publish(job.name, state, spec.branch):
        yield step(commit_step)
    yield step("done")
    measures = tuple(measure for report in reports for measure in report.metrics)
    spilled = tuple(sorted({store for report in reports for store in report.spilled}))
    branch = state.branch(spec.branch)
    return RunReport(
        spec,
        commit,
        measures,
        is_published=not branch.unpublished,
        left=max(0, last_requested_epoch(job.feed, request) - spec.input.last),
        spilled=spilled,
        branch=branch,
        reports=tuple(reports),
    )


def _plan(
    job: Job, request: RunRequest, attempt: Attempt, tables: Tables, alive: Alive
) -> Generator[str, None, RunSpec | UpToDate]:
    """Append the PLAN row, which fences every earlier attempt of the branch; return the planned run."""

    def decide(state: JobState) -> LedgerRow | UpToDate:
        spec = plan_run(state, job.feed, request, job.binding, attempt, alive)
        if isinstance(spec, UpToDate):
            return spec
        # The tables are checked before the row exists. So a run that may not write its tables leaves no plan. Tables that the
        # branch has already written were checked when it first wrote them.
        if not spec.binding.tables.items() <= state.branch(spec.branch).tables.items():
            tables.check_targets(spec)
        return LedgerRow(spec.run, PLAN, spec.as_json())

    planned = yield from update(tables, job.name, PLANS, decide)
    # The plan is read from its row, so that this process runs exactly what any later process would run.
    return planned if isinstance(planned, UpToDate) else RunSpec.from_json(planned.body)


def execute(
    job: Job,
    spec: RunSpec,
    engine: Engine,
    tables: Tables,
    roots_of: _RootsOf,
    restore: _Restore | None = None,
    *,
    observe: _Observe | None = None,
) -> Generator[str, None, list[TaskReport]]:
    """Run each sub-topology once, upstream first. Later sub-topologies read the internal logs that earlier ones wrote.

    ``observe`` returns the results of expectations, which are staged like the metrics. Windows in local time use the clocks in
    ``spec``.
    """
    job = with_clocks_of(job, spec.binding)
    parts = job.code.topology.sub_topologies()
    roots = roots_of(spec, [sink.topic for part in parts for sink in part.sinks if sink.is_internal])
    restored = (restore or tables.restore)(tables.state(job.name), spec)
    reports: list[TaskReport] = []
    for part in parts:
        yield Step(
            f"execute sub-topology {part.index}",
            job=job.name,
            branch=spec.branch,
            run=spec.name,
            ledger_row=spec.run,
            sub_topology=part.index,
            records=records_due(job.feed, spec, part),
        )
        # The files of internal logs belong to no table. So later sub-topologies get them from the reports of earlier ones.
        sent = [file for report in reports for file in report.files]
        reports += engine.run_sub_topology(_work(job, spec, part, tables, restored, sent, roots))
    measures = metrics_rows(spec, reports)
    counted = engine.stage_rows(METRICS_TARGET, roots[METRICS_TARGET], spec.attempt.id, METRICS, measures)
    if observe is not None:
        yield Step("expect", job=job.name, branch=spec.branch, run=spec.name, ledger_row=spec.run)
        results = _result_rows(spec, observe(reports))
        root = roots[EXPECTATIONS]
        counted = [*counted, *engine.stage_rows(EXPECTATIONS, root, spec.attempt.id, EXPECTATION_COLUMNS, results)]
    # The files that the driver staged are reported as if they came from one more sub-topology.
    return [*reports, TaskReport(len(parts), 0, tuple(counted), {}, (), {})]


def with_clocks_of(job: Job, binding: JobBinding) -> Job:
    """Return the job with the clocks of another binding, such as that of the run to replay."""
    if binding.zones == job.binding.zones:
        return job
    # The other binding may lack a zone that the present code names.
    clocks = {**clocks_in(job.binding), **clocks_in(binding)}
    code = replace(job.code, load_topology=partial(load_with_clocks, job.code.load_topology, clocks))
    return replace(job, code=code, binding=replace(job.binding, zones={**job.binding.zones, **binding.zones}))


def _zone_ends(topology: Topology, reports: Sequence[TaskReport]) -> dict[str, int]:
    """Return the latest end of a window by time zone; see `Commit.zone_ends`."""
    newest: dict[str, int] = {}
    for report in reports:
        for store, time_ms in report.state.get("store_clocks", {}).items():
            newest[store] = max(newest.get(store, UNKNOWN), time_ms)
    return newest_ends(topology, newest)


def _observe(
    job: Job, spec: RunSpec, tables: Tables, observed: list[Observation], reports: Sequence[TaskReport]
) -> Sequence[Observation]:
    """Check the new rows, add the results to ``observed``, and return this list.

    Raises `ExpectationError` (65) if the run does not meet an expectation with ``on_fail: fail``.
    """
    if job.expectations is not None:
        observed += job.expectations.observe(spec, tables.state(job.name), reports, tables)
    _check_met(spec, observed)
    return observed


def first_run(job: Job, attempt: Attempt, tables: Tables) -> list[SubTopologyWork]:
    """Return the work of each sub-topology in a first run over all epochs. Does not run anything."""
    spec = plan_run(JobState(), job.feed, RunRequest(), job.binding, attempt, lambda _attempt: False)
    if isinstance(spec, UpToDate):
        return []
    parts = job.code.topology.sub_topologies()
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
    """Return the work of one sub-topology. ``internal``: the files that earlier sub-topologies staged for internal logs."""
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
    """Append the COMMIT row, which makes the run's results valid, unless another attempt has fenced this one."""
    ledger = ""

    def decide(state: JobState) -> LedgerRow:
        nonlocal ledger
        ledger = state.ledger
        # If another attempt has fenced this plan since, it must not commit, even if all its files are stored.
        check_is_pending(state, spec)
        return LedgerRow(state.rows + 1, COMMIT, commit.as_json())

    yield from update(tables, spec.job, step, decide)
    # The ledger is read again. Only its rows decide whether the run is committed, whatever the append returned.
    state = tables.state(spec.job)
    if state.ledger != ledger:
        raise NotNowError(
            "run-reset-after-commit",
            "run {run} was committed, but `reset` has started the job over since: run again",
            run=spec.name,
        )
    if state.find_run(spec.run) is None:
        raise InvariantError(
            "commit-row-disappeared",
            "run {run}: its COMMIT row was appended and has disappeared. Restore the ledger table",
            run=spec.name,
        )
    return state
