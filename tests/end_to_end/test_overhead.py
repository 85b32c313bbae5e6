"""The fixed costs of a run: its Delta commits and Spark jobs. Without Spark, the results are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rewindow.control.plan.spec import RunRequest
from tests.bench.day import JOB
from tests.bench.stored import UNWINDOWED, StoredCounts

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LEDGER_AND_JOURNAL = 3  # PLAN, the manifest, COMMIT
TABLES = 3  # the output, the store's changelog, the metrics


def test_an_empty_run_commits_nothing_and_a_small_one_does_not_use_spark(spark: SparkSession, tmp_path: Path) -> None:
    del spark
    counts = StoredCounts(tmp_path, 100, UNWINDOWED)
    cost = counts.run()
    assert (cost["commits"], cost["jobs"]) == (0, 0)
    counts.land_some(10)
    cost = counts.run()
    assert (cost["commits"], cost["jobs"]) == (LEDGER_AND_JOURNAL + TABLES, 0)
    assert counts.is_exact()
    project = counts.project
    project.engine = project.engine_of(project.slots)
    counts.land_some(10)
    cost = counts.run()
    assert (cost["commits"], cost["jobs"]) == (LEDGER_AND_JOURNAL + TABLES, 1)
    assert counts.is_exact()
    for landing in (1, 2, 3):
        project.run(JOB, RunRequest(branch="by-spark", through_landing=landing))
    assert project.tables.hashes(JOB, "by-spark") == project.tables.hashes(JOB, "main")
