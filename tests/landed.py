"""Land epochs with watermarks that the test chooses, without `land`, and replay jobs over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa

from rewindow.contracts.reserved_names import LOG_COLUMNS
from rewindow.contracts.tasks import JobCode
from rewindow.control.ingest.landings import (
    GENERATION,
    LANDING,
    FeedDefinition,
    LandedRange,
    Landing,
    LogSchema,
    definition_as_json,
    log_shapes,
)
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.planned_tasks import TablePaths, bind_job
from rewindow.control.plan.spec import Attempt, RunRequest
from rewindow.control.run import Engine, Job, RunReport, steps
from rewindow.engine.worker.parquet_writer import FileWriter
from rewindow.streams.record import TopicPartition
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.serde.schema import Column
from rewindow.streams.settings import Semantics
from rewindow.streams.topology import Topology
from rewindow.tables.delta.commit import commit_files
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.paths import LANDINGS, METRICS, changelog_path, log_path, output_path
from rewindow.tables.shared.stored_feeds import LOG_PARTITIONS
from rewindow.testing import Epoch

JOB = "job"
LONG = LogSchema((Column("key", "string"),), (Column("value", "long"),), scalar_key=True, scalar_value=True)
STRING = LogSchema((Column("key", "string"),), (Column("value", "string"),), scalar_key=True, scalar_value=True)

_attempts = count()


def land(warehouse: str, feed: str, epochs: Sequence[Epoch], logs: Mapping[str, LogSchema], partitions: int) -> None:
    """Write one landing per epoch, with the epoch's own watermark. Each landing releases all of its records."""
    definition = FeedDefinition(feed, 1, partitions, dict(logs), "f")
    for topic, schema in logs.items():
        create_table(table_path(warehouse, log_path(feed, topic)), _table_schema(schema), LOG_PARTITIONS)
    ledger = Ledger(table_path(warehouse, LANDINGS), feed)
    assert ledger.append([LedgerRow(1, GENERATION, definition_as_json(definition))])
    next_offset: dict[TopicPartition, int] = {}
    latest: dict[TopicPartition, int] = {}
    for number, epoch in enumerate(epochs, start=1):
        rows: dict[TopicPartition, list[tuple[Any, ...]]] = {}
        for topic, key, value, timestamp in epoch.records:
            where = TopicPartition(topic, 0 if key is None else partition_of(key, partitions))
            offset = next_offset.get(where, 0)
            columns = key if isinstance(key, tuple) else (key,)
            next_offset[where], latest[where] = (
                offset + 1,
                max(latest.get(where, -1), timestamp),
            )
            rows.setdefault(where, []).append((offset, timestamp, number, timestamp, *columns, value))
        ranges = {
            where: LandedRange(end - len(rows.get(where, ())), end, latest[where], end)
            for where, end in next_offset.items()
        }
        landing = Landing(number, 1, epoch.watermark_ms, ranges, counts={})
        assert ledger.append([LedgerRow(number + 1, LANDING, landing.as_json())])
        for topic, schema in logs.items():
            path = table_path(warehouse, log_path(feed, topic))
            files = [
                _log_file(path, where, some, schema) for where, some in sorted(rows.items()) if where.topic == topic
            ]
            commit_files(path, files, app_id=f"rewindow.log/{feed}/g1", version=number)


def replay(
    tables: DeltaTables,
    engine: Engine,
    feed: str,
    branch: str,
    load: Callable[[], Topology],
    semantics: Semantics,
    throughs: Sequence[int],
) -> list[RunReport]:
    """Replay into a new branch, in runs that end at these landings. ``load`` must be picklable."""
    landed = tables.feed(feed)
    code = JobCode(load, partial(log_shapes, dict(landed.definition.logs)), semantics)
    paths = TablePaths(output=partial(output_of, branch), changelog=partial(changelog_path, JOB), metrics=METRICS)
    binding = bind_job(JOB, landed, load(), code.load_logs(), asdict(semantics), paths)
    job = Job(JOB, code, binding, landed)
    reports = []
    for through in throughs:
        attempt = Attempt(f"a{next(_attempts)}", "here", 1, 1)
        request = RunRequest(branch=branch, through_landing=through)
        made = drive(steps(job, request, attempt, engine, tables, lambda _attempt: False))
        assert isinstance(made, RunReport)
        reports.append(made)
    return reports


def output_of(branch: str, topic: str) -> str:
    """Return the path of a branch's output, relative to the warehouse."""
    return output_path(f"out.{topic.replace('-', '_')}", branch)


def _table_schema(schema: LogSchema) -> pa.Schema:
    partitions = [pa.field(name, pa.int32()) for name in LOG_PARTITIONS]
    return pa.schema([*partitions, *arrow_schema((*LOG_COLUMNS, *schema.key, *schema.value))])


def _log_file(path: str, where: TopicPartition, rows: list[tuple[Any, ...]], log: LogSchema) -> Any:
    schema = arrow_schema((*LOG_COLUMNS, *log.key, *log.value))
    writer = FileWriter(
        path,
        f"generation=1/partition={where.partition}",
        schema,
        target=f"log/{where.topic}",
        partition=where.partition,
        attempt="landed",
        partition_values={"generation": "1", "partition": str(where.partition)},
        stats_columns=["offset"],
    )
    arrays = [pa.array(list(column), field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    writer.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return writer.close()
