"""The commands that change and compare a job's branches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any

from rewindow.app.describe_job import check_outputs, check_rows, describe_published
from rewindow.app.open_project import OpenProject
from rewindow.app.removed_runs import outdated_readers
from rewindow.app.run_references import request_through, run_first, starting_epoch, with_runs, without_options
from rewindow.app.telemetry.command_facts import BACKFILL, PROMOTE, REWIND
from rewindow.app.telemetry.telemetry import Observed, OnStep
from rewindow.app.times import whole_number
from rewindow.control.branch import begin_backfill, catch_up, drop, promote, rewind
from rewindow.control.health.holds import Hold, describe_holds
from rewindow.control.health.inputs import fewer_rows, not_taken, rows_of
from rewindow.control.health.phrases import command_words
from rewindow.control.heartbeat import this_attempt
from rewindow.control.ingest.landings import Feed
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.branch_decisions import check_promotable, find_run, run_before, was_promoted
from rewindow.control.plan.compatibility import check_landings, check_publishable, other_keys
from rewindow.control.plan.job_diff import changes_since, differences_besides_tables
from rewindow.control.plan.job_state import Branch, CommittedRun, JobState, shared_runs
from rewindow.control.plan.planner import Backfill, UpToDate, last_requested_epoch
from rewindow.control.plan.spec import MAIN, OUTPUT, JobBinding, RunRequest
from rewindow.control.run import RunReport
from rewindow.control.verify import Verified, verify
from rewindow.errors import UsageError, naming
from rewindow.streams.record import known_time
from rewindow.streams.serde.types_to_columns import bind_sink
from rewindow.tables.shared.diff import TableDiff
from rewindow.tables.shared.ledger import check_stored
from rewindow.tables.shared.paths import safe_name
from rewindow.tables.shared.warehouse import check_not_deleted


@dataclass(frozen=True, slots=True)
class Backfilled:
    """Result of a backfill: its branch, the run on which the branch is based, its first epoch, and the results of its runs.

    ``replaced`` names earlier runs of the branch that were replaced because they had executed other code. ``continues`` names
    the last earlier run that was kept. ``other_keys`` names the outputs that cannot be compared with those of `main`, because
    their keys have other columns.
    """

    branch: str
    stands_on: str | None
    first_epoch: int
    replaced: Sequence[str]
    continues: str | None
    results: Sequence[RunReport | UpToDate]
    other_keys: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """Result of a comparison of two branches: the last run that both have, the ``epochs`` after it, and each output's diff.

    If both branches end with a final run after the same epoch, the rows of the final runs were compared, too (``has_finals``).
    Otherwise ``left_out`` names the final runs whose rows were not compared. ``on_hold`` has the first run on hold of each
    branch. The rows of such a run and of later runs were not compared, because they are not published.
    """

    first: str
    second: str
    shared: str | None
    epochs: range
    diffs: Mapping[str, TableDiff]
    on_hold: Sequence[Hold] = ()
    has_finals: bool = False
    left_out: Sequence[str] = ()

    @property
    def extent(self) -> str:
        """What was compared, as a part of a sentence; ``""`` if nothing was compared."""
        epochs = [f"epochs {self.epochs[0]} to {self.epochs[-1]}"] if self.epochs else []
        return " and ".join([*epochs, *(["the final runs"] if self.has_finals else [])])

    @property
    def is_held(self) -> bool:
        """Whether there was nothing to compare because of a run on hold. Then it is unknown whether the outputs differ."""
        return bool(self.on_hold) and not self.extent

    @property
    def differs(self) -> bool:
        """Whether an output differs; false if it is unknown."""
        return not self.are_equal and not self.is_held

    @property
    def are_equal(self) -> bool:
        """Whether no output differs; false if a run on hold left nothing to compare."""
        return not self.is_held and all(table_diff.is_none for table_diff in self.diffs.values())


_BACKFILL = "backfill-"
"""The beginning of the names that `backfill` gives to branches without a name from the user."""
_HASH_SEED, OTHER_SEED = "PYTHONHASHSEED", "20130101"
"""The environment variable that sets how Python hashes texts, and a value other than 0, the default of Spark's workers."""


