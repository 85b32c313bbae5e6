"""A small warehouse without Spark: a landed log, a job, and the real runner with an engine in this process."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from rewindow import Count, StreamsBuilder, TimeWindows, Topology, until_window_closes
from rewindow.contracts.reserved_names import LOG_COLUMNS
from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import JobCode
from rewindow.control.ingest.landings import GENERATION, LANDING, Feed, definition_as_json, log_shapes
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.planned_tasks import TablePaths, bind_job
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import Attempt, RunRequest
from rewindow.control.run import Job, steps
from rewindow.dsl.aggregating import AggregateSpec
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.engine.worker.parquet_writer import FileWriter
from rewindow.streams.serde.schema import Column
from rewindow.streams.settings import Semantics
from rewindow.tables.delta.commit import commit_files
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.delta.open_table import table_path, takes_shared_files
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.paths import LANDINGS, METRICS, changelog_path, log_path, output_path
from rewindow.tables.shared.stored_feeds import LOG_PARTITIONS
from tests.control.ledgers import HOUR, TOPIC, a_feed

JOB = "counts"
COUNT = Count()
USERS = ("ann", "bob", "cyd", "dan", "eve")


def topology(aggregate: AggregateSpec = COUNT) -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream(TOPIC)
        .group_by_key()
        .windowed_by(TimeWindows.of("30m", grace="5m"))
        .aggregate(aggregate, store="sums")
        .suppress(until_window_closes(), name="closed")
        .to_stream()
        .to("totals")
    )
    return builder.build()


def land(warehouse: str, landings: int = 3) -> Feed:
    """Land a log with a few users, one landing per hour."""
    feed = a_feed(landings)
    schema = feed.definition.logs[TOPIC]
    columns = (*LOG_COLUMNS, *schema.key, *schema.value)
    path = table_path(warehouse, log_path("activity", TOPIC))
    partitions = tuple(pa.field(name, pa.int32()) for name in LOG_PARTITIONS)
    create_table(path, pa.schema([*partitions, *arrow_schema(columns)]), LOG_PARTITIONS)
    ledger = Ledger(table_path(warehouse, LANDINGS), "activity")
    done = len(ledger.read())
    if done == 0:
        ledger.append([LedgerRow(1, GENERATION, definition_as_json(feed.definition))])
        done = 1
    for landing in feed.landings[done - 1 :]:
        files = [
            _log_file(path, columns, landing.number, where.partition, landed.start, landed.end)
            for where, landed in landing.ranges.items()
        ]
        assert ledger.append([LedgerRow(landing.number + 1, LANDING, landing.as_json())])
        commit_files(path, files, app_id="rewindow.log/activity/g1", version=landing.number)
    return feed


def _log_file(path: str, columns: tuple[Column, ...], landing: int, partition: int, start: int, end: int) -> StagedFile:
    rows = []
    for offset in range(start, end):
        time_ms = (landing - 1) * HOUR + (offset - start) * HOUR // (end - start)
        rows.append((offset, time_ms, landing, time_ms, USERS[(offset * 7 + partition) % len(USERS)], offset))
    values = {"generation": "1", "partition": str(partition)}
    directory = f"generation=1/partition={partition}"
    schema = arrow_schema(columns)
    stats = ["offset", "timestamp"]
    with FileWriter(
        path,
        directory,
        schema,
        target=f"log/{TOPIC}",
        partition=partition,
        attempt="landed",
        partition_values=values,
        stats_columns=stats,
    ) as writer:
        arrays = [
            pa.array(list(column), field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)
        ]
        writer.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
        file = writer.close()
    assert file is not None
    return file


def a_job(
    tables: DeltaTables,
    branch: str = "main",
    name: str = JOB,
    *,
    aggregate: AggregateSpec = COUNT,
    build: Callable[[], Topology] | None = None,
    quarantine: str | None = None,
) -> Job:
    """Bind the job, or another topology under its name, to the landed feed."""
    feed = tables.feed("activity")
    build = build or partial(topology, aggregate)
    code = JobCode(build, partial(log_shapes, dict(feed.definition.logs)), Semantics())
    paths = TablePaths(
        output=lambda topic: output_path(f"alerts.{topic}", branch),
        changelog=partial(changelog_path, name),
        metrics=METRICS,
        quarantine=quarantine,
    )
    return Job(name, code, bind_job(name, feed, build(), code.load_logs(), asdict(code.semantics), paths), feed)


def changelog(warehouse: str, store: str) -> str:
    """Return the path of the changelog of one of the job's stores."""
    return table_path(warehouse, a_job(DeltaTables(warehouse)).binding.tables[f"changelog/{store}"].path)


def machine(
    warehouse: str,
    attempt: str,
    branch: str = "main",
    *,
    aggregate: AggregateSpec = COUNT,
    build: Callable[[], Topology] | None = None,
    quarantine: str | None = None,
    **request: object,
):
    """Return the steps of one run by a new attempt. All earlier attempts count as dead."""
    tables = DeltaTables(warehouse)
    asked = RunRequest(branch=branch, **request)  # type: ignore[arg-type]
    who = Attempt(attempt, "here", os.getpid(), 1)
    job = a_job(tables, branch, aggregate=aggregate, build=build, quarantine=quarantine)
    return steps(job, asked, who, LocalEngine(is_shareable=takes_shared_files), tables, lambda _attempt: False)


def replay(warehouse: str, attempt: str, branch: str = "main", **request: Any):
    """Execute all steps of one run."""
    return drive(machine(warehouse, attempt, branch, **request))


def one_by_one(folder: Path, runs: int, landings: int | None = None) -> str:
    """Create a warehouse with ``landings`` landings, replay the first ``runs`` of them in one run each, and return its path."""
    warehouse = str(folder / "w")
    land(warehouse, landings or runs)
    for landing in range(1, runs + 1):
        replay(warehouse, f"a{landing}", through_landing=landing)
    return warehouse


def finish(warehouse: str) -> None:
    """Run until nothing is left to do."""
    for number in count():
        if isinstance(replay(warehouse, f"heir-{number}"), UpToDate):
            return


def spoil(path: Path, at: int = 100) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))
