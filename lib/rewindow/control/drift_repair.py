"""Repair drift: republish tables that were altered outside rewindow, and repeat runs whose files are gone.

Committed results do not change. A repeated run keeps its number, epochs, clock and parent, and must give the committed rows.
Then a RESTAGE row names the new files. A REPUBLISH row starts a new publication epoch of a table. The first commit of this
epoch replaces the whole content of the table. If a process is killed at any point, call `republish` again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.ingest.landings import Feed
from rewindow.control.ledger_steps import update
from rewindow.control.plan.compatibility import missing_landing
from rewindow.control.plan.job_state import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.planned_tasks import Restored
from rewindow.control.plan.repair_decisions import check_same_code, decide_give_up, decide_republish, decide_restage
from rewindow.control.plan.spec import CHANGELOG, MAIN, OUTPUT, Attempt, RunSpec, totals
from rewindow.control.run import Engine, Job, Tables, execute, known_results
from rewindow.control.verify import LikeBefore, content
from rewindow.errors import CheckpointError, InvariantError, SourceError, UsageError

Steps = Generator[str, None, "Republished"]


class DriftedTable(Protocol):
    """A table whose content is not what was published."""

    @property
    def target(self) -> str:
        """The target of the table."""
        ...

    @property
    def change(self) -> str:
        """A description of the difference."""
        ...


class Repair(Protocol):
    """What a repair needs from a job's tables; see `tables.delta.repair` and `tables.governed.repair`."""

    def published(self, state: JobState, branch: str) -> Sequence[str]:
        """Return the targets of a branch whose tables can be republished."""
        ...

    def drift(self, job: str, state: JobState, branch: str) -> Sequence[DriftedTable]:
        """Return the tables of a branch whose content is not what was published."""
        ...

    def lost(
        self, state: JobState, branch: str, targets: Sequence[str]
    ) -> tuple[Sequence[CommittedRun], Collection[int]]:
        """Return the runs to repeat because their files are gone, and the numbers of the other runs with lost files."""
        ...

    def restore(self, state: JobState, spec: RunSpec) -> Restored:
        """Return the checkpoint that a run resumed from, read from staged files."""
        ...

    def known_reports(self, run: CommittedRun) -> Sequence[TaskReport]:
        """Return what the tasks of a run reported; empty if the journal lost these reports."""
        ...

    def audit(self, spec: RunSpec, feed: Feed, reports: Sequence[TaskReport]) -> None:
        """Check the reports of a repeated run, and read back the files that it staged."""
        ...

    def first_difference(self, run: CommittedRun, target: str, spec: RunSpec, reports: Sequence[TaskReport]) -> str:
        """Describe the first row of a target that differs between the committed run and its repetition."""
        ...


@dataclass(frozen=True, slots=True)
class Republished:
    """The drift by target, the targets that were republished, and the runs that were repeated.

    ``lagged`` names the targets that an interrupted command had left behind the ledger; they are published, too.
    """

    drift: Mapping[str, str]
    republished: Sequence[str] = field(default=())
    repeated: Sequence[str] = field(default=())
    lagged: Sequence[str] = field(default=())
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Maps each target to the runs whose rows were removed from it. The files of these runs were gone, and no branch needs
    the runs."""
    emptied: Sequence[str] = field(default=())
    """The paths of the tables from which rows older than the last `reset` were removed."""


@dataclass(frozen=True, slots=True)
class RepublishRequest:
    """Which tables of a branch to republish: those that drifted, and those of ``targets`` in any case (None: all targets)."""

    branch: str
    targets: Collection[str] | None = ()


def republish(
    job: Job, request: RepublishRequest, attempts: Callable[[], Attempt], engine: Engine, tables: Tables, repair: Repair
) -> Steps:
    """Find tables of a branch that drifted, and repair them.

    Raises `UsageError` (2) for an unknown output, and `CheckpointError` (76) if a table has publications that the ledger lacks.
    If a run must be repeated, raises `CheckpointError` if different code made the run, `SourceError` (66) if the landings of
    the run are gone, and `InvariantError` (70) if the repetition gives other rows than were committed.
    """
    yield "examine"
    state = tables.state(job.name)
    tables.check_ledger(job.name, state, request.branch)
    drift = {drifted.target: drifted.change for drifted in repair.drift(job.name, state, request.branch)}
    lagged = tuple(target for target in tables.lagging(job.name, state, request.branch) if target not in drift)
    published = repair.published(state, request.branch)
    without = dict(_rows_left_out(state, request.branch, published, repair))
    targets = _targets(published, request, {*drift, *without})
    lost, unneeded = repair.lost(state, request.branch, [*state.branch(request.branch).tables])
    if unneeded:
        yield from update(tables, job.name, "give up", lambda now: decide_give_up(now, unneeded))
    for run in lost:
        yield from _repeat(job, run, attempts(), engine, tables, repair)
    for target in targets:
        table = state.branch(request.branch).tables[target]
        left_out = without.get(target, ())
        decide = partial(decide_republish, branch=request.branch, target=target, table=table, without=left_out)
        yield from update(tables, job.name, f"republish {target}", decide)
    emptied = []
    for step in tables.publish(job.name, tables.state(job.name), request.branch):
        verb, _, path = step.partition(" ")
        if verb == "empty":
            emptied.append(path)
        yield step
    names = {run.spec.run: run.spec.name for run in state.committed}
    left_out_runs = {target: [names[number] for number in numbers] for target, numbers in without.items()}
    return Republished(drift, targets, [run.spec.name for run in lost], lagged, left_out_runs, tuple(emptied))


def _rows_left_out(
    state: JobState, branch: str, published: Sequence[str], repair: Repair
) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the target of each shared table from which rows are removed, with the numbers of the runs that wrote these rows.

    The files of these runs are gone, and the runs are not repeated, because no branch needs them.
    """
    for target in published:
        if not target.startswith((OUTPUT, CHANGELOG)):
            _, unneeded = repair.lost(state, branch, [target])
            if unneeded:
                yield target, sorted(unneeded)