class JobBranches:
    """The branches of one job."""

    def __init__(self, project: OpenProject, job: str) -> None:
        """Bind to a job of a project. Raises `ConfigError` (78) for an unknown job."""
        project.job_config(job)
        self._project, self._job, self._tables = project, job, project.tables

    @property
    def state(self) -> JobState:
        """The job's state in the ledger."""
        return self._project.state(self._job)

    def rewind(self, branch: str, to: str, on_step: OnStep = None) -> dict[str, Any]:
        """Return a branch to an earlier run; see `control.branch.rewind`.

        ``lagged`` of the result names the targets whose tables lacked committed runs, for example after an interrupted command.
        """
        with self._project.telemetry.operation(REWIND, self._job, branch) as observed:
            before, lagged = self.state.branch(branch), self._lagging(branch)
            drive(rewind(self._job, branch, to, self._tables), observed.watching(on_step))
            after = self.state.branch(branch)
            rewound = [run.spec.name for run in before.runs[len(after.runs) :]]
            head = after.head.spec.name if after.head else None
            done = {"branch": branch, "at": head, "rewound": rewound, "lagged": lagged}
            observed.done(lambda: self._project.gatherer.branch_changed(self.state, branch, done))
        return {**done, "outdated": self._outdated(branch)}

    def backfill(
        self,
        start: str,
        end: str | None,
        branch: str | None,
        on_step: OnStep = None,
        *,
        accept_changes: bool = False,
    ) -> Backfilled:
        """Replay epochs on a branch of `main`, creating the branch if needed. Published tables do not change.

        ``start`` and ``end`` are event times, landings or runs. The start is rounded down to the end of a run. The default end
        is the last epoch of `main`. An existing branch continues where it ended, or starts over if its runs executed code that
        differs from the present code. Without a name, the call continues the branch of an interrupted backfill without a name,
        if there is one. ``accept_changes`` allows code that differs from the code of the parent checkpoint, if the stores are
        still compatible.
        """
        if branch == MAIN:
            raise UsageError(
                "main-not-backfilled",
                "cannot backfill 'main' itself: use another --branch, then promote it, `rewindow promote {job} NAME`",
                job=self._job,
            )
        with self._project.telemetry.operation(BACKFILL, self._job) as observed:
            done = self._backfill(start, end, branch, on_step, observed, accept_changes=accept_changes)
            observed.done(
                lambda: self._project.gatherer.backfill_done(
                    done.branch, done.stands_on, done.first_epoch, done.results
                )
            )
        return done

    def _backfill(
        self,
        start: str,
        end: str | None,
        branch: str | None,
        on_step: OnStep,
        observed: Observed,
        *,
        accept_changes: bool,
    ) -> Backfilled:
        state, job = self.state, self._project.bind(self._job)
        main, feed = state.branch(MAIN), job.feed
        if end is None:
            self._check_reached(main, feed)
        first = starting_epoch(state, main, feed, start)
        unnamed = branch or self._interrupted_backfill(state, run_before(state, main, first))
        name = safe_name(unnamed or _next_name(state), "branch")
        request = replace(request_through(state, main, name, end), accept_changes=accept_changes)
        if first > (last := last_requested_epoch(feed, request)):
            raise self._nothing_to_replay(start, end, first, last, feed)
        bound = self._project.bind(self._job, name)
        request = self._project.as_configured(self._job, request)
        self._check_owners(MAIN, job.binding)  # otherwise the branch could not be promoted
        check_publishable(main, job.binding)
        wanted = Backfill(first, request, bound.feed, bound.binding, this_attempt(), self._project.is_alive)
        elsewhere = f"`rewindow backfill {self._job} --from 1 --branch NAME`, with a new name, does not need it"
        with without_options(elsewhere, "--accept-changes"):
            drive(begin_backfill(self._job, wanted, self._tables), observed.watching(on_step))
        own = self.state.branch(name).own_runs
        before = state.branch(name).own_runs
        replaced = [run.spec.name for run in before if run not in own]
        continues = next((run.spec.name for run in reversed(before) if run in own), None)
        base = self.state.branch(name).base
        with without_options(run_first(self._job, name), "--accept-changes"):
            results = self._project.run_to_the_end(self._job, request, on_step)
        first_epoch = base.spec.input.last + 1 if base else 1
        keys, stands_on = other_keys(main, bound.binding), base.spec.name if base else None
        return Backfilled(name, stands_on, first_epoch, replaced, continues, results, keys)

    def _nothing_to_replay(self, start: str, end: str | None, first: int, last: int, feed: Feed) -> UsageError:
        """Return the error for a backfill whose first epoch ``first`` is after the last requested epoch ``last``."""
        if end is not None or first > len(feed.landings):
            return UsageError(
                "backfill-begins-after-end",
                "nothing to replay: --from {start} is after landing {last}, the last requested one",
                start=start,
                last=last,
            )
        return UsageError(
            "backfill-begins-after-main",
            "nothing to replay: --from {start} begins with landing {first}, but main has taken only landings 1 to "
            "{last}, and a backfill replays only these. `rewindow run {job}` takes landing {first}. If that run is "
            "refused, backfill from an earlier landing, promote the branch, then run",
            start=start,
            first=first,
            last=last,
            job=self._job,
        )

    def promote(self, branch: str, into: str, on_step: OnStep = None) -> dict[str, Any]:
        """Run a branch up to the last epoch of ``into``, then replace the runs of ``into``; see `control.branch.promote`.

        In the result, ``is_new`` is false if the branch was promoted before. ``lagged`` is as in `rewind`. ``fewer`` is the
        result of `fewer_rows`. ``other_code`` lists how the project's present code differs from the branch's code. ``waiting``
        is the number of landings that wait for the next run of ``into``. ``is_sealed`` says whether ``into`` gets no more runs.
        """
        with self._project.telemetry.operation(PROMOTE, self._job, branch) as observed:
            done = self._promote(branch, into, on_step, observed.watching(on_step))
            observed.done(lambda: self._project.gatherer.branch_changed(self.state, into, done, branch))
        published = describe_published(self._tables, self._job, into)
        return {**done, "published": published, "outdated": self._outdated(into), "waiting": self._waiting(into)}

    def _promote(self, branch: str, into: str, on_step: OnStep, on_own_step: OnStep) -> dict[str, Any]:
        """Promote, and return the result. ``on_own_step`` observes the steps of the promotion, ``on_step`` those of runs."""
        results: list[RunReport | UpToDate] = []
        lagged, before = self._lagging(into), rows_of(self.state.branch(into).runs)
        drive(catch_up(self._job, self._tables, branch, into), on_own_step)
        check_promotable(self.state, branch, into)
        is_new, changes = not was_promoted(self.state, branch, into), []
        if is_new:
            ahead, bound = self.state.branch(into).last_epoch, self._project.bind(self._job, into)
            if self.state.branch(branch).last_epoch < ahead:
                self._check_reached(self.state.branch(into), bound.feed)
                with without_options(run_first(self._job, branch)):
                    results += self._project.run_to_the_end(
                        self._job, RunRequest(branch=branch, through_landing=ahead), on_step
                    )
            self._check_owners(into, bound.binding)
            drive(promote(self._job, branch, bound.binding, self._tables, into=into), on_own_step)
            changes = changes_since(self.state.branch(into), bound.binding)
        head = self.state.branch(into).head
        name = head.spec.name if head else None
        caught_up = [result.spec.name for result in results if isinstance(result, RunReport)]
        done = {"branch": branch, "into": into, "at": name, "is_new": is_new, "lagged": lagged, "other_code": changes}
        done |= {"is_sealed": head is not None and head.spec.final}
        return {**done, "caught_up": caught_up, "fewer": fewer_rows(before, rows_of(self.state.branch(into).runs))}

    def _check_reached(self, branch: Branch, feed: Feed) -> None:
        """Raise `SourceError` (66) if the feed was landed anew and now has fewer landings than a branch has processed.

        No other branch can then catch up with this branch.
        """
        if branch.last_epoch > len(feed.landings):
            check_landings(branch, feed)

    def _check_owners(self, branch: str, binding: JobBinding) -> None:
        """Raise `ConfigError` (78) if an output table belongs to another job. Called before a ledger row names the table."""
        outputs = [table for target, table in binding.tables.items() if target.startswith(OUTPUT)]
        self._tables.check_owners(self._job, branch, outputs)

    def branches(self) -> list[dict[str, Any]]:
        """Return the job's branches as JSON values."""
        return [
            {
                "branch": branch.name,
                "parent": branch.parent,
                "stands_on": branch.runs[branch.inherited - 1].spec.name if branch.inherited else None,
                "last_run": branch.head.spec.name if branch.head else None,
                "epoch": branch.last_epoch,
                "watermark_ms": known_time(branch.watermark_ms),
                "standing": "sealed" if branch.is_open and branch.is_sealed else str(branch.standing),
            }
            for branch in self.state.branches.values()
        ]

    def on_hold(self, branch: str) -> list[dict[str, Any]]:
        """Return the runs of a branch that are on hold, as JSON values."""
        return describe_holds(self.state, branch)

    def drop(self, branch: str, on_step: OnStep = None) -> None:
        """Drop a branch; see `control.branch.drop`."""
        drive(drop(self._job, branch, self._tables), on_step)

    def diff(self, first: str, second: str, samples: int) -> Compared:
        """Compare the outputs of two branches key by key, over the epochs that both replayed after their last common run.

        The rows of final runs are compared if both branches end with a final run after the same epoch. Raises `UsageError` (2)
        for a branch without runs, `StorageError` (74) if a table was altered outside rewindow.
        """
        state = self._project.state(self._job, first, second)
        ours, theirs = (with_runs(self._job, state, name) for name in (first, second))
        for branch in (ours, theirs):
            check_not_deleted(self._job, branch, self._tables.version_of)
        for name in (first, second):
            for _step in self._tables.publish(self._job, state, name):
                pass
        output_keys = self._output_keys()
        for name in dict.fromkeys((first, second)):
            check_outputs(self._tables, self._job, state, name, output_keys)
        common = shared_runs(ours.runs, theirs.runs)
        after = ours.runs[common - 1].spec.input.last if common else 0
        published = [branch.published_runs for branch in (ours, theirs)]
        through = min(runs[-1].spec.input.last if runs else 0 for runs in published)
        finals = [runs[-1].spec for runs in published if len(runs) > common and runs[-1].spec.final]
        has_finals = len(finals) == len(published) and len({spec.input.last for spec in finals}) == 1
        diffs = {}
        for target, keys in output_keys.items():
            tables = [branch.tables[target] for branch in (ours, theirs) if target in branch.tables]
            if len(tables) == 2:
                # If the final runs are compared: their rows have the number of an extra epoch, after the last landing.
                diffs[target.removeprefix(OUTPUT)] = self._tables.compare(
                    tables[0], tables[1], keys, epochs=(after, through + has_finals), samples=samples
                )
        now = self.state
        if any(shared_runs(branch.runs, now.branch(branch.name).runs) < len(branch.runs) for branch in (ours, theirs)):
            # Another process has removed runs from a branch. Some rows may have been read before and some after that, so
            # compare again.
            return self.diff(first, second, samples)
        shared = ours.runs[common - 1].spec.name if common else None
        holds = [hold for name in dict.fromkeys((first, second)) for hold in describe_holds(state, name)[:1]]
        left_out = [] if has_finals else [spec.name for spec in finals]
        return Compared(first, second, shared, range(after + 1, through + 1), diffs, holds, has_finals, left_out)

    def code_changes(self, first: str, second: str) -> list[str]:
        """Return how the code of the last runs of two branches differs, apart from the paths of tables."""
        state = self.state
        ours, theirs = (with_runs(self._job, state, name).runs[-1].spec.binding for name in (first, second))
        return differences_besides_tables(ours, theirs)

    def verify(self, branch: str, runs: Sequence[str], on_step: OnStep = None) -> list[Verified]:
        """Replay committed runs, by default a branch's last one, and compare the rows; see `control.verify.verify`.

        Before that, checks that the branch's tables have the rows that were published. Raises `StorageError` (74) if they do not.
        """
        with other_hash_seed():
            return list(self._verified(branch, runs, on_step))

    def _verified(self, branch: str, runs: Sequence[str], on_step: OnStep) -> Iterator[Verified]:
        state = self._project.state(self._job, branch)
        of_branch = with_runs(self._job, state, branch)
        check_stored(self._job, self._tables.ledger_rows(self._job))
        self._tables.check_published(self._job, state, branch)
        chosen = [find_run(state, of_branch, name) for name in runs] or [of_branch.runs[-1]]
        check_rows(self._tables, self._job, state, branch)
        project = self._project
        for run in chosen:
            job = project.bind(self._job, run.spec.branch)
            self._tables.later_refusals(job, state).check_ledgers(branch)
            # A single worker executes all tasks, in reverse order, so that the layout differs from that of the run.
            with naming(JOB=command_words(self._job, run.spec.branch), FEED=job.feed.definition.feed):
                replay = verify(job, run, this_attempt(), project.engine_of(1), self._tables, of_branch)
                yield drive(replay, on_step)

    def _waiting(self, branch: str) -> int:
        """Return how many landings wait for the next run of a branch; 0 if the branch has no run or is sealed."""
        of = self.state.branch(branch)
        if of.head is None or of.is_sealed:
            return 0
        return len(not_taken(self._tables.feed(of.head.spec.binding.feed), of.last_epoch))

    def _lagging(self, branch: str) -> list[str]:
        return list(self._tables.lagging(self._job, self.state, branch))

    def _interrupted_backfill(self, state: JobState, base: CommittedRun | None) -> str | None:
        """Return the branch of an interrupted backfill without a name from the user; None if there is none.

        The branch starts at main's run ``base``, and its name is ``backfill-N``.
        """
        for branch in state.branches.values():
            is_live = branch.pending is not None and self._project.is_alive(branch.pending.attempt)
            is_unnamed = (
                branch.name.startswith(_BACKFILL) and whole_number(branch.name.removeprefix(_BACKFILL)) is not None
            )
            if (
                is_unnamed
                and branch.is_open
                and not branch.has_own_runs
                and not is_live
                and (branch.parent, branch.base) == (MAIN, base)
            ):
                return branch.name
        return None

    def _outdated(self, branch: str) -> list[dict[str, Any]]:
        """Return the feeds that contain rows of removed runs, as JSON values."""
        # Feeds read only the published branch.
        readers = outdated_readers(self._project.root, self._tables, self._job) if branch == MAIN else ()
        return [asdict(reader) for reader in readers]

    def _output_keys(self) -> Mapping[str, Sequence[str]]:
        job = self._project.bind(self._job)
        logs = job.code.load_logs()
        sinks = [sink for part in job.code.topology.sub_topologies() for sink in part.sinks]
        return {f"{OUTPUT}{sink.topic}": bind_sink(sink, logs)[0].names for sink in sinks if not sink.is_internal}


@contextmanager
def other_hash_seed() -> Iterator[None]:
    """If Spark starts within this block, its workers hash texts with another seed than in a run.

    If the job's code depends on the order of a set, a replay then gives other rows.
    """
    before = os.environ.get(_HASH_SEED)
    os.environ[_HASH_SEED] = OTHER_SEED
    try:
        yield
    finally:
        if before is None:
            del os.environ[_HASH_SEED]
        else:
            os.environ[_HASH_SEED] = before


def _next_name(state: JobState) -> str:
    """Return the first ``backfill-N`` that no branch has had."""
    used = {name.casefold() for name in state.branches}
    return next(name for number in count(1) if (name := f"{_BACKFILL}{number}") not in used)
