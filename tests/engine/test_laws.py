"""L1 to L3 through Spark and Delta for a few random topologies: the same rows as the in-memory replay.

Every epoch becomes a landing of Delta logs; one branch takes them in one run on one slot, another in several runs on
two. Their tables must have equal content hashes, and the outputs must be those of `LocalReplay`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from rewindow.engine.spark.spark_engine import SparkEngine
from rewindow.streams.settings import Semantics
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.testing import Epoch, LocalReplay
from rewindow.testing.strategies import epochs
from tests import landed
from tests.properties.cogrouped import cogroupings, transformings
from tests.properties.topologies import TOPICS, build, plans

pytestmark = pytest.mark.spark

FEED, PARTITIONS = "laws", 2


def outputs(warehouse: str, branch: str, topics: list[str]) -> list[tuple[Any, ...]]:
    found = []
    for topic in topics:
        rows = read_rows(table_path(warehouse, landed.output_of(branch, topic)))
        found += [
            (topic, row["_partition"], row["_offset"], row["_epoch"], row["_timestamp"]) for row in rows.to_pylist()
        ]
    return sorted(found)


RUNS = {
    "given_epochs": epochs(TOPICS, max_epochs=4),
    "cuts": st.lists(st.integers(1, 3)),
    "semantics": st.builds(Semantics, stream_time_from=st.sampled_from(["records", "watermark"])),
}


@given(steps_of=plans(), **RUNS)
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
    same_on_spark(spark, tmp_path_factory, steps_of, given_epochs, cuts, semantics)


@given(plan=st.tuples(cogroupings(), cogroupings(), transformings()), **RUNS)
@settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@seed(20130101)
def test_cogroups_and_transformed_tables_through_spark_and_delta(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    plan: tuple[Any, ...],
    given_epochs: list[Epoch],
    cuts: list[int],
    semantics: Semantics,
) -> None:
    one, other, transforming = plan
    steps = [("cogroup", 0, 1, one), ("rekey", 1, 3), ("cogroup", 0, 3, other), ("transform", 1, transforming)]
    same_on_spark(spark, tmp_path_factory, steps, given_epochs, cuts, semantics)


def same_on_spark(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    steps_of: list[tuple[Any, ...]],
    given_epochs: list[Epoch],
    cuts: list[int],
    semantics: Semantics,
) -> None:
    """Check that Spark and Delta, in one run and in several, give the rows of the in-memory replay."""
    warehouse, end = str(tmp_path_factory.mktemp("laws")), len(given_epochs)
    landed.land(warehouse, FEED, given_epochs, dict.fromkeys(TOPICS, landed.LONG), PARTITIONS)
    tables, load = DeltaTables(warehouse), partial(build, steps_of)
    root = str(Path(__file__).parent.parent.parent)
    throughs = {"one": [end], "many": [*sorted({cut for cut in cuts if 0 < cut < end}), end]}
    for slots, (branch, ends) in enumerate(throughs.items(), start=1):
        engine = SparkEngine(spark, slots=slots, import_paths=[root])
        landed.replay(tables, engine, FEED, branch, load, semantics, ends)
    assert tables.hashes(landed.JOB, "one") == tables.hashes(landed.JOB, "many")
    memory = LocalReplay(load(), partitions=PARTITIONS, semantics=semantics)
    memory.run(given_epochs)
    topics = [sink.topic for part in load().sub_topologies() for sink in part.sinks if not sink.is_internal]
    expected = [(s.topic, s.partition, s.offset, s.epoch + 1, s.record.timestamp) for s in memory.sent]
    assert outputs(warehouse, "one", topics) == sorted(expected)
