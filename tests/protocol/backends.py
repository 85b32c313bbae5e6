"""The two ways to commit, files directly and rows through Spark, each with its tables, engines, names and ledgers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from rewindow.config.feed import FeedConfig, feed_spec
from rewindow.contracts.landing_protocol import LandingEngine
from rewindow.contracts.tasks import Execution, JobCode
from rewindow.control.drift_repair import RepublishRequest, republish
from rewindow.control.garbage_collection import collect
from rewindow.control.ingest.land import steps as landing_steps
from rewindow.control.ingest.landings import LANDING, log_shapes
from rewindow.control.ingest.protocols import LandingTables, LandRequest
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.planned_tasks import TablePaths, bind_job
from rewindow.control.plan.retention import EVERY
from rewindow.control.plan.spec import Attempt, RunRequest
from rewindow.control.run import Engine, Job, Steps, steps
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.streams.settings import Semantics
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_access import FileAdapter
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.governed.feeds import CatalogFeedTables
from rewindow.tables.governed.inline_engine import CatalogInlineEngine
from rewindow.tables.governed.landing_engine import CatalogArrowEngine, CatalogLandingEngine
from rewindow.tables.governed.ledger import SparkLedger
from rewindow.tables.governed.names import output_name
from rewindow.tables.governed.rows_engine import RowsEngine
from rewindow.tables.governed.table_access import CatalogAdapter
from rewindow.tables.governed.warehouse import CatalogTables
from rewindow.tables.shared.ledger import now_ms
from rewindow.tables.shared.paths import (
    EXPECTATIONS,
    LANDINGS,
    METRICS,
    QUARANTINE,
    changelog_path,
    log_path,
    output_path,
)
from tests.conftest import ROOT
from tests.crash import scene
from tests.ingest.local_engine import LocalEngine as LocalLandingEngine

SEED = 3
"""The scene of the tests in this folder."""
_numbers = count()


@dataclass
class Backend:
    """One way to commit. Each call of ``tables`` opens the tables again."""

    root: Path
    tables: Callable[[], Any]  # the tables of one of the two adapters, which have methods of their own, too
    engine_of: Callable[[Any], Engine]
    adapter_of: Callable[[Any], FileAdapter | CatalogAdapter]
    output: Callable[[str, str], str]
    ledger: Callable[[str], Ledger | SparkLedger]
    feeds: Callable[[], tuple[LandingTables, DeltaTables | CatalogTables]]
    """Returns the tables of feeds, and those of jobs that they share a warehouse with."""
    landing_engine_of: Callable[[Any], Any]
    rows_of: Callable[[str], pa.Table]
    """Returns the rows of a feed's log, or of the quarantine if the name is empty."""

    def job(self, branch: str, *, expects: bool = False) -> Job:
        """Return the job bound to a branch's tables. ``expects``: every run that adds rows to `hourly` is on hold."""
        tables = self.tables()
        feed = tables.feed(scene.FEED)
        code = JobCode(scene.topology, partial(log_shapes, dict(feed.definition.logs)), Semantics())
        paths = TablePaths(
            output=lambda topic: self.output(topic, branch),
            changelog=partial(changelog_path, scene.JOB),
            metrics=METRICS,
            expectations=EXPECTATIONS if expects else None,
        )
        binding = bind_job(scene.JOB, feed, scene.topology(), code.load_logs(), asdict(code.semantics), paths)
        return Job(scene.JOB, code, binding, feed, scene.hourly_expectations(binding) if expects else None)

    def running(
        self, branch: str, through: int | None = None, *, expects: bool = False, snapshot_every: int = EVERY
    ) -> Steps:
        """Return the steps of one run, by a new attempt that opens the tables again, as a command does."""
        request, tables = RunRequest(branch=branch, through_landing=through), self.tables()
        job, engine = self.job(branch, expects=expects), self.engine_of(tables)
        with tables.command(feed=scene.FEED, job=scene.JOB):
            return (
                yield from steps(
                    job,
                    request,
                    scene.attempt(),
                    engine,
                    tables,
                    lambda _attempt: False,
                    snapshot_every=snapshot_every,
                )
            )

    def run(self, branch: str, *throughs: int, expects: bool = False, snapshot_every: int = EVERY) -> dict[str, str]:
        """Run up to each landing. Return the content hashes of the outputs."""
        for through in throughs:
            drive(self.running(branch, through, expects=expects, snapshot_every=snapshot_every))
        return self.outputs(branch)

    def republishing(self, branch: str, *targets: str) -> Iterator[str]:
        """Return the steps of `republish`, by a process that opens the tables again."""
        tables = self.tables()
        asked, engine = RepublishRequest(branch, targets), self.engine_of(tables)
        return republish(self.job(branch), asked, scene.attempt, engine, tables, self.adapter_of(tables).repair())

    def collecting(self, *, keep_ms: int = 0, every: int = EVERY, is_alive: bool = False) -> Iterator[str]:
        """Return the steps of `gc` of the job, by a process that opens the tables again.

        ``is_alive``: other attempts count as alive.
        """
        tables = self.tables()
        gc, before_ms = self.adapter_of(tables).job_gc(scene.JOB, lambda _attempt: is_alive), now_ms() - keep_ms
        return collect(scene.JOB, tables, gc, before_ms=before_ms, keep_ms=keep_ms, every=every)

    def outputs(self, branch: str) -> dict[str, str]:
        """Return the content hashes of the output tables."""
        found = self.tables().hashes(scene.JOB, branch)
        return {target: digest for target, digest in found.items() if target.startswith("output/")}

    def landing(self, config: FeedConfig, now_ms: int, **asked: Any) -> Any:
        """Return the steps of one `land` by a new attempt. All earlier attempts count as dead."""
        tables, jobs = self.feeds()
        spec = feed_spec(config, project_root=str(self.root), warehouse=tables.warehouse)
        who, engine = Attempt(uuid4().hex, "here", os.getpid(), 1), self.landing_engine_of(tables)
        with jobs.command(feed=spec.feed):
            return (yield from landing_steps(spec, tables, engine, LandRequest(now_ms, **asked), who, lambda _: False))

    def landed(self, feed: str) -> dict[str, Any]:
        """Return everything landed for a feed, except the attempts: landings, log, quarantine."""
        names = ("landing", "generation", "watermark", "interval", "counts", "ranges", "time")
        ledger = self.feeds()[0].state(feed)
        return {
            "landings": [{name: row.body[name] for name in names} for row in ledger if row.kind == LANDING],
            "log": _sorted(self.rows_of(feed)),
            "quarantine": [row | {"name": ""} for row in _sorted(self.rows_of("")) if row["name"] == feed],
        }

    def land_scene(self, seed: int, *, through: int = scene.LANDINGS) -> None:
        """Land the epochs of the crash tests' scene, each with its own watermark."""
        for number in range(1, through + 1):
            drive(self.landing_of_scene(seed, number))

    def landing_of_scene(self, seed: int, number: int) -> Any:
        """Write the records of an epoch of the scene; return the steps of its landing."""
        epoch = scene.epochs(seed)[number - 1]
        rows = [{"key": key, "value": value, "t": time} for _, key, value, time in epoch.records]
        file_path = self.root / "scene" / f"{number}.parquet"
        file_path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, _SCENE_SCHEMA), file_path)
        return self.landing(_SCENE, number, watermark_ms=epoch.watermark_ms)


