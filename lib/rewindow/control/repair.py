"""Publish tables anew that another hand altered, and make again what is gone: a run's files, from its PLAN row.

Nothing that is true changes. A run that is made again has its old number, epochs, clock and parent, and must give the rows
that were committed; a RESTAGE row then says that other files hold them. A REPUBLISH row gives a table a new publication
epoch, whose first commit puts all that is due in place of all that is there. Killed anywhere, call it again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.ingest.landings import Feed
from rewindow.control.ledger import update
from rewindow.control.plan.branches import CommittedRun, JobState, LedgerRow
from rewindow.control.plan.planner import check_has_landings
from rewindow.control.plan.repair_decisions import check_same_code, decide_give_up, decide_republish, decide_restage
from rewindow.control.plan.spec import OUTPUT, Attempt, RunSpec, TargetTotal
from rewindow.control.plan.tasks import Restored
from rewindow.control.run import Engine, Job, Tables, execute
from rewindow.control.verify import LikeBefore, content
from rewindow.errors import InvariantError, UsageError

Steps = Generator[str, None, "Republished"]


class Found(Protocol):
    """A table that is not what was published."""

    @property
    def target(self) -> str:
        """What it is the table of."""
        ...

    @property
    def what(self) -> str:
        """What is wrong with it, in words."""
        ...


class Repair(Protocol):
    """What is known of damage; see `tables.delta.repair`."""

    def drift(self, job: str, state: JobState, branch: str) -> Sequence[Found]:
        """Return the tables of a branch that are not what was published."""
        ...

    def lost(
        self, state: JobState, branch: str, targets: Sequence[str]
    ) -> tuple[Sequence[CommittedRun], Collection[int]]:
        """Return the runs whose files are gone: those that count, and the numbers of those that nothing stands on."""
        ...

    def restore(self, state: JobState, spec: RunSpec) -> Restored:
        """Return the checkpoint that a run went on from, of files as they were staged."""
        ...

    def known_reports(self, run: CommittedRun) -> Sequence[TaskReport]:
        """Return what a run's tasks reported; nothing if the journal has lost it."""
        ...

    def audit(self, spec: RunSpec, feed: Feed, reports: Sequence[TaskReport]) -> None:
        """Read back what was staged."""
        ...

    def totals(self, reports: Sequence[TaskReport]) -> Mapping[str, TargetTotal]:
        """Return for each target what was made for it."""
        ...

    def first_difference(self, run: CommittedRun, target: str, spec: RunSpec, reports: Sequence[TaskReport]) -> str:
        """Return in words the first row that was made otherwise."""
        ...


@dataclass(frozen=True, slots=True)
class Republished:
    """What was wrong, by target in words; which targets were published anew, and which runs made again."""

    drift: Mapping[str, str]
    republished: Sequence[str] = field(default=())
    made_again: Sequence[str] = field(default=())


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose tables: of one branch those that are damaged, and of these ``targets`` (None: all) also those that are not."""

    branch: str
    targets: Collection[str] | None = ()


def republish(
    job: Job, asked: Asked, attempts: Callable[[], Attempt], engine: Engine, tables: Tables, repair: Repair
) -> Steps:
    """Find damaged tables of a branch and fix them.

    Raises `UsageError` (2) for an output that there is not, `CheckpointError` (76) for a run of other code, `SourceError`
    (66) for landings that are gone, `InvariantError` (70) for a run that gives other rows than it had committed.
    """
    yield "examine"
    state = tables.state(job.name)
    drift = {found.target: found.what for found in repair.drift(job.name, state, asked.branch)}
    targets = _targets(state, asked, drift)
    lost, given_up = repair.lost(state, asked.branch, [*state.branch(asked.branch).tables])
    if given_up:
        yield from update(tables, job.name, "give up", lambda now: decide_give_up(now, given_up))
    for run in lost:
        yield from _make_again(job, run, attempts(), engine, tables, repair)
    for target in targets:
        table = state.branch(asked.branch).tables[target]
        decide = partial(decide_republish, branch=asked.branch, target=target, table=table)
        yield from update(tables, job.name, f"republish {target}", decide)
    yield from tables.publish(job.name, tables.state(job.name), asked.branch)
    return Republished(drift, targets, [run.spec.name for run in lost])


def _targets(state: JobState, asked: Asked, drift: Iterable[str]) -> list[str]:
    known = state.branch(asked.branch).tables
    for target in asked.targets or ():
        if target not in known:
            outputs = ", ".join(one.removeprefix(OUTPUT) for one in known if one.startswith(OUTPUT)) or "none"
            message = f"branch {asked.branch!r} has no table for {target.removeprefix(OUTPUT)!r} (outputs: {outputs})"
            raise UsageError(message)
    wanted = {*drift, *(known if asked.targets is None else asked.targets)}
    return sorted(wanted, key=lambda target: (not target.startswith(OUTPUT), target))


def _make_again(
    job: Job, run: CommittedRun, attempt: Attempt, engine: Engine, tables: Tables, repair: Repair
) -> Generator[str, None, None]:
    """Make a run's files once more, as it was planned."""
    check_same_code(run, job.binding)
    check_has_landings(run, job.feed)
    spec = replace(run.spec, attempt=attempt)
    before = repair.known_reports(run)
    like_before: Engine = LikeBefore(engine, before) if before else engine
    reports = yield from execute(job, spec, like_before, tables, tables.roots, repair.restore)
    made, committed = repair.totals(reports), run.commit.targets
    for target in sorted({*made, *committed}):
        if content(made.get(target)) != content(committed.get(target)):
            message = (
                f"run {run.spec.name} was made again and is not what was committed. {target.removeprefix(OUTPUT)}: "
                f"{repair.first_difference(run, target, spec, reports)}. Nothing was changed: the job is not deterministic "
                "(find the clock, the dice or the set), or what it read was altered; put the lost files back from a copy"
            )
            raise InvariantError(message)
    repair.audit(spec, job.feed, reports)
    yield f"stage {run.spec.name}"
    journal = tables.stage(spec, reports)

    def decide(now: JobState) -> LedgerRow | None:
        return decide_restage(now, now.find_run(run.spec.run) or run, attempt.id, journal)

    yield from update(tables, job.name, f"restage {run.spec.name}", decide)
