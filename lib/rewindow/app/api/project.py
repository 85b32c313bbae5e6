"""A project for Python code and notebooks. Its methods do what the commands of `rewindow` do."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import date
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from rewindow.app.api.calls import Context, show_briefly, with_new_workers
from rewindow.app.api.results import (
    Diff,
    Job,
    JobReport,
    Listing,
    Outcome,
    Verification,
    described_job,
    outcome_of_landing,
)
from rewindow.app.api.rows import Output, State, output_source, store_source
from rewindow.app.api.runs import Backfill, Run, Runs, result_of, results_of, runs_of
from rewindow.app.branches import JobBranches
from rewindow.app.describe_topology import explain_job
from rewindow.app.listing import job_entry, list_feeds, list_jobs
from rewindow.app.open_project import OpenProject
from rewindow.app.output_rows import find_outputs
from rewindow.app.publishing import publish, published_lines
from rewindow.app.report import Wanted, report
from rewindow.app.result_lines import promoted_lines
from rewindow.app.times import parse_through, parse_time
from rewindow.config.load import find_project, load_target
from rewindow.control.plan.explain import explain
from rewindow.control.plan.spec import MAIN
from rewindow.errors import RewindowError
from rewindow.tables.shared.paths import safe_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Time = str | date
"""A point in time: ISO 8601 text or a `datetime`, which is in UTC if it has no time zone."""
RunName = int | str
"""A run: its number in the branch, or its name, such as ``main/3``."""


class Project:
    """A project folder, opened with one target.

    Each method does what the command of the same name does: `rewindow run JOB --land` is ``project.run(job, land=True)``. A
    method that fails raises a `RewindowError` with the ``exit_code`` of the command. Each call reads the project's files and code
    as they are at the time of the call.
    """

    def __init__(self, project: OpenProject, target: str, *, debug: bool) -> None:
        self._context = Context(project, debug=debug)
        self.root = project.root
        """The project's folder."""
        self.target = target
        """The name of the target."""
        self.warehouse = project.warehouse
        """The folder or URI of all tables."""

    @classmethod
    def load(cls, path: str | PathLike[str] = ".", *, target: str = "local", debug: bool = False) -> Project:
        """Open the project that contains a folder. Reads only the file of the target, and does not start Spark.

        ``debug``: show the JVM's log, and stack traces in notebooks. Raises `ConfigError` (78) if there is no project or no such
        target.
        """
        try:
            root = find_project(Path(path).absolute())
            project = OpenProject(root, with_new_workers(load_target(root, target)), debug=debug)
        except RewindowError as error:
            if not debug:
                show_briefly(error)
            raise
        return cls(project, target, debug=debug)

    @property
    def feeds(self) -> Listing:
        """The feeds of the project, each with a status that says whether its sources have new rows."""
        with self._context.command() as (project, _):
            return Listing(list_feeds(project))

    @property
    def jobs(self) -> Listing:
        """The jobs with their branches and the status of each, as `rewindow ls` shows them."""
        with self._context.command() as (project, _):
            return Listing(list_jobs(project))

    @property
    def spark(self) -> SparkSession:
        """The Spark session of the target, which is started on first use."""
        with self._context.command() as (project, _):
            return project.spark

    def job(self, name: str) -> Job:
        """Return a job as its files and code are now, with its topology."""
        with self._context.command() as (project, _):
            tables = {topic: output.table for topic, output in project.job_config(name).outputs.items()}
            return described_job(job_entry(project, name), tables, explain_job(project, name))

    def land(
        self,
        feed: str,
        *,
        until: Time | None = None,
        watermark: Time | None = None,
        new_generation: bool = False,
        keep: int | None = None,
    ) -> Outcome:
        """Land the new rows of a feed's sources.

        ``until``: land only complete intervals of arrival up to this time. ``watermark``: declare the log complete through this
        event time. ``new_generation``: land again under the feed's current definition. ``keep``: how many of the first landings
        the new generation keeps.
        """
        with self._context.command() as (project, watch):
            landed = project.land(
                feed,
                until_ms=parse_time(_text(until)),
                watermark_ms=parse_time(_text(watermark)),
                new_generation=new_generation,
                keep=keep,
                on_step=watch,
            )
            return outcome_of_landing(feed, landed)

    def plan(
        self,
        job: str,
        *,
        through: int | Time | None = None,
        until: Time | None = None,
        branch: str = MAIN,
        final: bool = False,
    ) -> Outcome:
        """Return what `run` would do and why. Changes nothing. Raises every error that `run` would raise before it executes."""
        with self._context.command() as (project, _):
            planned = project.plan(job, parse_through(_text(through), _text(until), branch=branch, final=final))
            return Outcome(planned, tuple(explain(planned)))

    def run(
        self,
        job: str,
        *,
        land: bool = False,
        through: int | Time | None = None,
        until: Time | None = None,
        branch: str = MAIN,
        final: bool = False,
        replan: bool = False,
        drop_buffered: bool = False,
        accept_changes: bool = False,
        takeover: bool = False,
    ) -> Run:
        """Replay the new landings of a job in one run and return that run. Without new landings, return the branch's last run.

        ``land``: land the job's feed first. ``through``: stop after this landing, or at this event time. ``until``: replay only
        complete intervals of arrival up to this time. ``final``: close every window, and seal the branch, so that it gets no
        more runs. ``replan``: discard the plan of an attempt that did not finish. ``drop_buffered``: discard the records of a
        removed suppress. ``accept_changes``: resume from a checkpoint of different code if its stores are compatible.
        ``takeover``: fence an attempt that is still running.
        """
        with self._context.command() as (project, watch):
            landed = None
            if land:
                feed = project.job_config(job).feed
                report = project.land(feed, until_ms=parse_time(_text(until)), on_step=watch)
                landed = outcome_of_landing(feed, report)
            request = parse_through(
                _text(through),
                _text(until),
                branch=branch,
                final=final,
                replan=replan,
                drop_buffered=drop_buffered,
                accept_changes=accept_changes,
                take_over=takeover,
            )
            results = project.run_to_the_end(job, request, watch)
            run = result_of(self._context, job, project.tables.state(job).branch(branch), results)
            return replace(run, landed=landed)

    def runs(self, job: str, *, branch: str = MAIN) -> Runs:
        """Return the committed runs of a branch, the oldest first."""
        with self._context.command() as (project, _):
            project.job_config(job)
            return runs_of(self._context, project.state(job).branch(safe_name(branch, "branch")))

    def output(self, name: str, *, branch: str = MAIN, run: RunName | None = None) -> Output:
        """Return the rows of an output as of a run, by default the branch's last published run.

        ``name``: the output's topic or table, or a job that has only one output. Raises `UsageError` (2) for an unknown output or
        run.
        """
        with self._context.command() as (project, _):
            config, topics = find_outputs(project, name)
            topic = topics[0] if len(topics) == 1 else None
            return Output(output_source(project, config.job, topic, branch=branch, run=_text(run)), self._context)

    def state(self, job: str, store: str, *, branch: str = MAIN, run: RunName | None = None) -> State:
        """Return the entries of a store as of a run, by default the branch's last run.

        Raises `UsageError` (2) for an unknown store or run, `CheckpointError` (76) if `gc` has deleted the state after the run.
        """
        with self._context.command() as (project, _):
            return State(store_source(project, job, store, branch=branch, run=_text(run)), self._context)

    def backfill(
        self,
        job: str,
        start: int | Time,
        *,
        end: int | Time | None = None,
        branch: str | None = None,
        accept_changes: bool = False,
    ) -> Backfill:
        """Replay history on a branch with its own tables. Published tables do not change until `promote`.

        ``start`` and ``end`` are each an event time, the number of a landing, or a run (``main/3``). The start is rounded down
        to the start of a run. By default, the end is the end of main. ``branch``: the branch to create, or to continue if it
        exists; default ``backfill-N``.
        """
        with self._context.command() as (project, watch):
            branches = JobBranches(project, job)
            start, end = _text(start) or "", _text(end)
            done = branches.backfill(start, end, branch, watch, accept_changes=accept_changes)
            runs = results_of(self._context, job, branches.state.branch(done.branch), done.results)
            replaced = tuple(done.replaced)
            return Backfill(job, done.branch, done.stands_on, done.first_epoch, replaced, done.continues, runs)

    def diff(self, job: str, branch: str, *, against: str = MAIN, samples: int = 5) -> Diff:
        """Compare the outputs of a branch with those of the branch ``against``, key by key.

        ``samples``: the maximum number of differing keys to return for each output. Raises `UsageError` (2) for a branch without
        runs, `StorageError` (74) if a table was altered outside rewindow.
        """
        with self._context.command() as (project, _):
            branches = JobBranches(project, job)
            compared = branches.diff(against, branch, samples)
            code = branches.code_changes(against, branch) if compared.differs else ()
            return Diff(job, compared, tuple(code))

    def promote(self, job: str, branch: str, *, into: str = MAIN) -> Outcome:
        """Run a branch up to the last epoch of ``into``, then publish it in place of ``into``, in one commit per table."""
        with self._context.command() as (project, watch):
            done = JobBranches(project, job).promote(branch, into, watch)
            return Outcome(done, tuple(promoted_lines(job, done)))

    def publish(self, job: str, *, accept: bool = False, run: RunName | None = None, branch: str = MAIN) -> Outcome:
        """Publish the committed runs of a branch.

        ``accept``: also publish a run on hold. ``run``: which run on hold; may be omitted if there is only one. In the result,
        ``on_hold`` lists the runs that are still on hold.
        """
        with self._context.command() as (project, watch):
            done = publish(project, job, branch, accepts=accept, run=_text(run), on_step=watch)
            return Outcome(asdict(done), tuple(published_lines(job, done)))

    def verify(self, job: str, *runs: RunName, branch: str = MAIN) -> Verification:
        """Replay committed runs, by default the last one, in a different layout on Spark, and compare every row.

        Code that depends on the order of a set may go unnoticed if this process had already started Spark. Spark's workers then
        hash texts as in a run. The command `rewindow verify` starts Spark with another hash seed.
        """
        with self._context.command() as (project, watch):
            return Verification(job, tuple(JobBranches(project, job).verify(branch, list(map(str, runs)), watch)))

    def report(
        self,
        job: str,
        *,
        run: RunName | None = None,
        since: RunName | Time | None = None,
        diff: str | None = None,
        verify: bool = False,
        branch: str = MAIN,
    ) -> JobReport:
        """Return the report on a job's runs.

        ``run``: report on this run only. ``since``: report on the runs since this run, or committed since this time. ``diff``:
        also compare the outputs with those of this branch. ``verify``: also replay the last run and compare every row.
        """
        wanted = Wanted(branch, _text(run), _text(since), diff, verify)
        with self._context.command() as (project, _):
            return JobReport(report(project, job, wanted))

    def __repr__(self) -> str:
        return f"<Project {self.root}, target {self.target}>"


def _text(value: int | Time | None) -> str | None:
    """Return a value as text in the form that the command line accepts."""
    if value is None:
        return None
    return value.isoformat() if isinstance(value, date) else str(value)