def _targets(published: Sequence[str], request: RepublishRequest, drift: Iterable[str]) -> list[str]:
    for target in request.targets or ():
        if target not in published:
            outputs = (
                ", ".join(
                    published_target.removeprefix(OUTPUT)
                    for published_target in published
                    if published_target.startswith(OUTPUT)
                )
                or "none"
            )
            raise UsageError(
                "branch-without-output",
                "branch {branch!r} has no table for {output!r} (outputs: {outputs})",
                branch=request.branch,
                output=target.removeprefix(OUTPUT),
                outputs=outputs,
            )
    wanted = {*drift, *(published if request.targets is None else request.targets)}
    return sorted(wanted, key=lambda target: (not target.startswith(OUTPUT), target))


def _repeat(
    job: Job, run: CommittedRun, attempt: Attempt, engine: Engine, tables: Tables, repair: Repair
) -> Generator[str, None, None]:
    """Stage the files of a run again by executing its plan."""
    start_over = (
        f"start the job over, without its branches: `rewindow reset {job.name}`, then `rewindow run {job.name}`"
    )
    if run.spec.branch != MAIN:
        start_over = (
            f"drop its branch, if nobody needs it any more: `rewindow branch drop {job.name} {run.spec.branch}`"
        )
    try:
        check_same_code(run, job.binding)
    except CheckpointError as error:
        if run.spec.branch != MAIN:
            error.surrounded(after=f"; or {start_over}")
        raise
    if (missing := missing_landing(run.spec, job.feed)) is not None:
        raise SourceError(
            "run-not-repeatable",
            "{reason}, so its rows cannot be made again. Restore the table from a copy, or {fix}",
            reason=missing,
            fix=start_over,
        )
    spec = replace(run.spec, attempt=attempt)
    before = repair.known_reports(run)
    engine_as_before: Engine = LikeBefore(engine, before) if before else engine
    results = known_results(run)
    reports = yield from execute(job, spec, engine_as_before, tables, tables.roots, repair.restore, observe=results)
    made, committed = totals(reports), run.commit.targets
    for target in sorted({*made, *committed}):
        if content(made.get(target)) != content(committed.get(target)):
            raise InvariantError(
                "repeated-rows-differ",
                "run {run} was repeated and gave other rows than it committed. {output}: {difference}. Nothing was "
                "changed. The job is not deterministic (a clock, a random number, the order of a set), or its input was "
                "altered. Restore the lost files from a copy",
                run=run.spec.name,
                output=target.removeprefix(OUTPUT),
                difference=repair.first_difference(run, target, spec, reports),
            )
    repair.audit(spec, job.feed, reports)
    yield f"stage {run.spec.name}"
    journal = tables.stage(spec, reports)

    def decide(now: JobState) -> LedgerRow | None:
        return decide_restage(now, now.find_run(run.spec.run) or run, attempt.id, journal)

    yield from update(tables, job.name, f"restage {run.spec.name}", decide)
