"""What a run costs whatever it does: Delta commits and Spark jobs, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.stored import UNWINDOWED, StoredCounts

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LEDGER_AND_JOURNAL = 3  # PLAN, the manifest, COMMIT
TABLES = 3  # the output, the store's changelog, the metrics


def test_an_empty_run_commits_nothing_and_asks_spark_for_nothing(spark: SparkSession, tmp_path: Path) -> None:
    del spark
    counts = StoredCounts(tmp_path, 100, UNWINDOWED)
    cost = counts.run()
    assert (cost["commits"], cost["jobs"]) == (0, 0)
    counts.land_some(10)
    cost = counts.run()
    assert (cost["commits"], cost["jobs"]) == (LEDGER_AND_JOURNAL + TABLES, 1)
    assert counts.is_exact()
