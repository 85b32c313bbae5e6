"""Some scenarios of every kind through Spark and Delta, in one run and in several."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from rewindow.engine.spark.spark_engine import SparkEngine
from rewindow.engine.worker import task_execution
from rewindow.engine.worker.local_engine import LocalEngine
from tests.conformance import verdict
from tests.conformance.on_spark import NotLandedError, as_epochs, check_can_be_landed, cuts
from tests.conformance.scenario import CARRIED, ROOT, read

CARRIED_FILES = sorted(CARRIED.glob("*.jsonl"))

CORNERS = (
    "unaligned_schedule_before_the_first_record_4",
    "wall_clock_of_the_records_2",
    "several_partitions_0",
    "several_partitions_4",
    "headers_2",
    "versioned_contents_1",
    "custom_extractor_1",
    "foreign_key_with_a_composite_left_key_1",
    "foreign_key_to_one_row_of_150",
    "empty_landings_d12_null_before_the_grace_period_is_over",
)
"""What only Spark and Delta can show: one scenario of each kind."""


@pytest.mark.spark
@pytest.mark.parametrize("file", CARRIED_FILES, ids=lambda file: file.stem)
def test_the_carried_recordings_through_spark_and_delta(spark: SparkSession, file: Path) -> None:
    engine = SparkEngine(spark, slots=1, import_paths=[str(ROOT)])
    verdicts = [verdict.judge_on_spark(case, engine) for case in read(file)[:3]]
    assert [f"{v.case.name}: {v.reason}" for v in verdicts if v.status == verdict.FAILED] == []


@pytest.mark.spark
@pytest.mark.parametrize("name", CORNERS)
def test_the_corners_through_spark_and_delta(spark: SparkSession, name: str) -> None:
    engine = SparkEngine(spark, slots=1, import_paths=[str(ROOT)])
    case = next(case for case in read(CARRIED / "corners.jsonl") if case.name == name)
    judged = verdict.judge_on_spark(case, engine)
    assert judged.status in (verdict.PASSED, verdict.DEVIATING), judged.reason


def test_the_carried_recordings_of_joins_on_columns() -> None:
    """Without Spark: `LocalEngine` joins on columns, too."""
    cases = [case for file in ("corners", "differences") for case in read(CARRIED / f"{file}.jsonl")]
    joins = [
        case for case in cases if [node["op"] for node in case.scenario.get("nodes", ())] == ["stream_stream_join"]
    ]
    assert len(joins) == 5
    with patch.object(task_execution, "run_vectorized", wraps=task_execution.run_vectorized) as run:
        verdicts = [verdict.judge_on_spark(case, LocalEngine()) for case in joins]
    assert [f"{v.case.name}: {v.reason}" for v in verdicts if v.status == verdict.FAILED] == []
    assert run.called


def test_a_step_becomes_a_landing_under_the_largest_timestamp() -> None:
    record = {"key": "a", "value": 1, "ts": 7}
    steps = [{"pipe": "in", **record}, {"advance_wall_clock": 5}, {"batch": [{"topic": "in", **record, "ts": 3}]}]
    assert [(epoch.records, epoch.watermark_ms) for epoch in as_epochs(steps)] == [
        ((("in", "a", 1, 7),), 7),
        ((), 7),
        ((("in", "a", 1, 3),), 7),
    ]


def test_several_runs_are_several_and_end_where_one_does() -> None:
    branches = [cuts(f"scenario-{number}", 9) for number in range(20)]
    assert all(runs["one run"] == [9] and runs["several runs"][-1] == 9 for runs in branches)
    assert Counter(len(runs["several runs"]) for runs in branches).most_common(1)[0][0] == 3


@pytest.mark.parametrize(
    ("nodes", "config", "steps", "reason"),
    [
        ([{"on_init": [{"do": "schedule", "type": "WALL_CLOCK_TIME"}]}], {}, [], "wall clock"),
        ([], {"max_task_idle_ms": 5}, [], "quiet topic"),
        ([], {}, [{"pipe": "in", "key": "a", "value": 1, "ts": -1}], "negative"),
    ],
)
def test_what_cannot_be_landed_is_said(nodes: list, config: dict, steps: list, reason: str) -> None:
    with pytest.raises(NotLandedError, match=reason):
        check_can_be_landed({"nodes": nodes, "config": config, "steps": steps})
