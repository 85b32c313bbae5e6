"""A project: its configuration, its warehouse, and a Spark session that starts on first use.

This module connects the protocols of `control` to their implementations in `engine` and `tables`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewindow.app.open_target import (
    Setting,
    open_adapter,
    open_session,
    output_location,
    starting_spark,
    warehouse_location,
)
from rewindow.app.telemetry.command_facts import LAND, RUN
from rewindow.app.telemetry.telemetry import Observed, OnStep, telemetry_of
from rewindow.app.version import check_own_code
from rewindow.config.load import check_feed_exists, find_project, load_feed, load_job, load_target, names_of
from rewindow.contracts.tasks import Execution
from rewindow.control.plan.spec import MAIN, RunRequest, TableSpec
from rewindow.errors import ConfigError, HintMessage, SourceError, naming
from rewindow.storage.progress import progressed
from rewindow.tables.shared.publications import unknown_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindow.app.telemetry.gather_command_facts import Gatherer
    from rewindow.app.watch import Watch
    from rewindow.config.job import JobConfig
    from rewindow.config.target import TargetConfig
    from rewindow.contracts.staged_files import TaskReport
    from rewindow.control.ingest.landing_report import LandReport
    from rewindow.control.ingest.landings import Feed
    from rewindow.control.plan.job_state import JobState
    from rewindow.control.plan.planner import UpToDate
    from rewindow.control.run import Engine, Job, RunReport
    from rewindow.tables.delta.feeds import DeltaFeedTables
    from rewindow.tables.governed.feeds import CatalogFeedTables


_CLEANED_EVERY = 24
"""A run cleans up after every this many runs of a branch. For an hourly job, this is once a day."""


class OpenProject:
    """A project folder, opened with one target: its tables, engines and Spark session, and the commands that need all of them.

    The command line prints what these methods return. `rewindow.Project` returns it as values that a notebook displays.
    """

    def __init__(self, root: Path, target: TargetConfig, *, debug: bool = False) -> None:
        self.root, self.target, self._debug = root, target, debug
        self._watch: Watch | None = None
        self._done = 0.0
        self._why_spark: list[str] = []
        self.warehouse = warehouse_location(root, target)
        setting = Setting(target, str(root), self._on_share, self._on_task, self._why_spark.append)
        self.adapter, self._engines = open_adapter(setting, self.warehouse, lambda: self.spark)
        self.tables = self.adapter.tables
        self.telemetry = telemetry_of(root, target.target)

    @classmethod
    def open(cls, start: str | Path = ".", target: str = "local", *, debug: bool = False) -> OpenProject:
        """Open the project that contains ``start``. Raises `ConfigError` (78) if there is no project or no such target."""
        root = find_project(Path(start).absolute())
        check_own_code(root)
        return cls(root, load_target(root, target), debug=debug)

    def job_config(self, job: str) -> JobConfig:
        """Return a job's configuration."""
        return load_job(self.root, job)

    def state(self, job: str, *branches: str) -> JobState:
        """Return the state of a job from its ledger.

        Raises `CheckpointError` (76) if the ledger has no rows of the job although tables do. Also raises it if the tables of
        ``branches`` have publications that the ledger lacks.
        """
        state = self.tables.state(job)
        for branch in branches:
            self.tables.check_ledger(job, state, branch)
        if not state.rows:
            # `run` refuses an output that belongs to another job (78). Commands that only read still show the job.
            with suppress(ConfigError):
                for path in self.tables.unknown_tables(job, state, self.outputs_of(job)):
                    table = self.tables.location_of(TableSpec(path, ()))
                    raise unknown_rows(
                        table, job, fix=f"start over, which empties the job's tables: `rewindow reset {job}`"
                    )
        return state

    def outputs_of(self, job: str) -> list[str]:
        """Return the paths of the output tables that the job declares, on its main branch."""
        config = self.job_config(job)
        return [output_location(config, MAIN, self.target.catalog, topic) for topic in config.outputs]

    def land(
        self,
        feed: str,
        *,
        until_ms: int | None = None,
        watermark_ms: int | None = None,
        new_generation: bool = False,
        keep: int | None = None,
        on_step: OnStep = None,
    ) -> LandReport:
        """Land the new rows of a feed."""
        from rewindow.app.feed_landing import extractor_versions, naming_kept, naming_unlikely_columns
        from rewindow.control.ingest.land import land

        self._observe(on_step)
        with self.telemetry.operation(LAND, feed) as observed, naming(FEED=feed):
            config = load_feed(self.root, feed)
            # A command reads the ledger only once, and does not read rows that it appended itself.
            with self.tables.command(feed=feed):
                with naming_kept(self.tables, config):
                    observed.planned(lambda: self.gatherer.landing_planned(feed))
                    report = land(
                        config,
                        self.feed_tables,
                        self._engines.landing(lambda: self.spark, self.slots),
                        now_ms=round(time.time() * 1000),
                        until_ms=until_ms,
                        watermark_ms=watermark_ms,
                        new_generation=new_generation,
                        keep=keep,
                        extractors=extractor_versions(config, self.root),
                        stalled_ms=self.target.stalled_ms,
                        on_step=observed.watching(on_step),
                    )
                    observed.done(lambda: self.gatherer.landing_done(report))
                return naming_unlikely_columns(report, self.tables, config, str(self.root))

    def bind(self, job: str, branch: str = MAIN) -> Job:
        """Return a job bound to its landed feed.

        If the feed was never landed, checks the job's code against the feed's sources and then raises `SourceError` (66).
        """
        config = self.job_config(job)
        try:
            feed = self._landed(config)
        except SourceError as error:
            self.bind_to_sources(job, branch)
            error.surrounded(after=". The job's code fits the columns that the sources have now")
            raise
        return self._bound(config, feed, branch)

    def bind_to_sources(self, job: str, branch: str = MAIN) -> Job:
        """Return a job whose feed was never landed, bound to the columns that the feed's sources have now."""
        from rewindow.app.feed_landing import expected_feed

        config = self.job_config(job)
        feed = expected_feed(
            load_feed(self.root, config.feed),
            self.feed_tables.look,
            project_root=str(self.root),
            warehouse=self.warehouse,
        )
        return self._bound(config, feed, branch)

    def _bound(self, config: JobConfig, feed: Feed, branch: str) -> Job:
        from rewindow.app.bind_job import bind_to_feed

        return bind_to_feed(self.root, self.target, config, feed, branch)

    def as_configured(self, job: str, request: RunRequest) -> RunRequest:
        """Return the request with the rules of the job's file: whether to accept changed code, and the landings per run."""
        config = self.job_config(job)
        return replace(request, accept_code=config.on_code_change == "accept", at_most=config.landings_per_run)

    def plan(self, job: str, request: RunRequest) -> dict[str, Any]:
        """Return what `run` would do, as JSON values. Changes nothing.

        Raises all errors that `run` would raise before it executes.
        """
        from rewindow.app.branch_status import after_last_run, next_run
        from rewindow.control.health.phrases import Command
        from rewindow.control.plan.explain import describe_plan
        from rewindow.control.plan.undeclared_types import undeclared_types

        bound = self.bind(job, request.branch)
        state, request = self.tables.state(job), self.as_configured(job, request)
        decided = next_run(self.tables, bound, state, request, self.is_alive)
        described = describe_plan(state, bound.feed, decided, request.branch, bound.binding)
        branch, again = state.branch(request.branch), Command(job, self.target.target, request.branch)("run")
        left = after_last_run(self.root, self.tables, branch, bound.feed, again)
        hints = list(undeclared_types(bound.code.topology, branch.head.spec.binding if branch.head else None))
        return {
            **described,
            **left,
            "undeclared": hints,
            "undeclared_codes": [hint.code for hint in hints],
            "unaligned_schedules": bound.unaligned_schedules,
            "lagging": dict(self.tables.lagging(job, state, request.branch)),
        }

    def run(self, job: str, request: RunRequest, on_step: OnStep = None) -> RunReport | UpToDate:
        """Execute one run of a job, or return `UpToDate` if there is nothing to do.

        If an unfinished attempt left a plan, this call only completes that plan. Another call must then execute the request.
        """
        self._observe(on_step)
        with self.telemetry.operation(RUN, job, request.branch) as observed:
            config, request = self.job_config(job), self.as_configured(job, request)
            with self.tables.command(feed=config.feed, job=job):
                done = self._run(job, config, request, on_step, observed)
            return self._cleaned(done)

    def _cleaned(self, done: RunReport | UpToDate) -> RunReport | UpToDate:
        """Clean up after every `_CLEANED_EVERY` runs of a branch.

        In a catalog, only `gc` cleans up, because each step is a Spark job.
        """
        from rewindow.control.run import RunReport

        if not isinstance(done, RunReport) or done.spec.number % _CLEANED_EVERY or self.target.catalog is not None:
            return done
        from rewindow.app.clean_up import clean_up

        return clean_up(self.adapter, self.root, self.warehouse, done, self.target.keep_ms, self.is_alive)

    def run_to_the_end(self, job: str, request: RunRequest, on_step: OnStep = None) -> list[RunReport | UpToDate]:
        """Execute all runs that a request needs and return their results. The last result is that of the request itself.

        The unchanged plan of an unfinished attempt is completed first. It may end before the epochs of the request. The job's
        file may limit the landings of one run, so that a process that is killed loses the work on at most so many landings.
        """
        from rewindow.control.run import RunReport

        results = [self.run(job, request, on_step)]
        while isinstance(done := results[-1], RunReport) and (done.left or done.spec.takes_over is not None):
            results.append(self.run(job, request, on_step))
        return results

    def _run(
        self, job: str, config: JobConfig, request: RunRequest, on_step: OnStep, observed: Observed
    ) -> RunReport | UpToDate:
        from rewindow.control.health.run_hints import hints
        from rewindow.control.heartbeat import Heartbeat, this_attempt
        from rewindow.control.ledger_steps import drive
        from rewindow.control.plan.compatibility import check_landings_now
        from rewindow.control.plan.planner import UpToDate, never_landed
        from rewindow.control.plan.undeclared_types import undeclared_types
        from rewindow.control.run import steps

        if request.is_bounded_by_time and not self.was_landed(config.feed):
            nothing = UpToDate(never_landed(config.feed).followed(self._lands_next(config.feed)))
            observed.done(lambda: self.gatherer.run_skipped(nothing))
            return nothing
        self.feed_tables.publish(config.feed)
        bound = self.bind(job, request.branch)
        observed.planned(lambda: self.gatherer.run_planned(bound))
        state, attempt = self.tables.state(job), this_attempt()
        before = state.branch(request.branch)
        if request.through_landing is None:
            check_landings_now(before, bound.feed, self.tables.feed)
        pending = before.pending
        if self._watch and pending:
            from rewindow.app.branch_status import killed_hint

            if killed := killed_hint(self.warehouse, pending):
                self._watch.say(f"{killed}.")
        from rewindow.control.health.phrases import command_words

        with (
            naming(JOB=command_words(job, request.branch), FEED=bound.feed.definition.feed),
            Heartbeat(self.warehouse, attempt, self.target.stalled_ms),
        ):
            machine = steps(bound, request, attempt, self.engine, self.tables, self.is_alive)
            done = drive(machine, observed.watching(on_step))
        observed.done(lambda: self.gatherer.run_done(bound, done))
        if isinstance(done, UpToDate):
            from rewindow.app.branch_status import with_all_reasons

            return with_all_reasons(self.root, self.tables, bound, request, done)
        undeclared = undeclared_types(bound.code.topology, before.head.spec.binding if before.head else None)
        found = tuple(hints(bound, done))
        # If an output got no rows, its hint already says what its results wait for.
        if {hint.code for hint in found}.isdisjoint(("results-wait", "windows-still-open")):
            found = (*found, *self._waiting(bound.feed, done))
        return replace(done, hints=(*undeclared, *found))

    def _waiting(self, feed: Feed, done: RunReport) -> Iterator[HintMessage]:
        """Yield a hint if, after a run, results wait for partitions without records."""
        from rewindow.app.feed_rules import rules_of
        from rewindow.control.health.inputs import Inputs, Unknown
        from rewindow.control.health.waiting_results import stalled

        branch = done.branch
        if branch is None or branch.head is None:
            return
        reports = {branch.head.spec.run: done.reports}
        waiting = stalled(
            Inputs(branch, feed, [branch.head], partial(rules_of, self.root, feed.definition.feed), reports)
        )
        for result in () if isinstance(waiting, Unknown) else waiting:
            yield HintMessage("run-leaves-results-waiting", "{waiting}. {fix}", waiting=result.what, fix=result.fix)

    @cached_property
    def gatherer(self) -> Gatherer:
        """The gatherer of facts for telemetry. Its module is loaded only if there is an observer."""
        from rewindow.app.telemetry.gather_command_facts import Gatherer, Locator

        return Gatherer(Locator(self.root, self.target, self.warehouse, self.tables))

    @property
    def feed_tables(self) -> DeltaFeedTables | CatalogFeedTables:
        """The ledgers and logs of the feeds."""
        return self.adapter.feeds

    @cached_property
    def engine(self) -> Engine:
        """The engine of runs. It executes small sub-topologies in this process, and starts Spark for the first large one."""
        spark = partial(self.engine_of, self.slots)
        return self._engines.inline(spark) if self.target.most_inline else spark()

    def engine_of(self, slots: int) -> Engine:
        """Return an engine that executes everything on Spark, with tasks in ``slots`` groups."""
        return self._engines.on_spark(self.spark, slots)

    def _observe(self, on_step: OnStep) -> None:
        from rewindow.app.watch import Watch

        self._watch = on_step if isinstance(on_step, Watch) else None

    def _on_share(self, done: float) -> None:
        # Spark's progress is polled again and again, even if no task has finished since.
        if done != self._done:
            self._done = done
            progressed()
        if self._watch:
            self._watch.share(done)

    def _on_task(self, report: TaskReport) -> None:
        progressed()
        self.telemetry.task(report)
        if self._watch:
            self._watch.task(report)

    @cached_property
    def spark(self) -> SparkSession:
        """The Spark session of the target, started on first use."""
        if self._watch:
            self._watch.say(starting_spark(self.target, [*self._engines.needs, *self._why_spark]))
        return open_session(self.root, self.target, self.slots, begin=self._engines.begin, debug=self._debug)

    def _landed(self, config: JobConfig) -> Feed:
        """Return the job's feed.

        Raises `ConfigError` (78) for an unknown feed, `SourceError` (66) for a feed that was never landed.
        """
        try:
            return self.tables.feed(config.feed)
        except SourceError as error:
            check_feed_exists(self.root, config)
            error.surrounded(after=self._lands_next(config.feed))
            raise

    def _lands_next(self, feed: str) -> str:
        from rewindow.app.feed_landing import lands_next

        return lands_next(load_feed(self.root, feed), project_root=str(self.root), warehouse=self.warehouse)

    def was_landed(self, feed: str) -> bool:
        """Return whether a feed was ever landed.

        Also return true for an unknown feed, because `bind` then raises the error.
        """
        try:
            return feed not in names_of(self.root, "feeds") or bool(self.tables.feed(feed))
        except SourceError:
            return False

    @property
    def slots(self) -> int:
        """Number of concurrent Spark tasks."""
        return self.target.cores or os.cpu_count() or 1

    @property
    def execution(self) -> Execution:
        """Execution mode of sub-topologies."""
        return Execution(self.target.execution)

    @property
    def is_alive(self) -> Callable[..., bool]:
        """The function that returns whether an attempt's process is alive."""
        from rewindow.control.heartbeat import is_alive

        return partial(is_alive, self.warehouse)
