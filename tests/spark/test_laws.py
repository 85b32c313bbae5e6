"""Laws 1 to 3 through Spark and Delta for a few random topologies: the same rows as the replay in memory.

Every epoch becomes a landing of Delta logs; one lineage takes them in one run on one slot, another in several runs on
two. Their tables must have equal content hashes, and the outputs must be those of `LocalReplay`.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from rewindow.core.encoding import partition_of
from rewindow.core.record import TopicPartition
from rewindow.core.schema import Column
from rewindow.core.semantics import Semantics
from rewindow.delta.contents import read_rows
from rewindow.delta.ledger import Ledger
from rewindow.delta.logs import LOG_COLUMNS, LOG_PARTITIONS
from rewindow.delta.tables import (
    LANDINGS,
    arrow_schema,
    changelog_path,
    commit_files,
    create_table,
    log_path,
    output_path,
    table_path,
)
from rewindow.delta.warehouse import METRICS_TABLE, DeltaTables
from rewindow.machine import drive
from rewindow.plan.fold import LedgerRow
from rewindow.plan.landings import (
    GENERATION,
    LANDING,
    FeedDefinition,
    LandedRange,
    Landing,
    LogSchema,
    definition_as_json,
    log_shapes,
)
from rewindow.plan.spec import Attempt, RunRequest
from rewindow.plan.stages import JobCode, TablePaths, bind_job
from rewindow.runner import Job, RunReport, steps
from rewindow.spark.engine import SparkEngine
from rewindow.spark.stage import FileWriter
from rewindow.testing import Epoch, LocalReplay
from rewindow.testing.strategies import epochs
from tests.properties.topologies import TOPICS, build, plans

pytestmark = pytest.mark.spark

FEED, JOB, PARTITIONS = "laws", "law", 2
SCHEMA = LogSchema((Column("key", "string"),), (Column("value", "long"),), scalar_key=True, scalar_value=True)
NUMBER = iter(range(1_000_000))


def land(warehouse: str, given_epochs: list[Epoch]) -> None:
    """Land each epoch, all of it released, under the watermark that it says."""
    definition = FeedDefinition(FEED, 1, PARTITIONS, dict.fromkeys(TOPICS, SCHEMA), "f")
    columns = (*LOG_COLUMNS, *SCHEMA.key, *SCHEMA.value)
    schema = pa.schema([*(pa.field(name, pa.int32()) for name in LOG_PARTITIONS), *arrow_schema(columns)])
    for topic in TOPICS:
        create_table(table_path(warehouse, log_path(FEED, topic)), schema, LOG_PARTITIONS)
    ledger = Ledger(table_path(warehouse, LANDINGS), FEED)
    assert ledger.append([LedgerRow(1, GENERATION, definition_as_json(definition))])
    next_offset: dict[TopicPartition, int] = {}
    latest: dict[TopicPartition, int] = {}
    for number, epoch in enumerate(given_epochs, start=1):
        rows: dict[TopicPartition, list[tuple[Any, ...]]] = {}
        for topic, key, value, timestamp in epoch.records:
            place = TopicPartition(topic, partition_of(key, PARTITIONS))
            offset = next_offset.get(place, 0)
            next_offset[place], latest[place] = offset + 1, max(latest.get(place, -1), timestamp)
            rows.setdefault(place, []).append((offset, timestamp, number, timestamp, key, value))
        ranges = {
            place: LandedRange(end - len(rows.get(place, ())), end, latest[place], end)
            for place, end in next_offset.items()
        }
        landing = Landing(number, 1, epoch.watermark_ms, ranges, counts={})
        assert ledger.append([LedgerRow(number + 1, LANDING, landing.as_json())])
        for topic in TOPICS:
            path = table_path(warehouse, log_path(FEED, topic))
            files = [log_file(path, place, some) for place, some in sorted(rows.items()) if place.topic == topic]
            commit_files(path, files, app_id=f"rewindow.log/{FEED}/g1", version=number)


def log_file(path: str, place: TopicPartition, rows: list[tuple[Any, ...]]) -> Any:
    schema = arrow_schema((*LOG_COLUMNS, *SCHEMA.key, *SCHEMA.value))
    writer = FileWriter(
        path,
        f"generation=1/partition={place.partition}",
        schema,
        target=f"log/{place.topic}",
        partition=place.partition,
        attempt="landed",
        partition_values={"generation": "1", "partition": str(place.partition)},
        stats_columns=["offset"],
    )
    arrays = [pa.array(list(column), field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    writer.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return writer.close()


def replayed(tables: DeltaTables, engine: SparkEngine, steps_of: Any, semantics: Semantics, cuts: list[int]) -> str:
    """Replay into a lineage of its own, in runs that end at the cuts; return its name."""
    lineage = f"l{next(NUMBER)}"
    feed = tables.feed(FEED)
    load = partial(build, steps_of)
    code = JobCode(load, partial(log_shapes, dict(feed.definition.logs)), semantics)
    paths = TablePaths(
        output=lambda topic: output_path(f"laws.{topic.replace('-', '_')}", lineage),
        changelog=partial(changelog_path, JOB),
        metrics=METRICS_TABLE.path,
    )
    binding = bind_job(JOB, feed, load(), code.load_logs(), asdict(semantics), paths)
    job = Job(JOB, code, binding, feed)
    for through in [*sorted({cut for cut in cuts if 0 < cut < len(feed.landings)}), len(feed.landings)]:
        request = RunRequest(lineage=lineage, through_landing=through)
        attempt = Attempt(f"a{next(NUMBER)}", "here", 1, 1)
        made = drive(steps(job, request, attempt, engine, tables, lambda _attempt: False))
        assert isinstance(made, RunReport)
    return lineage


def outputs(warehouse: str, lineage: str, topics: list[str]) -> list[tuple[Any, ...]]:
    found = []
    for topic in topics:
        rows = read_rows(table_path(warehouse, output_path(f"laws.{topic.replace('-', '_')}", lineage)))
        found += [
            (topic, row["_partition"], row["_offset"], row["_epoch"], row["_timestamp"]) for row in rows.to_pylist()
        ]
    return sorted(found)


@given(
    plans(),
    epochs(TOPICS, max_epochs=4),
    st.lists(st.integers(1, 3)),
    st.builds(Semantics, stream_time_from=st.sampled_from(["records", "watermark"])),
)
@settings(max_examples=6, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@seed(20130101)
def test_random_topologies_through_spark_and_delta(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    steps_of: list[tuple[Any, ...]],
    given_epochs: list[Epoch],
    cuts: list[int],
    semantics: Semantics,
) -> None:
    warehouse = str(tmp_path_factory.mktemp("laws"))
    land(warehouse, given_epochs)
    tables = DeltaTables(warehouse)
    root = str(Path(__file__).parent.parent.parent)
    one = replayed(tables, SparkEngine(spark, slots=1, import_paths=[root]), steps_of, semantics, [])
    many = replayed(tables, SparkEngine(spark, slots=2, import_paths=[root]), steps_of, semantics, cuts)
    assert tables.hashes(JOB, one) == tables.hashes(JOB, many)
    memory = LocalReplay(build(steps_of), partitions=PARTITIONS, semantics=semantics)
    memory.run(given_epochs)
    topics = [sink.topic for part in build(steps_of).sub_topologies() for sink in part.sinks if not sink.is_internal]
    expected = [(s.topic, s.partition, s.offset, s.epoch + 1, s.record.timestamp) for s in memory.sent]
    assert outputs(warehouse, one, topics) == sorted(expected)
