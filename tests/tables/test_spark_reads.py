"""Spark reads what delta-rs commits: the same rows, pruned by the same statistics."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from tests.tables.scene import changelog, land, replay


@pytest.mark.spark
def test_spark_reads_what_was_published(spark, tmp_path: Path):
    warehouse = str(tmp_path)
    land(warehouse)
    replay(warehouse, "a", through_landing=2)
    replay(warehouse, "b")
    state = changelog(warehouse, "sums").removeprefix(f"{warehouse}/")
    for table in ("alerts/totals", state, "rewindow/metrics", "rewindow/runs", "rewindow/journal"):
        path = table_path(warehouse, table)
        rows = read_rows(path)
        frame = spark.read.format("delta").load(path)
        assert frame.columns == rows.column_names
        found = sorted(map(tuple, frame.collect()), key=str)
        assert found == sorted((tuple(row.values()) for row in rows.to_pylist()), key=str), table

    totals = spark.read.format("delta").load(table_path(warehouse, "alerts/totals"))
    assert {row._run for row in totals.collect()} == {1, 3}
    assert len(totals.where("_run = 3").inputFiles()) < len(totals.inputFiles())
