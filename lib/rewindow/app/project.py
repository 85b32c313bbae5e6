"""A project: its configuration, its warehouse and a Spark session that starts when it is first needed.

Here the protocols meet: the runner's engine is Spark, its tables are Delta.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rewindow.app.cli.progress import Watch
from rewindow.app.describe import describe_job, describe_published, describe_topology
from rewindow.app.open_session import open_session
from rewindow.app.warehouse_path import warehouse_path
from rewindow.config.feed import FeedConfig
from rewindow.config.job import JobConfig, check_outputs
from rewindow.config.load import find_project, load_feed, load_job, load_target, names_of
from rewindow.config.target import TargetConfig
from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.steps import drive
from rewindow.contracts.tasks import Execution
from rewindow.control.code_version import code_version
from rewindow.control.heartbeat import Heartbeat, is_alive, this_attempt
from rewindow.control.ingest.land import LandReport, land
from rewindow.control.ingest.landings import Feed, log_shapes
from rewindow.control.ingest.protocols import LandingEngine
from rewindow.control.load_topology import TopologyLoader
from rewindow.control.plan.explain import describe_plan
from rewindow.control.plan.planner import UpToDate, plan_run
from rewindow.control.plan.spec import MAIN, RunRequest
from rewindow.control.plan.tasks import JobCode, TablePaths, bind_job
from rewindow.control.run import Engine, Job, RunReport, first_run, steps
from rewindow.errors import ConfigError, SourceError, naming
from rewindow.streams.error_policy import check_policies
from rewindow.streams.semantics import Semantics
from rewindow.streams.settings import Limits, Settings
from rewindow.tables.delta.commit import METRICS, QUARANTINE, changelog_path, output_path, safe_name
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.governed.names import output_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindow.tables.governed.feeds import CatalogFeedTables
    from rewindow.tables.governed.warehouse import CatalogTables


class Project:
    """What a command works on."""

    def __init__(self, root: Path, target: TargetConfig, *, debug: bool = False) -> None:
        self.root = root
        self.target = target
        self._debug = debug
        self._watch: Watch | None = None
        self.warehouse = warehouse_path(root, target)
        self.tables = self._tables()

    @classmethod
    def open(cls, start: str | Path = ".", target: str = "local", *, debug: bool = False) -> Project:
        """Open the project that ``start`` lies in. Raises `ConfigError` (78) if there is none, or no such target."""
        root = find_project(Path(start).absolute())
        return cls(root, load_target(root, target), debug=debug)

    def job_config(self, job: str) -> JobConfig:
        """Return a job's configuration."""
        return load_job(self.root, job)

    def land(
        self,
        feed: str,
        *,
        until_ms: int | None = None,
        watermark_ms: int | None = None,
        new_generation: bool = False,
        keep: int | None = None,
        on_step: Callable[[str], None] | None = None,
    ) -> LandReport:
        """Land what is new of a feed."""
        config: FeedConfig = load_feed(self.root, feed)
        with naming(FEED=feed):
            return land(
                config,
                self.feed_tables,
                self._landing_engine(),
                now_ms=round(time.time() * 1000),
                until_ms=until_ms,
                watermark_ms=watermark_ms,
                new_generation=new_generation,
                keep=keep,
                on_step=on_step,
            )

    def bind(self, job: str, branch: str = MAIN) -> Job:
        """Return a job bound to its feed as it is landed. Raises `SourceError` (66) if it never was."""
        config = self.job_config(job)
        feed = self._landed(config)
        loader = TopologyLoader(job, config.topology, str(self.root))
        semantics = Semantics(**config.semantics.model_dump())
        topology = loader()
        settings = Settings(
            config.on_error, Limits(**config.limits.model_dump()), keeps_dropped=config.dropped == "quarantine"
        )
        quarantines = check_policies(topology, config.on_error) or settings.keeps_dropped
        code = JobCode(loader, partial(log_shapes, dict(feed.definition.logs)), semantics, settings)
        paths = TablePaths(
            output=partial(_output_path, config, branch, self.target.catalog),
            changelog=partial(changelog_path, job),
            metrics=METRICS,
            quarantine=QUARANTINE if quarantines else None,
        )
        binding = bind_job(job, feed, topology, code.load_logs(), asdict(semantics), paths)
        binding = replace(binding, code=code_version(topology, self.root))
        check_outputs(config, topology)
        return Job(job, code, binding, feed)

    def plan(self, job: str, request: RunRequest) -> dict[str, Any]:
        """Return what `run` would do, as plain data. Changes nothing."""
        bound = self.bind(job, request.branch)
        state, request = self.tables.state(job), _accepting(self.job_config(job), request)
        decision = plan_run(state, bound.feed, request, bound.binding, this_attempt(), self.is_alive)
        return describe_plan(state, bound.feed, decision, request.branch, bound.binding)

    def run(self, job: str, request: RunRequest, on_step: Callable[[str], None] | None = None) -> RunReport | UpToDate:
        """Make one run of a job, or find that there is nothing to do.

        The plan of an attempt that died is done again as it was: what is asked beyond it needs another call.
        """
        self._watch = on_step if isinstance(on_step, Watch) else None
        config = self.job_config(job)
        request = _accepting(config, request)
        if request.is_bounded_by_time and not self._was_landed(config.feed):
            return UpToDate(f"feed {config.feed!r} has no landings yet: `rewindow land {config.feed}` first")
        self.feed_tables.publish(config.feed)
        bound = self.bind(job, request.branch)
        attempt = this_attempt()
        with naming(JOB=job, FEED=bound.feed.definition.feed), Heartbeat(self.warehouse, attempt):
            return drive(steps(bound, request, attempt, self.engine, self.tables, self.is_alive), on_step)

    def show(self, job: str, *, branch: str = MAIN, hashes: bool = False) -> dict[str, Any]:
        """Return a job's runs, tables and metrics as plain data."""
        self.job_config(job)
        return describe_job(self.tables, job, branch=safe_name(branch, "branch"), hashes=hashes)

    def published(self, job: str, branch: str = MAIN) -> list[dict[str, Any]]:
        """Return a branch's output tables as they are: path, Delta version, and the last run with its rows and digest."""
        return describe_published(self.tables, job, branch)

    def explain(self, job: str, *, spark: bool = False) -> dict[str, Any]:
        """Return a job's topology, sources and execution modes as plain data; with Spark's plan of a first run of each part."""
        bound = self.bind(job)
        tables = {topic: self.tables.log_table(bound.feed, topic) for topic in bound.feed.definition.logs}
        described = {**describe_topology(bound, self.execution, tables), "inline": self.target.most_inline}
        if spark:
            from rewindow.engine.spark.engine import SparkEngine  # noqa: PLC0415 - Spark only where it is needed

            engine = SparkEngine(self.spark, slots=self.slots, import_paths=[str(self.root)], execution=self.execution)
            for part, work in zip(
                described["sub_topologies"], first_run(bound, this_attempt(), self.tables), strict=True
            ):
                part["spark_plan"] = engine.plan_of(work)
        return described

    def _tables(self) -> DeltaTables:
        """Return the tables of the target: committed directly, or governed by a catalog and committed through Spark."""
        if self.target.catalog is None:
            return DeltaTables(self.warehouse, reads_directly=self.target.source == "auto")
        from rewindow.tables.governed.warehouse import CatalogTables  # noqa: PLC0415 - Spark only where it is needed

        return CatalogTables(lambda: self.spark, self.target.catalog, self.warehouse)

    @cached_property
    def feed_tables(self) -> DeltaFeedTables | CatalogFeedTables:
        """The feeds' ledgers and logs."""
        if self.target.catalog is None:
            return DeltaFeedTables(self.warehouse)
        from rewindow.tables.governed.feeds import CatalogFeedTables  # noqa: PLC0415 - Spark only where it is needed

        return CatalogFeedTables(lambda: self.spark, cast("CatalogTables", self.tables))

    def _landing_engine(self) -> LandingEngine:
        """Return where `land` reads and writes: Spark, which starts when the first row is read."""
        root, tables = str(self.root), self.feed_tables
        if isinstance(tables, DeltaFeedTables):
            from rewindow.engine.spark.ingest import SparkLandingEngine  # noqa: PLC0415 - Spark only where it is needed

            return SparkLandingEngine(lambda: self.spark, project_root=root)
        from rewindow.tables.governed.ingest import CatalogLandingEngine  # noqa: PLC0415

        governed = cast("CatalogTables", self.tables)
        return CatalogLandingEngine(lambda: self.spark, tables.journal, governed.name_of, project_root=root)

    @cached_property
    def engine(self) -> Engine:
        """Where runs are made: small stages here, others by Spark, which starts when the first of those does."""
        if not self.target.most_inline:
            return self.engine_of(self.slots)
        from rewindow.engine.worker.inline import InlineEngine  # noqa: PLC0415 - loads pyarrow

        return InlineEngine(
            lambda: self.engine_of(self.slots),
            most=self.target.most_inline,
            execution=self.execution,
            on_task=self._on_task,
        )

    def engine_of(self, slots: int) -> Engine:
        """Return an engine that makes so many groups of tasks, all of them by Spark."""
        from rewindow.engine.spark.engine import SparkEngine  # noqa: PLC0415 - Spark only where it is needed

        if self.target.commit == "spark":
            from rewindow.tables.governed.engine import RowsEngine  # noqa: PLC0415

            journal_of, roots = cast("CatalogTables", self.tables).journal, [str(self.root)]
            return RowsEngine(self.spark, journal_of, slots=slots, import_paths=roots, execution=self.execution)
        return SparkEngine(
            self.spark,
            slots=slots,
            import_paths=[str(self.root)],
            execution=self.execution,
            on_share=lambda done: self._watch.share(done) if self._watch else None,
            on_task=self._on_task,
        )

    def _on_task(self, report: TaskReport) -> None:
        if self._watch:
            self._watch.task(report)

    @cached_property
    def spark(self) -> SparkSession:
        """The Spark session of the target, started at the first use."""
        return open_session(self.root, self.target, self.slots, debug=self._debug)

    def _landed(self, config: JobConfig) -> Feed:
        """Return the job's feed; where it was never landed, a name that is no feed's is told from one that is."""
        try:
            return self.tables.feed(config.feed)
        except SourceError:
            known = names_of(self.root, "feeds")
            if config.feed in known:
                raise
        message = f"conf/jobs/{config.job}.yaml: there is no feed {config.feed!r}; conf/feeds has {', '.join(known) or 'none'}"
        raise ConfigError(message)

    def _was_landed(self, feed: str) -> bool:
        """Whether a feed has a ledger. One that is asked for by time may have none yet: nothing had arrived by then."""
        if feed not in names_of(self.root, "feeds"):
            return True  # it is `bind` that says what is wrong
        try:
            self.tables.feed(feed)
        except SourceError:
            return False
        return True

    @property
    def slots(self) -> int:
        """Spark tasks at once."""
        return self.target.cores or os.cpu_count() or 1

    @property
    def execution(self) -> Execution:
        """How sub-topologies run."""
        return Execution(self.target.execution)

    @property
    def is_alive(self) -> Callable[..., bool]:
        """Says whether an attempt's process lives."""
        return partial(is_alive, self.warehouse)


def _accepting(config: JobConfig, request: RunRequest) -> RunRequest:
    """Return the request with what the job's file accepts."""
    return replace(request, accept_code=config.on_code_change == "accept")


def _output_path(config: JobConfig, branch: str, catalog: str | None, topic: str) -> str:
    output = config.outputs.get(topic)
    if output is None:
        message = f"job {config.job!r} writes {topic!r}, which conf/jobs/{config.job}.yaml does not name: add it to `outputs:`"
        raise ConfigError(message)
    if catalog is not None:
        return output_name(output.table, branch, catalog.partition(".")[0])
    return output_path(output.table, branch)
