"""Parquet files of Spark before 3.0, or in its legacy mode, whose early dates are other days in today's calendar."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.ingest.land_by_arrow import land_by_arrow
from tests.ingest.local_engine import log_rows
from tests.ingest.text_files import Files

NEW = {"org.apache.spark.version": "4.0.0"}
LEGACY = {**NEW, "org.apache.spark.legacyDateTime": "", "org.apache.spark.timeZone": "Europe/Berlin"}
SPARK_2 = {"org.apache.spark.version": "2.4.8"}
EARLY_DAY = pa.array([date(1500, 1, 10), None], pa.date32())
EARLY_TIME = pa.array([datetime(1890, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
LATE_DAY = pa.array([date(1582, 10, 15), None], pa.date32())
LATE_TIME = pa.array([datetime(1900, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
NO_DAY = pa.nulls(2, pa.date32())


def write(root, values, stated, **more):
    (root / "raw").mkdir(exist_ok=True)
    table = pa.table({"user": ["ann", "bob"], "t": [1, 2], "x": values, "y": [1, 2]})
    pq.write_table(table.replace_schema_metadata(stated), root / "raw" / "a.parquet", **more)


@pytest.mark.parametrize(
    ("values", "stated", "more"),
    [
        (EARLY_DAY, LEGACY, {}),
        (EARLY_DAY, SPARK_2, {}),
        (EARLY_DAY, LEGACY, {"write_statistics": False}),
        (EARLY_TIME, LEGACY, {}),
        (EARLY_TIME, SPARK_2, {}),
    ],
)
def test_values_that_are_other_days_in_the_old_calendar_are_left_to_spark(tmp_path, values, stated, more):
    write(tmp_path, values, stated, **more)
    with pytest.raises(AssertionError, match="write"):
        land_by_arrow(tmp_path)
    assert [row["y"] for row in land_by_arrow(tmp_path, ignore=["x"])] == [1, 2], "it is not landed"


@pytest.mark.parametrize(
    ("values", "stated", "more"),
    [
        (LATE_DAY, LEGACY, {}),
        (LATE_TIME, SPARK_2, {}),
        (EARLY_DAY, NEW, {}),
        (EARLY_TIME, NEW, {}),
        (EARLY_TIME.cast(pa.timestamp("us")), LEGACY, {}),
        (NO_DAY, LEGACY, {}),
        (EARLY_DAY, None, {}),
    ],
)
def test_values_that_are_the_same_in_both_calendars_need_no_spark(tmp_path, values, stated, more):
    write(tmp_path, values, stated, **more)
    assert [row["y"] for row in land_by_arrow(tmp_path)] == [1, 2]


@pytest.mark.spark
@pytest.mark.parametrize("nested", [False, True])
def test_a_date_of_1500_that_spark_wrote_in_legacy_mode_lands_as_that_date(engine_at, spark, tmp_path, nested):
    """With a nested column, Spark reads the file in any case: both ways land the same."""
    feed = Files(tmp_path, engine_at(tmp_path), "parquet")
    columns = "'ann' AS user, 1L AS t, DATE'1500-01-01' AS day, TIMESTAMP'1500-01-01 00:00:00' AS at"
    mode = "spark.sql.parquet.datetimeRebaseModeInWrite"
    spark.conf.set(mode, "LEGACY")
    try:
        rows = spark.sql(f"SELECT {columns}{', array(1) AS many' if nested else ''}")
        rows.coalesce(1).write.mode("append").parquet(f"{tmp_path}/raw")
    finally:
        spark.conf.unset(mode)
    assert feed.land(key="user").rows == 1
    (row,) = log_rows(feed.tables)
    assert str(row["day"]) == "1500-01-01"
    assert row["at"] == round(datetime(1500, 1, 1, tzinfo=UTC).timestamp() * 1000)
