"""`land` on Spark: all kinds of sources, columns and tables. It lands exactly what the engine without Spark lands."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from rewindow.config.feed import FeedConfig
from rewindow.control.ingest.land import land
from rewindow.errors import ConfigError, DataError, SourceError, StorageError
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import HOUR, T0, feed_config, land_locally, landings, log_rows, one_log, write_rows

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", [1, 2])
def test_spark_lands_what_python_lands_hour_by_hour_and_in_bulk(engine_at, tmp_path, seed):
    rng = random.Random(seed)
    feed = feed_config(
        lag=rng.choice([0, "10m"]), max_task_idle=rng.choice([0, "forever", "2h"]), log={"invalid_timestamp": "skip"}
    )
    hourly, bulk, ungrouped = (DeltaFeedTables(f"{tmp_path}/{name}") for name in ("hourly", "bulk", "plain"))
    for hour in range(3):
        rows = [
            {
                "user": rng.choice(["ann", "bob", "cid", None]),
                "t": T0 + hour * HOUR + rng.randrange(-HOUR, HOUR) if rng.random() < 0.9 else None,
                "got": T0 + hour * HOUR + rng.randrange(HOUR) // 1000 * 1000,
                "x": rng.choice([None, 1, 2]),
            }
            for _ in range(rng.randrange(300))
        ]
        write_rows(tmp_path, f"hour-{hour}", rows)
        land(feed, hourly, engine_at(tmp_path), now_ms=T0 + (hour + 1) * HOUR)
    land(feed, bulk, engine_at(tmp_path), now_ms=T0 + 3 * HOUR)
    land_locally(feed, ungrouped, tmp_path, T0 + 3 * HOUR)
    assert landings(hourly) == landings(bulk) == landings(ungrouped), f"seed {seed}"
    assert log_rows(hourly) == log_rows(bulk) == log_rows(ungrouped), f"seed {seed}"
    assert land(feed, hourly, engine_at(tmp_path), now_ms=T0 + 3 * HOUR).landings == ()


def test_directories_name_columns_and_order_columns_decide_ties(engine_at, tmp_path):
    for year, values in ((2025, [3, 1]), (2026, [2, 4])):
        (tmp_path / "raw" / f"year={year}").mkdir(parents=True)
        rows = [{"user": "ann", "t": 1, "seq": -n, "x": n} for n in values]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "raw" / f"year={year}" / "a.parquet")
    tables = DeltaFeedTables(f"{tmp_path}/w")
    land(one_log(order=["seq"], value=["x", "year"]), tables, engine_at(tmp_path), now_ms=T0)
    assert [(row["x"], row["year"]) for row in log_rows(tables)] == [(4, 2026), (3, 2025), (2, 2026), (1, 2025)]


def test_columns_that_cannot_be_a_records_are_named_with_the_fix(engine_at, tmp_path):
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table({"user": ["a"], "t": [1], "User Id": [1], "offset": [1]}), tmp_path / "raw" / "a.parquet")
    engine, tables = engine_at(tmp_path), DeltaFeedTables(f"{tmp_path}/w")
    with pytest.raises(ConfigError, match=r"'User Id'.*columns: \{other_name: \"User Id\"\}"):
        land(one_log(), tables, engine, now_ms=T0)
    with pytest.raises(ConfigError, match=r"'offset'.*every log has"):
        land(one_log(columns={"id": "User Id"}), tables, engine, now_ms=T0)
    land(one_log(columns={"id": "User Id", "row_offset": "offset"}), tables, engine, now_ms=T0)
    assert log_rows(tables)[0]["row_offset"] == 1


def test_a_users_extractor_runs_in_the_workers(engine_at, tmp_path):
    (tmp_path / "times").mkdir()
    (tmp_path / "times" / "__init__.py").write_text("")
    (tmp_path / "times" / "mine.py").write_text("def double(record, partition_time):\n    return record.value.x * 2\n")
    write_rows(tmp_path, "a", [{"user": "ann", "t": 0, "got": 0, "x": n} for n in (1, 2)])
    tables = DeltaFeedTables(f"{tmp_path}/w")
    land(one_log(timestamp="times.mine:double", value=["x"]), tables, engine_at(tmp_path), now_ms=T0)
    assert [row["timestamp"] for row in log_rows(tables)] == [2, 4]
    with pytest.raises(ConfigError, match=r"times\.gone:double"):
        land(one_log(timestamp="times.gone:double"), DeltaFeedTables(f"{tmp_path}/w2"), engine_at(tmp_path), now_ms=T0)


def test_columns_that_a_table_got_later_are_refused_or_ignored(engine_at, tmp_path):
    tables, source_path = DeltaFeedTables(f"{tmp_path}/w"), f"{tmp_path}/w/raw/events"
    write_deltalake(source_path, pa.table({"user": ["a"], "t": [1], "x": [1]}))
    feed = one_log(source={"table": "raw.events"})
    land(feed, tables, engine_at(tmp_path), now_ms=T0)
    write_deltalake(source_path, pa.table({"user": ["a"], "t": [1], "y": ["n"]}), mode="append", schema_mode="merge")
    with pytest.raises(SourceError, match=r"raw\.events has the field y, which is not landed.*`ignore: \[y\]`"):
        land(feed, tables, engine_at(tmp_path), now_ms=T0)
    feed = one_log(source={"table": "raw.events"}, ignore=["y"])
    assert land(feed, tables, engine_at(tmp_path), now_ms=T0).rows == 1
    assert [(row["x"], "y" in row) for row in log_rows(tables)] == [(1, False), (None, False)]


def test_a_column_that_became_another_type_is_refused(engine_at, tmp_path):
    tables = DeltaFeedTables(f"{tmp_path}/w")
    write_rows(tmp_path, "a", [{"user": "ann", "t": 0, "got": 0, "x": 1}])
    land(one_log(), tables, engine_at(tmp_path), now_ms=T0)
    pq.write_table(pa.table({"user": ["a"], "t": [1], "got": [1], "x": ["text"]}), tmp_path / "raw" / "b.parquet")
    with pytest.raises((SourceError, StorageError)) as refused:
        land(one_log(), tables, engine_at(tmp_path), now_ms=T0)
    assert "x" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_partitioned_delta_table_with_awkward_names(engine_at, tmp_path):
    root = tmp_path / "a b%c+ü"
    tables, source_path = DeltaFeedTables(f"{root}/w"), f"{root}/w/raw/events"
    days = ["x y", "b%2", "ü", None]
    rows = [{"user": f"u{n}", "t": n, "day": days[n % 4], "n": n} for n in range(20)]
    write_deltalake(source_path, pa.Table.from_pylist(rows), partition_by=["day"])
    land(one_log(source={"table": "raw.events"}), tables, engine_at(root), now_ms=T0)
    landed = log_rows(tables)
    assert sorted((row["n"], row["day"]) for row in landed) == [(n, days[n % 4]) for n in range(20)]
    (commit,) = {row["arrived_at"] for row in landed}
    assert commit > T0


def test_spark_writes_the_source_and_optimizes_it(spark, engine_at, tmp_path):
    tables, source_path = DeltaFeedTables(f"{tmp_path}/w"), f"{tmp_path}/raw"
    feed = one_log(source={"path": source_path, "format": "delta"})
    for n in range(3):
        spark.createDataFrame([("ann", n, n)], "user STRING, t BIGINT, n INT").write.format("delta").mode(
            "append"
        ).save(source_path)
        land(feed, tables, engine_at(tmp_path), now_ms=T0)
    spark.sql(f"OPTIMIZE delta.`{source_path}`")
    assert land(feed, tables, engine_at(tmp_path), now_ms=T0).landings == ()
    assert [(row["n"], row["landing"]) for row in log_rows(tables)] == [(0, 1), (1, 2), (2, 3)]
    spark.sql(f"UPDATE delta.`{source_path}` SET n = 9 WHERE n = 0")
    with pytest.raises(DataError, match=r"version 4 \(UPDATE\) changed or deleted rows"):
        land(feed, tables, engine_at(tmp_path), now_ms=T0)


def test_tables_whose_files_say_something_else_are_read_by_spark(spark, engine_at, tmp_path):
    """The table has column mapping and deletion vectors, and rows were deleted before its first landing."""
    tables, source_path = DeltaFeedTables(f"{tmp_path}/w"), f"{tmp_path}/raw table"
    properties = "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'"
    spark.sql(f"CREATE TABLE delta.`{source_path}` (user STRING, t BIGINT, day STRING, n INT) USING delta "
              f"PARTITIONED BY (day) TBLPROPERTIES ({properties})")  # fmt: skip
    spark.sql(f"INSERT INTO delta.`{source_path}` SELECT 'ann', id, 'a b', id FROM range(0, 10, 1, 1)")
    spark.sql(f"ALTER TABLE delta.`{source_path}` RENAME COLUMN n TO m")
    spark.sql(f"DELETE FROM delta.`{source_path}` WHERE m = 3")
    feed = one_log(source={"path": source_path, "format": "delta"}, arrived_at="t", every="1h", value=["day", "m"])
    assert land(feed, tables, engine_at(tmp_path), now_ms=2 * HOUR).rows == 9
    assert sorted((row["m"], row["day"]) for row in log_rows(tables)) == [(n, "a b") for n in range(10) if n != 3]
    spark.sql(f"INSERT INTO delta.`{source_path}` VALUES ('ann', {2 * HOUR + 1}, 'c', 11), ('ann', 5, 'c', 12)")
    report = land(feed, tables, engine_at(tmp_path), now_ms=3 * HOUR)
    assert (report.rows, report.behind) == (2, 1)
    assert {row["m"] for row in log_rows(tables) if row["day"] == "c"} == {11, 12}


def test_spark_lands_another_jobs_output_as_python_does(engine_at, tmp_path):
    from tests.tables import scene

    log = {"source": {"job": scene.JOB, "output": "totals"}, "key": "user", "timestamp": "_timestamp"}
    feed = FeedConfig.model_validate({"feed": "totals", "partitions": 3, "logs": {"events": log}})
    found = []
    for name in ("spark", "plain"):
        warehouse = str(tmp_path / name)
        scene.land(warehouse, 3)
        scene.replay(warehouse, name)
        tables = DeltaFeedTables(warehouse)
        if name == "spark":
            land(feed, tables, engine_at(tmp_path), now_ms=T0)
        else:
            land_locally(feed, tables, tmp_path, T0)
        found.append((landings(tables, "totals"), log_rows(tables, "events", "totals")))
    assert found[0] == found[1]
    assert found[0][1]
