"""A small warehouse for each seed: random records in a few epochs, and a job of two sub-topologies."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from typing import NoReturn
from uuid import uuid4

import pyarrow as pa

from rewindow import Count, StreamsBuilder, TimeWindows, Topology, until_window_closes
from rewindow.app.job_expectations import JobExpectations, OutputExpectations
from rewindow.config.feed import feed_spec
from rewindow.contracts.expectations import Expectation, Kind, OnFail
from rewindow.contracts.tasks import JobCode
from rewindow.control.ingest.land import steps as landing_steps
from rewindow.control.ingest.landings import log_shapes
from rewindow.control.ingest.protocols import LandRequest
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.planned_tasks import TablePaths, bind_job
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import MAIN, Attempt, JobBinding, RunRequest
from rewindow.control.run import Engine, Job, steps
from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.streams.settings import Semantics
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import EXPECTATIONS, METRICS, changelog_path, output_path
from rewindow.testing import Epoch
from tests import landed
from tests.bench.land_text import write_table
from tests.ingest.local_engine import HOUR, T0, feed_config

JOB, FEED, TOPIC, PARTITIONS = "totals", "activity", "events", 2
LANDINGS = 4
USERS = ("ann", "bob", "cyd", "dan", "eve", "fay")

EngineOf = Callable[[], Engine]
Steps = Iterator[str]

engine_of: EngineOf = LocalEngine
"""Creates the engine. The suites on Spark replace it."""


def topology() -> Topology:
    """Count by user, then group by the count. The second half reads an internal log."""
    builder = StreamsBuilder()
    hours = builder.stream(TOPIC).group_by_key().windowed_by(TimeWindows.of("40ms", grace="10ms"))
    counted = hours.aggregate(Count(), store="hours").suppress(until_window_closes(), name="closed").to_stream()
    counted.to("hourly")
    counted.select_key(lambda _key, value: str(value % 3)).group_by_key().aggregate(
        Count(), store="sizes"
    ).to_stream().to("sizes")
    return builder.build()


def land_all(warehouse: str, seed: int, landings: int = LANDINGS) -> None:
    """Land the records of a seed: they are out of order, and some epochs are empty."""
    landed.land(warehouse, FEED, epochs(seed)[:landings], {TOPIC: landed.LONG}, PARTITIONS)


def epochs(seed: int) -> list[Epoch]:
    rng = random.Random(f"scene {seed}")
    made = []
    for number in range(1, LANDINGS + 1):
        records = tuple(
            (TOPIC, rng.choice(USERS), rng.randrange(100), max(0, number * 100 - rng.randrange(140)))
            for _ in range(0 if rng.random() < 0.1 else rng.randrange(4, 20))
        )
        made.append(Epoch(records, number * 100))
    return made


def bound(tables: DeltaTables, branch: str = MAIN, *, expects: bool = False) -> Job:
    """Bind the job to the landed feed. ``expects``: every run that adds rows to `hourly` is on hold."""
    feed = tables.feed(FEED)
    code = JobCode(topology, partial(log_shapes, dict(feed.definition.logs)), Semantics())
    paths = TablePaths(
        output=partial(_output, branch),
        changelog=partial(changelog_path, JOB),
        metrics=METRICS,
        expectations=EXPECTATIONS if expects else None,
    )
    binding = bind_job(JOB, feed, topology(), code.load_logs(), asdict(code.semantics), paths)
    return Job(JOB, code, binding, feed, hourly_expectations(binding) if expects else None)


def hourly_expectations(binding: JobBinding) -> JobExpectations:
    """Put every run that adds rows to `hourly` on hold, and read the rows of the run before."""
    expectations = (
        Expectation("hourly", "no rows", Kind.ROWS, OnFail.HOLD, maximum=0),
        Expectation("hourly", "key", Kind.UNIQUE, OnFail.FAIL),
        Expectation(
            "hourly",
            "known",
            Kind.SQL,
            OnFail.WARN,
            query="SELECT n.key, n.value FROM new_rows n JOIN previous_rows p ON n.key = p.key",
        ),
    )
    columns = binding.tables["output/hourly"].columns
    return JobExpectations([OutputExpectations("hourly", expectations, columns, ("key", "window_start", "window_end"))])


def _output(branch: str, topic: str) -> str:
    return output_path(f"out.{topic}", branch)


def attempt(name: str = "one") -> Attempt:
    return Attempt(f"{name}-{uuid4().hex}", "here", os.getpid(), 1)


def running(tables: DeltaTables, branch: str = MAIN, through: int | None = None, *, expects: bool = False) -> Steps:
    """Return the steps of one run by a new attempt. All earlier attempts count as dead."""
    request = RunRequest(branch=branch, through_landing=through)
    return steps(
        bound(tables, branch, expects=expects), request, attempt(), engine_of(), tables, lambda _attempt: False
    )


def run_all(tables: DeltaTables, branch: str = MAIN, through: int | None = None) -> Steps:
    """Return the steps of as many runs as are needed."""
    for _ in count():
        if isinstance((yield from running(tables, branch, through)), UpToDate):  # type: ignore[func-returns-value]
            return


def run_until(warehouse: str, throughs: list[int], branch: str = MAIN) -> None:
    for through in throughs:
        drive(running(DeltaTables(warehouse), branch, through))  # type: ignore[arg-type]


FORMATS = "parquet", "csv", "json"
"""How the files of the operation `land` are written: the seed decides, so landings of text are killed as well."""

FEED_CONFIG = feed_config(log={"invalid_timestamp": "skip"}, lag="10m")
"""The feed of the operation `land`, of Parquet files."""

NOW_MS, LATER_MS = T0 + 3 * HOUR, T0 + 5 * HOUR


def write_source(warehouse: str, seed: int, *, hours: int = 2) -> None:
    """Write a file for each hour, in which some timestamps are invalid."""
    rng = random.Random(f"source {seed}")
    suffix = FORMATS[seed % len(FORMATS)]
    folder = Path(warehouse, "raw")
    folder.mkdir(parents=True, exist_ok=True)
    for hour in range(hours):
        rows = []
        for n in range(rng.randrange(10, 30)):
            time_ms = T0 + hour * HOUR + n
            rows.append(
                {"user": rng.choice(USERS), "t": time_ms if n % 7 else -1, "got": time_ms, "x": rng.randrange(9)}
            )
        write_table(pa.Table.from_pylist(rows), folder / f"hour-{hour}.{suffix}")


def _never(*_: object) -> NoReturn:
    """Fail if a landing is left to Spark."""
    message = "these few rows are landed without Spark"
    raise AssertionError(message)


def write_and_land(warehouse: str, seed: int) -> None:
    """Land two hours, then add two more to the source."""
    write_source(warehouse, seed)
    drive(landing(warehouse))  # type: ignore[arg-type]
    write_source(warehouse, seed, hours=4)


def grow_old(warehouse: str, days: int = 3) -> None:
    """Make a log's files, and the removal times in its Delta log, some days older."""
    log = Path(warehouse, "logs", FEED, TOPIC)
    for file in log.rglob("*.parquet"):
        seconds = file.stat().st_mtime - days * 86_400
        os.utime(file, (seconds, seconds))
    for commit in (log / "_delta_log").glob("*.json"):
        left = re.compile(r'(?<="deletionTimestamp":)[0-9]+')
        commit.write_text(left.sub(lambda found: str(int(found[0]) - days * 86_400_000), commit.read_text()))


def landing(warehouse: str, *, now_ms: int = NOW_MS, new_generation: bool = False) -> Steps:
    """Return the steps of one `land` of the files below the warehouse, in this process."""
    from rewindow.tables.delta.feeds import DeltaFeedTables

    tables = DeltaFeedTables(warehouse)
    suffix = next(Path(warehouse, "raw").iterdir()).suffix.removeprefix(".")
    log = FEED_CONFIG.logs[TOPIC]
    source = log.source.model_copy(update={"format": suffix})
    config = FEED_CONFIG.model_copy(update={"logs": {TOPIC: log.model_copy(update={"source": source})}})
    spec = feed_spec(config, project_root=warehouse, warehouse=warehouse)
    who = Attempt(uuid4().hex, "here", os.getpid(), 1)
    engine = ArrowLandingEngine(_never, _never, project_root=warehouse, most_rows=10**6)
    request = LandRequest(now_ms, new_generation=new_generation)
    return landing_steps(spec, tables, engine, request, who, lambda _attempt: False)
