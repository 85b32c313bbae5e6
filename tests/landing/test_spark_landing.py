"""`land` on Spark: formats, types and partitions; and that it lands exactly what the engine without Spark lands."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from rewindow.config.feed import FeedConfig
from rewindow.core.encoding import partition_of
from rewindow.core.json_codec import load_value
from rewindow.delta.contents import read_rows
from rewindow.delta.logs import DeltaFeedTables
from rewindow.errors import ConfigError, DataError, SourceError, StorageError
from rewindow.landing.command import land
from tests.landing.local_engine import HOUR, T0, feed_config, land_locally, landings, log_rows, write_rows

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def engine_at(spark):
    from rewindow.spark.landing import SparkLandingEngine

    return lambda root: SparkLandingEngine(spark, project_root=str(root))


def one_log(every=None, landing=None, **log):
    return FeedConfig.model_validate(
        {
            "feed": "activity",
            "partitions": 3,
            "landing": {**({"every": every} if every else {}), "max_ahead": "none", **(landing or {})},
            "logs": {
                "events": {"source": {"path": "raw", "format": "parquet"}, "key": "user", "timestamp": "t", **log}
            },
        }
    )


KEYS = {
    "string": ["a", "", "ü💥", "x" * 100, "0", None],
    "long": [0, 1, -1, 2**63 - 1, -(2**63), 12345678901, None],
    "double": [0.0, -0.0, 1.5, -1.5, float("nan"), float("inf"), 1e-300, 123456.789, None],
    "boolean": [True, False, None],
    "binary": [b"", b"\x00\xff", b"abc", None],
    "decimal(38,18)": [
        Decimal(0),
        Decimal("1.5"),
        Decimal("-0.000000000000000001"),
        Decimal(12345678901234567890),
        None,
    ],
    "decimal(10,0)": [Decimal(0), Decimal(-5), Decimal(100), Decimal(9999999999)],
    "decimal(7,7)": [Decimal("0.0000001"), Decimal("-0.5")],
    "decimal(10,2)": [Decimal("0.01"), Decimal("-0.01"), Decimal("12345678.90"), Decimal("100.00"), Decimal("0.00")],
}


def arrow_of(kind, values):
    from rewindow.spark.rows import arrow_type

    return pa.array(values, arrow_type(kind))


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_and_python_agree_where_a_key_lies(spark, ansi):
    from pyspark.sql import functions as F

    from rewindow.spark.hashing import partition_column

    rows = max(map(len, KEYS.values()))
    keys = {kind: arrow_of(kind, [*values, *[None] * (rows - len(values))]) for kind, values in KEYS.items()}
    table = pa.table({"n": range(rows), **{f"k{i}": column for i, column in enumerate(keys.values())}})
    places = [
        partition_column([(F.col(f"k{i}"), kind)], is_scalar=True, partitions=1009).alias(kind)
        for i, kind in enumerate(keys)
    ]
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        found = {row["n"]: row for row in spark.createDataFrame(table).select("n", *places).collect()}
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    for kind, column in keys.items():
        for n, key in enumerate(column.to_pylist()):
            assert found[n][kind] == (0 if key is None else partition_of(key, 1009)), (kind, key)


@pytest.mark.parametrize("seed", range(2))
def test_spark_and_python_agree_on_keys_of_several_columns(spark, seed):
    from pyspark.sql import functions as F

    from rewindow.spark.hashing import partition_column

    rng = random.Random(seed)
    kinds = ["string", "long", "binary", "boolean", "decimal(10,2)", "double"]
    columns = {kind: arrow_of(kind, [rng.choice(KEYS[kind]) for _ in range(50)]) for kind in kinds}
    table = pa.table({"n": range(50), **{f"c{i}": columns[kind] for i, kind in enumerate(kinds)}})
    keys = [(F.col(f"c{i}"), kind) for i, kind in enumerate(kinds)]
    frame = spark.createDataFrame(table).select(
        "n", partition_column(keys, is_scalar=False, partitions=1009).alias("p")
    )
    found = {row.n: row.p for row in frame.collect()}
    expected = zip(*(columns[kind].to_pylist() for kind in kinds), strict=True)
    assert found == {n: partition_of(key, 1009) for n, key in enumerate(expected)}, f"seed {seed}"


@pytest.mark.parametrize("seed", [1, 2])
def test_spark_lands_what_python_lands_hour_by_hour_and_in_bulk(engine_at, tmp_path, seed):
    rng = random.Random(seed)
    feed = feed_config(
        lag=rng.choice([0, "10m"]), max_task_idle=rng.choice([0, "forever", "2h"]), log={"invalid_timestamp": "skip"}
    )
    hourly, bulk, plain = (DeltaFeedTables(f"{tmp_path}/{name}") for name in ("hourly", "bulk", "plain"))
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
    land_locally(feed, plain, tmp_path, T0 + 3 * HOUR)
    assert landings(hourly) == landings(bulk) == landings(plain), f"seed {seed}"
    assert log_rows(hourly) == log_rows(bulk) == log_rows(plain), f"seed {seed}"
    assert land(feed, hourly, engine_at(tmp_path), now_ms=T0 + 3 * HOUR).landings == ()


def test_csv_json_and_parquet_land_the_same(engine_at, tmp_path):
    rows = [
        {"user": f"u{n % 3}", "t": f"2026-01-01T00:00:0{n}Z", "x": n / 4, "n": n, "flag": n % 2 == 0} for n in range(9)
    ]
    (tmp_path / "csv").mkdir()
    (tmp_path / "json").mkdir()
    (tmp_path / "parquet").mkdir()
    names = list(rows[0])
    lines = [
        ",".join(names),
        *(",".join(str(row[name]).lower() if name == "flag" else str(row[name]) for name in names) for row in rows),
    ]
    (tmp_path / "csv" / "a.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "json" / "a.json").write_text("\n".join(json.dumps(row) for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "parquet" / "a.parquet")
    found = {}
    for kind in ("csv", "json", "parquet"):
        tables = DeltaFeedTables(f"{tmp_path}/w-{kind}")
        feed = one_log(source={"path": kind, "format": kind}, value=["x", "n", "flag"])
        land(feed, tables, engine_at(tmp_path), now_ms=T0)
        found[kind] = log_rows(tables)
    assert found["csv"] == found["json"] == found["parquet"]
    first = min(found["csv"], key=lambda row: row["n"])
    start = round(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
    assert (first["x"], first["n"], first["flag"], first["timestamp"]) == (0.0, 0, True, start)


def test_each_type_is_landed_as_it_says(engine_at, tmp_path):
    moment = datetime(2026, 3, 29, 1, 30, 0, 250_000, tzinfo=UTC)
    local = moment.replace(tzinfo=None)
    columns = {
        "user": pa.array(["ann"]),
        "t": pa.array([moment], pa.timestamp("us", "UTC")),
        "small": pa.array([7], pa.int8()),
        "single": pa.array([0.5], pa.float32()),
        "minus": pa.array([-0.0]),
        "day": pa.array([date(2026, 3, 29)]),
        "at": pa.array([moment], pa.timestamp("us", "UTC")),
        "wall": pa.array([local], pa.timestamp("us")),
        "raw": pa.array([b"\x00\x01"]),
        "price": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
        "tags": pa.array([["a", "b"]]),
        "point": pa.array([{"x": 1, "y": None}], pa.struct([("x", pa.int64()), ("y", pa.int64())])),
        "odd": pa.array([{"a b": 1}], pa.struct([("a b", pa.int64())])),
        "by": pa.array([[("k 1", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "raw" / "a.parquet")
    tables = DeltaFeedTables(f"{tmp_path}/w")
    feed = FeedConfig.model_validate({**one_log().model_dump(by_alias=True, exclude_defaults=True), "zone": "Europe/Berlin",
                                      "landing": {"max_ahead": "none"}})  # fmt: skip
    land(feed, tables, engine_at(tmp_path), now_ms=T0)
    (row,) = log_rows(tables)
    at = round(moment.timestamp() * 1000)
    plain = {name: row[name] for name in ("small", "single", "day", "at", "raw", "price", "timestamp")}
    assert plain == {"small": 7, "single": 0.5, "day": "2026-03-29", "at": at, "raw": b"\x00\x01",
                     "price": Decimal("1.50"), "timestamp": at}  # fmt: skip
    assert row["wall"] == round(datetime(2026, 3, 29, 0, 30, 0, 250_000, tzinfo=UTC).timestamp() * 1000)
    assert str(row["minus"]) == "0.0"
    nested = {name: load_value(row[name]) for name in ("tags", "point", "odd", "by")}
    assert (nested["tags"], nested["odd"], nested["by"]) == (["a", "b"], {"a b": 1}, {"k 1": 1})
    assert nested["point"] == (1, None)
    assert nested["point"].x == 1


@pytest.mark.parametrize("session_zone", ["UTC", "Asia/Tokyo"])
def test_times_in_text_are_in_the_feeds_zone_unless_they_say_another(spark, engine_at, tmp_path, session_zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", session_zone)
    try:
        times_in_text(engine_at, tmp_path)
        assert spark.conf.get("spark.sql.session.timeZone") == session_zone
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def times_in_text(engine_at, tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text(
        "user;t\nann;2026-07-01 12:00:00\nbob;2026-07-01T12:00:00+05:00\ncid;never\n"
    )
    feed = FeedConfig.model_validate(
        {
            "feed": "activity",
            "partitions": 1,
            "zone": "America/New_York",
            "logs": {
                "events": {
                    "source": {
                        "path": "raw",
                        "format": "csv",
                        "schema": "user STRING, t STRING",
                        "options": {"sep": ";"},
                    },
                    "key": "user",
                    "value": ["user2"],
                    "columns": {"user2": "user"},
                    "timestamp": "t",
                    "invalid_timestamp": "skip",
                }
            },
        }
    )
    with pytest.raises(ConfigError, match="no column 'user'"):
        land(feed, DeltaFeedTables(f"{tmp_path}/w"), engine_at(tmp_path), now_ms=2 * T0)
    log = feed.logs["events"].model_copy(update={"columns": {}, "value": None})
    feed = feed.model_copy(update={"logs": {"events": log}})
    tables = DeltaFeedTables(f"{tmp_path}/w")
    assert land(feed, tables, engine_at(tmp_path), now_ms=2 * T0).quarantined == 1
    times = {row["user"]: datetime.fromtimestamp(row["timestamp"] / 1000, UTC).hour for row in log_rows(tables)}
    assert times == {"ann": 16, "bob": 7}
    (refused,) = read_rows(f"{tmp_path}/w/rewindow/quarantine").to_pylist()
    assert refused["reason"] == "the timestamp 'never' is no time"
    strict = feed.model_copy(update={"logs": {"events": log.model_copy(update={"invalid_timestamp": "fail"})}})
    with pytest.raises(DataError, match=r"the timestamp 'never' is no time\. Mend the source"):
        land(strict, DeltaFeedTables(f"{tmp_path}/w2"), engine_at(tmp_path), now_ms=2 * T0)


def test_what_the_parser_cannot_read_fails_or_is_quarantined(engine_at, tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text("user,t,x\nann,1,1\nbob,2,many\n")
    source = {"path": "raw", "format": "csv", "schema": "user STRING, t BIGINT, x BIGINT"}
    with pytest.raises(DataError, match=r"the parser could not read it.*invalid_timestamp"):
        land(one_log(source=source), DeltaFeedTables(f"{tmp_path}/w1"), engine_at(tmp_path), now_ms=T0)
    tables = DeltaFeedTables(f"{tmp_path}/w2")
    report = land(one_log(source=source, invalid_timestamp="skip"), tables, engine_at(tmp_path), now_ms=T0)
    assert (report.rows, report.quarantined) == (1, 1)


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


def test_columns_that_a_table_got_later_are_not_landed(engine_at, tmp_path):
    tables, place = DeltaFeedTables(f"{tmp_path}/w"), f"{tmp_path}/w/raw/events"
    write_deltalake(place, pa.table({"user": ["a"], "t": [1], "x": [1]}))
    feed = one_log(source={"table": "raw.events"})
    land(feed, tables, engine_at(tmp_path), now_ms=T0)
    write_deltalake(place, pa.table({"user": ["a"], "t": [1], "y": ["n"]}), mode="append", schema_mode="merge")
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
    tables, place = DeltaFeedTables(f"{root}/w"), f"{root}/w/raw/events"
    days = ["x y", "b%2", "ü", None]
    rows = [{"user": f"u{n}", "t": n, "day": days[n % 4], "n": n} for n in range(20)]
    write_deltalake(place, pa.Table.from_pylist(rows), partition_by=["day"])
    land(one_log(source={"table": "raw.events"}), tables, engine_at(root), now_ms=T0)
    landed = log_rows(tables)
    assert sorted((row["n"], row["day"]) for row in landed) == [(n, days[n % 4]) for n in range(20)]
    (commit,) = {row["arrived_at"] for row in landed}
    assert commit > T0


def test_spark_writes_the_source_and_optimizes_it(spark, engine_at, tmp_path):
    tables, place = DeltaFeedTables(f"{tmp_path}/w"), f"{tmp_path}/raw"
    feed = one_log(source={"path": place, "format": "delta"})
    for n in range(3):
        spark.createDataFrame([("ann", n, n)], "user STRING, t BIGINT, n INT").write.format("delta").mode(
            "append"
        ).save(place)
        land(feed, tables, engine_at(tmp_path), now_ms=T0)
    spark.sql(f"OPTIMIZE delta.`{place}`")
    assert land(feed, tables, engine_at(tmp_path), now_ms=T0).landings == ()
    assert [(row["n"], row["landing"]) for row in log_rows(tables)] == [(0, 1), (1, 2), (2, 3)]
    spark.sql(f"UPDATE delta.`{place}` SET n = 9 WHERE n = 0")
    with pytest.raises(DataError, match=r"version 4 \(UPDATE\) changed or deleted rows"):
        land(feed, tables, engine_at(tmp_path), now_ms=T0)


def test_tables_whose_files_say_something_else_are_read_by_spark(spark, engine_at, tmp_path):
    """Column mapping, deletion vectors, and a first landing after rows were deleted."""
    tables, place = DeltaFeedTables(f"{tmp_path}/w"), f"{tmp_path}/raw table"
    properties = "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'"
    spark.sql(f"CREATE TABLE delta.`{place}` (user STRING, t BIGINT, day STRING, n INT) USING delta "
              f"PARTITIONED BY (day) TBLPROPERTIES ({properties})")  # fmt: skip
    spark.sql(f"INSERT INTO delta.`{place}` SELECT 'ann', id, 'a b', id FROM range(0, 10, 1, 1)")
    spark.sql(f"ALTER TABLE delta.`{place}` RENAME COLUMN n TO m")
    spark.sql(f"DELETE FROM delta.`{place}` WHERE m = 3")
    feed = one_log(source={"path": place, "format": "delta"}, arrived_at="t", every="1h", value=["day", "m"])
    assert land(feed, tables, engine_at(tmp_path), now_ms=2 * HOUR).rows == 9
    assert sorted((row["m"], row["day"]) for row in log_rows(tables)) == [(n, "a b") for n in range(10) if n != 3]
    spark.sql(f"INSERT INTO delta.`{place}` VALUES ('ann', {2 * HOUR + 1}, 'c', 11), ('ann', 5, 'c', 12)")
    report = land(feed, tables, engine_at(tmp_path), now_ms=3 * HOUR)
    assert (report.rows, report.behind) == (2, 1)
    assert {row["m"] for row in log_rows(tables) if row["day"] == "c"} == {11, 12}


def test_spark_lands_another_jobs_output_as_python_does(engine_at, tmp_path):
    from tests.delta import scene

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