_SCENE_SCHEMA = pa.schema({"key": pa.string(), "value": pa.int64(), "t": pa.int64()})
_SCENE = FeedConfig.model_validate(
    {
        "feed": scene.FEED,
        "partitions": scene.PARTITIONS,
        "landing": {"max_ahead": "none"},
        "logs": {
            scene.TOPIC: {
                "source": {"path": "scene", "format": "parquet"},
                "key": "key",
                "value": "value",
                "timestamp": "t",
            }
        },
    }
)


def direct(root: Path) -> Backend:
    """Return the backend of files below a folder."""
    warehouse = str(root)

    def rows_of(feed: str) -> pa.Table:
        path = table_path(warehouse, log_path(feed, scene.TOPIC) if feed else QUARANTINE)
        return read_rows(path)

    return Backend(
        root,
        lambda: DeltaTables(warehouse),
        lambda _tables: LocalEngine(),
        FileAdapter,
        lambda topic, branch: output_path(f"out.{topic}", branch),
        lambda name: Ledger(f"{warehouse}/{LANDINGS}", name),
        lambda: (DeltaFeedTables(warehouse), DeltaTables(warehouse)),
        lambda _tables: LocalLandingEngine(root),
        rows_of,
    )


def through_spark(spark: SparkSession, root: Path, *, most_here: int) -> Backend:
    """Return the backend of a catalog whose schemas are below a folder.

    ``most_here``: the records of the largest sub-topology and landing that the process of the command executes itself.
    """
    home = f"spark_catalog.protocol_{next(_numbers)}"
    for schema in (home, f"{home}_out"):
        spark.sql(f"CREATE SCHEMA {schema} LOCATION '{root / schema}'")
    return of_catalog(spark, root, home, most_here=most_here)


def of_catalog(spark: SparkSession, root: Path, home: str, *, most_here: int) -> Backend:
    """Return the backend of two existing schemas of a catalog: ``home``, and ``home`` with ``_out`` for outputs."""
    tables = partial(CatalogTables, lambda: spark, home, str(root))

    def feeds() -> tuple[LandingTables, CatalogTables]:
        jobs = tables()
        return CatalogFeedTables(lambda: spark, jobs), jobs

    def engine_of(jobs: CatalogTables) -> Engine:
        rows = RowsEngine(spark, jobs.journal, slots=2, import_paths=[str(ROOT)], execution=Execution.AUTO)
        return CatalogInlineEngine(lambda: rows, jobs, most=most_here) if most_here else rows

    def landing_engine_of(landings: CatalogFeedTables) -> LandingEngine:
        rows = CatalogLandingEngine(lambda: spark, landings.journal, landings.name_of, project_root=str(root))
        return CatalogArrowEngine(rows, landings.journal, most_rows=most_here) if most_here else rows

    def rows_of(feed: str) -> pa.Table:
        name = tables().log_name(feed, scene.TOPIC) if feed else tables().name_of(QUARANTINE)
        return spark.table(name.quoted).toArrow()

    return Backend(
        root,
        tables,
        engine_of,
        partial(CatalogAdapter, lambda: spark),
        lambda topic, branch: output_name(f"{home}_out.{topic}", branch, "spark_catalog"),
        tables().own.ledger,
        feeds,
        landing_engine_of,
        rows_of,
    )


def _sorted(rows: pa.Table) -> list[dict[str, Any]]:
    found = rows.select(sorted(rows.column_names)).to_pylist()
    return sorted(found, key=lambda row: [(entry is not None, entry) for entry in row.values()])
