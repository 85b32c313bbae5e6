"""Rows of the API as Spark data frames and views, of tables by path and of tables that a catalog governs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession

import rewindow
from rewindow import errors
from tests.api.shop import create_shop, replace

pytestmark = pytest.mark.spark


def rows_of(frame: DataFrame) -> list[dict[str, object]]:
    return sorted(frame.toArrow().to_pylist(), key=str)


def test_data_frames_have_the_rows_and_columns_of_arrow(spark: SparkSession, with_two_runs: rewindow.Project) -> None:
    for rows in (
        with_two_runs.output("daily-orders"),
        with_two_runs.output("daily-orders", run=1),
        with_two_runs.state("daily_orders", "orders-per-day", run=1),
    ):
        frame = rows.to_spark(spark)
        assert frame.columns == rows.to_arrow().column_names
        assert dict(frame.dtypes)["window_start"] == "timestamp"
        assert rows_of(frame) == sorted(rows.to_arrow().to_pylist(), key=str)


def test_state_is_a_view_as_of_a_run(spark: SparkSession, with_two_runs: rewindow.Project) -> None:
    for run, name in ((1, "state_then"), (2, "state_now")):
        with_two_runs.state("daily_orders", "orders-per-day", run=run).create_view(name, spark)
    found = spark.sql(
        "SELECT now.customer, now.window_start FROM state_now now LEFT ANTI JOIN state_then then "
        "ON now.customer = then.customer AND now.window_start = then.window_start"
    )
    assert {row["customer"] for row in found.collect()} == {"ann", "bob"}


def test_a_view_without_a_name_is_refused(spark: SparkSession, with_two_runs: rewindow.Project) -> None:
    with pytest.raises(rewindow.RewindowError):
        with_two_runs.output("daily-orders").create_view("not a name", spark)


def test_a_table_that_is_not_there_yet_has_no_rows(spark: SparkSession, landed: rewindow.Project) -> None:
    rows = landed.run("daily_orders", through=1).output()
    assert rows.to_spark(spark).count() == rows.to_arrow().num_rows == 0


@pytest.fixture
def governed(spark: SparkSession, tmp_path: Path) -> Iterator[rewindow.Project]:
    """The project with its tables in schemas of their own in a catalog."""
    schemas = [f"api_{uuid4().hex[:8]}_{kind}" for kind in ("home", "shop")]
    root = create_shop(tmp_path / "governed")
    target = {"target": "local", "warehouse": "warehouse", "cores": 2, "source": "shuffle"}
    rows = {"commit": "spark", "staging": "rows", "catalog": f"spark_catalog.{schemas[0]}"}
    (root / "conf/targets/local.yaml").write_text(yaml.safe_dump({**target, **rows}))
    replace(root / "conf/jobs/daily_orders.yaml", "shop.daily_orders", f"{schemas[1]}.daily_orders")
    replace(root / "conf/feeds/orders.yaml", "partitions: 4", "partitions: 1")
    # The workers of the session that all tests share keep the `jobs` that they imported first.
    (root / "jobs").rename(root / "jobs_of_catalog")
    replace(root / "conf/jobs/daily_orders.yaml", "jobs.daily_orders:", "jobs_of_catalog.daily_orders:")
    yield rewindow.Project.load(root)
    for schema in schemas:
        spark.sql(f"DROP SCHEMA IF EXISTS spark_catalog.{schema} CASCADE")


@pytest.mark.cluster
@pytest.mark.slow
def test_tables_of_a_catalog_have_the_same_rows(
    spark: SparkSession, governed: rewindow.Project, tmp_path: Path
) -> None:
    root = create_shop(tmp_path / "landed")
    replace(root / "conf/feeds/orders.yaml", "partitions: 4", "partitions: 1")
    landed = rewindow.Project.load(root)
    for project in (landed, governed):
        project.land("orders")
        project.run("daily_orders", through=2)
        project.run("daily_orders")
    for run in (1, 2):
        ours, theirs = (one.output("daily-orders", run=run) for one in (landed, governed))
        assert theirs.to_arrow() == ours.to_arrow()
        assert rows_of(theirs.to_spark()) == rows_of(ours.to_spark(spark))
        for store in ("orders-per-day", "orders-per-day-suppress"):
            ours, theirs = (one.state("daily_orders", store, run=run) for one in (landed, governed))
            assert theirs.to_arrow() == ours.to_arrow()
    assert governed.output("daily-orders")._repr_html_() == landed.output("daily-orders")._repr_html_()
    with pytest.raises(errors.UsageError, match="there is no store 'sums': run main/2 has orders-per-day"):
        governed.state("daily_orders", "sums")


EDITED = """
import sys
import rewindow
from tests.api.shop import create_shop, edit, replace
from pathlib import Path

def run(root):
    create_shop(root)
    replace(root / "conf/targets/local.yaml", "warehouse: warehouse", "warehouse: warehouse\\ninline: 0\\ncores: 1")
    project = rewindow.Project.load(root)
    project.land("orders")
    edit(project, '.where("amount > 0")', '.filter(lambda key, value: value.amount > 0)')
    return project

one, other = run(Path(sys.argv[1]) / "one"), run(Path(sys.argv[1]) / "other")
first = one.run("daily_orders")
edit(one, "value.amount > 0", "value.amount > 9")
second = one.backfill("daily_orders", 1, branch="fix").runs[-1]
for run in (first, second, other.run("daily_orders")):
    print(min(run.output().to_arrow()["amount"].to_pylist()))
print(one.verify("daily_orders", branch="fix").is_reproduced)
print(one.spark.conf.get("spark.python.worker.reuse"))
"""


def test_workers_of_spark_execute_the_code_as_it_is_now(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", EDITED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["5.5", "12.5", "5.5", "True", "false"], done.stderr
