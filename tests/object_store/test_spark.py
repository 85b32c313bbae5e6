"""Spark's workers land and stage in the bucket, with the settings that the driver sends."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.bad_input.scene import hour, without_spark
from tests.object_store.scene import HOURS, THERE, content, done, make
from tests.object_store.server import BUCKET, objects

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_workers_write_to_the_bucket(spark: SparkSession, tmp_path: Path, settings: dict[str, str]) -> None:
    assert spark.conf.get("spark.jars", "") == "", "the JVM must have no client for buckets"
    bench, warehouse = make(tmp_path / "project", settings)
    for number in range(HOURS):
        bench.rows(f"h{number}", hour(number))
    done(bench.run("land", "activity", "--json", *THERE))
    done(bench.run("run", "counts", "--json", "--log-format", "json", *THERE))
    with without_spark():
        done(bench.run("land", "activity", "--json"))
        done(bench.run("run", "counts", "--json"))
    assert content(warehouse) == content(str(bench.warehouse))
    for path, data in objects(settings, warehouse.removeprefix(f"s3://{BUCKET}/")):
        assert b"canary" not in data, path
