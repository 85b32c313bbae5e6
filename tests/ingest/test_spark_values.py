"""Formats, types and times as text: what Spark lands, what it refuses, and what it quarantines."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.config.feed import FeedConfig
from rewindow.control.ingest.land import land
from rewindow.errors import DataError
from rewindow.streams.serde.canonical_json import load_value
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.table_rows import read_rows
from tests.ingest.local_engine import T0, log_rows, one_log

pytestmark = pytest.mark.spark


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
    instant = datetime(2026, 3, 29, 1, 30, 0, 250_000, tzinfo=UTC)
    local = instant.replace(tzinfo=None)
    columns = {
        "user": pa.array(["ann"]),
        "t": pa.array([instant], pa.timestamp("us", "UTC")),
        "small": pa.array([7], pa.int8()),
        "single": pa.array([0.5], pa.float32()),
        "minus": pa.array([-0.0]),
        "day": pa.array([date(2026, 3, 29)]),
        "at": pa.array([instant], pa.timestamp("us", "UTC")),
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
    at = round(instant.timestamp() * 1000)
    scalars = {name: row[name] for name in ("small", "single", "day", "at", "raw", "price", "timestamp")}
    assert scalars == {"small": 7, "single": 0.5, "day": "2026-03-29", "at": at, "raw": b"\x00\x01",
                     "price": Decimal("1.50"), "timestamp": at}  # fmt: skip
    assert row["wall"] == round(datetime(2026, 3, 29, 0, 30, 0, 250_000, tzinfo=UTC).timestamp() * 1000)
    assert str(row["minus"]) == "0.0"
    nested = {name: load_value(row[name]) for name in ("tags", "point", "odd", "by")}
    assert (nested["tags"], nested["odd"], nested["by"]) == (["a", "b"], {"a b": 1}, {"k 1": 1})
    assert nested["point"] == (1, None)
    assert nested["point"].x == 1


@pytest.mark.parametrize("session_zone", ["UTC", "Asia/Tokyo"])
def test_times_without_a_zone_are_in_the_feeds_zone_whatever_that_of_the_session_is(
    spark, engine_at, tmp_path, session_zone
):
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
    source = {"path": "raw", "format": "csv", "schema": "user STRING, t STRING", "options": {"delimiter": ";"}}
    log = {"source": source, "key": "user", "timestamp": "t", "invalid_timestamp": "skip"}
    base = {"feed": "activity", "partitions": 1, "zone": "America/New_York"}
    tables = DeltaFeedTables(f"{tmp_path}/w")
    assert land(feed_of(base, log), tables, engine_at(tmp_path), now_ms=2 * T0).quarantined == 1
    times = {row["user"]: datetime.fromtimestamp(row["timestamp"] / 1000, UTC).hour for row in log_rows(tables)}
    assert times == {"ann": 16, "bob": 7}
    (refused,) = read_rows(f"{tmp_path}/w/rewindow/quarantine").to_pylist()
    assert "'never'" in refused["reason"]
    strict = feed_of(base, {**log, "invalid_timestamp": "fail"})
    with pytest.raises(DataError, match=r"a\.csv, line 4: .*'never'.*time_format"):
        land(strict, DeltaFeedTables(f"{tmp_path}/w2"), engine_at(tmp_path), now_ms=2 * T0)


def feed_of(base, log):
    return FeedConfig.model_validate({**base, "logs": {"events": log}})
