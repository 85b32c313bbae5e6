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
from rewindow.errors import ConfigError, DataError
from rewindow.streams.serde.canonical_json import load_value
from rewindow.tables.delta.content_hash import read_rows
from rewindow.tables.delta.feeds import DeltaFeedTables
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
    assert refused["reason"] == "the timestamp 'never' is not a valid time"
    strict = feed.model_copy(update={"logs": {"events": log.model_copy(update={"invalid_timestamp": "fail"})}})
    with pytest.raises(
        DataError, match=r"line \d: the timestamp 'never' is not a valid time\. Nothing was landed\. If t has times in"
    ):
        land(strict, DeltaFeedTables(f"{tmp_path}/w2"), engine_at(tmp_path), now_ms=2 * T0)


def test_what_the_parser_cannot_read_fails_or_is_quarantined(engine_at, tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text("user,t,x\nann,1,1\nbob,2,many\n")
    source = {"path": "raw", "format": "csv", "schema": "user STRING, t BIGINT, x BIGINT"}
    with pytest.raises(DataError, match=r"a\.csv, line 3, column x: 'many' is not a number.*`unreadable: skip`"):
        land(one_log(source=source), DeltaFeedTables(f"{tmp_path}/w1"), engine_at(tmp_path), now_ms=T0)
    tables = DeltaFeedTables(f"{tmp_path}/w2")
    report = land(one_log(source=source, unreadable="skip"), tables, engine_at(tmp_path), now_ms=T0)
    assert (report.rows, report.quarantined) == (1, 1)
    (refused,) = read_rows(f"{tmp_path}/w2/rewindow/quarantine").to_pylist()
    assert refused["reason"] == "the parser could not read it: a.csv: bob,2,many"


@pytest.mark.parametrize(
    ("form", "texts", "zone"),
    [
        ("dd.MM.yyyy HH:mm:ss", ["05.01.2026 08:15:00", "06.01.2026 00:05:00", "31.02.2026 12:00:00"], "Europe/Berlin"),
        ("dd/MM/yyyy HH:mm Z", ["05/01/2026 08:15 +0100", "06/01/2026 00:05 +0100", "soon"], "America/New_York"),
    ],
)
def test_one_bad_time_spoils_no_column_in_another_form(engine_at, tmp_path, form, texts, zone):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text("user;t\n" + "".join(f"u{n};{text}\n" for n, text in enumerate(texts)))
    source = {"path": "raw", "format": "csv", "options": {"sep": ";", "timestampFormat": form}}
    log = {"source": source, "key": "user", "timestamp": "t", "invalid_timestamp": "skip"}
    feed = FeedConfig.model_validate(
        {"feed": "activity", "partitions": 1, "zone": zone, "landing": {"max_ahead": "none"}, "logs": {"events": log}}
    )
    tables = DeltaFeedTables(f"{tmp_path}/w")
    assert land(feed, tables, engine_at(tmp_path), now_ms=2 * T0).quarantined == 1
    found = {row["user"]: datetime.fromtimestamp(row["timestamp"] / 1000, UTC).isoformat() for row in log_rows(tables)}
    assert found == {"u0": "2026-01-05T07:15:00+00:00", "u1": "2026-01-05T23:05:00+00:00"}
    strict = feed.model_copy(
        update={"logs": {"events": feed.logs["events"].model_copy(update={"invalid_timestamp": "fail"})}}
    )
    with pytest.raises(DataError, match=f"the timestamp '{texts[-1]}' is not a valid time.*`timestampFormat: {form}`"):
        land(strict, DeltaFeedTables(f"{tmp_path}/w2"), engine_at(tmp_path), now_ms=2 * T0)


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("every", [None, "1h"])
def test_a_declared_time_in_another_form_names_file_line_and_column(engine_at, tmp_path, kind, every):
    (tmp_path / "raw").mkdir()
    rows = ["2026-01-05T08:15:00Z", "2026-01-05T08:16:00Z"]
    texts = {
        "csv": "user,t\n" + "".join(f"ann,{text}\n" for text in rows),
        "json": "".join(f'{{"user": "ann", "t": "{text}"}}\n' for text in rows),
    }
    (tmp_path / "raw" / f"a.{kind}").write_text(texts[kind])
    source = {"path": "raw", "format": kind, "schema": "user STRING, t TIMESTAMP"}
    form = {"options": {"timestampFormat": "dd.MM.yyyy HH:mm"}}
    where = {"csv": r"a\.csv, line 2, column t: '", "json": r'a\.json, line 1, field t: "'}[kind]
    said = (
        where + r"2026-01-05T08:15:00Z.* is not a time in the form `timestampFormat: dd\.MM\.yyyy HH:mm`\. Nothing was"
    )
    feed = one_log(source={**source, **form}, every=every, arrived_at="t")
    with pytest.raises(DataError, match=said):
        land(feed, DeltaFeedTables(f"{tmp_path}/w1"), engine_at(tmp_path), now_ms=1_767_700_000_000)
    (tmp_path / "raw" / f"a.{kind}").write_text(texts[kind].replace(rows[1], "05.01.2026 08:16"))
    said = (
        r"05\.01\.2026 08:16.* is not a time\. If the file has times in another form, .*`options: \{timestampFormat: "
    )
    with pytest.raises(DataError, match=said):
        land(
            one_log(source=source, every=every, arrived_at="t"),
            DeltaFeedTables(f"{tmp_path}/w2"),
            engine_at(tmp_path),
            now_ms=1_767_700_000_000,
        )
