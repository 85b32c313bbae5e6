"""`order: file`: the records of a log stand as the rows of its files do, so records are late as in their topic."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.config.feed import FeedConfig
from rewindow.control.ingest.land import land
from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.land_by_arrow import Unused, arrow_at
from tests.ingest.local_engine import HOUR, T0, log_rows, one_log
from tests.refusals import refused, told

KINDS = ["csv", "json", "parquet"]
ONE = {"partitions": 1}


def write(root, name, rows, kind):
    """Write rows to a file; of JSON, the objects have different forms, which are read in groups."""
    path = root / "raw" / f"{name}.{kind}"
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        schema = pa.schema([("user", pa.string()), ("t", pa.int64()), ("got", pa.int64()), ("x", pa.int64())])
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=7)
    elif kind == "csv":
        path.write_text("user,t,got,x\n" + "".join(f"{r['user']},{r['t']},{r['got']},{r['x']}\n" for r in rows))
    else:
        turned = [dict(reversed(row.items())) if row["x"] % 3 else row for row in rows]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in turned))


def out_of_order(rng, count, first=0):
    """Return rows in an order that neither times nor values have; ``x`` counts them. Times and arrivals repeat."""
    return [
        {"user": rng.choice("ab"), "t": T0 + rng.randrange(50), "got": T0 + rng.randrange(3) * HOUR, "x": first + n}
        for n in range(count)
    ]


def feed(kind, every=None, **log):
    log = {"source": {"path": "raw", "format": kind}, "order": "file", **log}
    return one_log(every=every, **log).model_copy(update=ONE)


def landed(tables, name="x"):
    return [row[name] for row in log_rows(tables)]


@pytest.fixture(params=["at once", "in runs"])
def memory(request, monkeypatch):
    if request.param == "in runs":
        monkeypatch.setattr("rewindow.engine.worker.landing.parquet_files._READ_ROWS", 3)
        monkeypatch.setattr("rewindow.engine.worker.landing.sorted_runs._BATCH_ROWS", 3)
        monkeypatch.setattr("rewindow.engine.worker.landing.sorted_runs._SHARE", 2**20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("memory")
def test_rows_stand_in_the_log_as_in_the_files_by_name(tmp_path, kind):
    rows = out_of_order(random.Random(kind), 60)
    # `sorted` by code points: capitals first, and 10 before 2.
    for number, name in enumerate(["B", "a/10", "a/2", "ä"]):
        write(tmp_path, name, rows[15 * number : 15 * number + 15], kind)
    tables = DeltaFeedTables(f"{tmp_path}/w")
    land(feed(kind), tables, arrow_at(tmp_path), now_ms=T0)
    assert landed(tables) == list(range(60))
    assert landed(tables, "timestamp") == [row["t"] for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_stand_so_in_each_landing_and_each_generation(tmp_path, kind):
    rows = out_of_order(random.Random(kind), 30)
    tables = DeltaFeedTables(f"{tmp_path}/w")
    for number in range(3):
        write(tmp_path, f"{number}", rows[10 * number : 10 * number + 10], kind)
        land(feed(kind), tables, arrow_at(tmp_path), now_ms=T0)
    assert landed(tables) == list(range(30))
    land(feed(kind), tables, arrow_at(tmp_path), now_ms=T0, new_generation=True)
    assert [row["x"] for row in log_rows(tables, generation=2)] == list(range(30))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_bit_by_bit", [False, True])
def test_with_intervals_rows_of_one_arrival_stand_so(tmp_path, kind, is_bit_by_bit):
    rows = out_of_order(random.Random(kind), 40)
    tables, hourly = DeltaFeedTables(f"{tmp_path}/w"), feed(kind, every="1h", arrived_at="got")
    for number in range(2):
        write(tmp_path, f"{number}", rows[20 * number : 20 * number + 20], kind)
    for hour in range(1, 4) if is_bit_by_bit else [3]:
        land(hourly, tables, arrow_at(tmp_path), now_ms=T0 + 9 * HOUR, until_ms=T0 + hour * HOUR)
    assert landed(tables) == [row["x"] for row in sorted(rows, key=lambda row: row["got"])]


def test_an_extractor_sees_the_partition_time_of_the_files(tmp_path, monkeypatch):
    (tmp_path / "times.py").write_text("def so_far(record, partition_time):\n    return record.value.t\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = out_of_order(random.Random(5), 20)
    write(tmp_path, "0", rows, "csv")
    tables = DeltaFeedTables(f"{tmp_path}/w")
    land(feed("csv", timestamp="times:so_far"), tables, arrow_at(tmp_path), now_ms=T0)
    assert landed(tables) == list(range(20))


def test_another_order_needs_a_new_generation(tmp_path):
    write(tmp_path, "0", out_of_order(random.Random(1), 9), "csv")
    tables, by_time = DeltaFeedTables(f"{tmp_path}/w"), feed("csv", order=["x"])
    land(by_time, tables, arrow_at(tmp_path), now_ms=T0)
    with refused("feed-definition-changed", changes='logs.events.order: ["x"] -> "file"'):
        land(feed("csv"), tables, arrow_at(tmp_path), now_ms=T0)
    land(feed("csv"), tables, arrow_at(tmp_path), now_ms=T0, new_generation=True)
    assert [row["x"] for row in log_rows(tables, generation=2)] == list(range(9))


@pytest.mark.parametrize(
    "wrong", [{"order": "got"}, {"source": {"path": "raw", "format": "delta"}}, {"source": {"table": "raw.events"}}]
)
def test_only_files_have_an_order(wrong):
    with pytest.raises(ValueError, match="order"):
        FeedConfig.model_validate(feed("csv", **wrong).model_dump(by_alias=True))


def test_land_says_once_that_no_record_of_a_landing_is_late(tmp_path):
    tables, by_time = DeltaFeedTables(f"{tmp_path}/w"), one_log(source={"path": "raw", "format": "csv"})
    found = []
    for number in range(2):
        write(tmp_path, f"{number}", out_of_order(random.Random(number), 5), "csv")
        found.append(land(by_time, tables, arrow_at(tmp_path), now_ms=T0))
    told(found[0].orders, "order-of-records", topic="events", order="file")
    assert found[0].as_json()["order_codes"] == ["order-of-records"]
    assert found[1].orders == ()
    again = land(by_time, tables, arrow_at(tmp_path), now_ms=T0, new_generation=True)
    told(again.orders, "order-of-records", topic="events", unit="landing")


@pytest.mark.parametrize("log", [{"arrived_at": "got"}, {"order": ["x"]}, {"order": "file"}])
def test_land_says_nothing_of_an_order_that_the_feed_names(tmp_path, log):
    write(tmp_path, "0", out_of_order(random.Random(1), 5), "csv")
    named = one_log(source={"path": "raw", "format": "csv"}, **log)
    assert land(named, DeltaFeedTables(f"{tmp_path}/w"), arrow_at(tmp_path), now_ms=T0).orders == ()


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS)
def test_workers_of_spark_keep_the_order_of_files(spark, tmp_path, kind, monkeypatch):
    from rewindow.engine.spark.spark_landing import SparkLandingEngine, SparkPasses

    monkeypatch.setattr("rewindow.engine.worker.landing.text_source.PART_BYTES", 200)
    rows = out_of_order(random.Random(kind), 80)
    for number, name in enumerate(["a b+c", "b", "ä", "z/y"]):
        write(tmp_path, name, rows[20 * number : 20 * number + 20], kind)
    passes = SparkPasses(lambda: spark, slots=2, project_root=str(tmp_path))
    engines = {
        "passes": ArrowLandingEngine(Unused, passes, project_root=str(tmp_path), most_rows=0, on_workers=passes.read)
    }
    if kind == "parquet":
        engines["spark"] = SparkLandingEngine(spark, project_root=str(tmp_path))
    in_order = [row["x"] for row in [*rows[:40], *rows[60:], *rows[40:60]]]
    for way, engine in engines.items():
        tables = DeltaFeedTables(f"{tmp_path}/{way}")
        land(feed(kind, value=["x"]), tables, engine, now_ms=T0)
        assert landed(tables) == in_order, way
        hourly = DeltaFeedTables(f"{tmp_path}/{way} by the hour")
        land(feed(kind, every="1h", arrived_at="got", value=["x"]), hourly, engine, now_ms=T0 + 9 * HOUR)
        by_hour = sorted((rows[x] for x in in_order), key=lambda row: row["got"])
        assert landed(hourly) == [row["x"] for row in by_hour], way


@pytest.mark.spark
def test_spark_lands_a_recorded_topic_like_arrow(spark, tmp_path):
    from rewindow.engine.spark.spark_landing import SparkLandingEngine

    rng = random.Random(4)
    rows = [{"user": f"u{n}", "t": T0 - n, "got": rng.randrange(4), "at": 2 * n, "x": n} for n in range(40)]
    path = tmp_path / "raw" / "0.parquet"
    path.parent.mkdir()
    pq.write_table(pa.Table.from_pylist(rng.sample(rows, 40)), path, row_group_size=9)
    log = {
        "partition": "got",
        "offset": "at",
        "source": {"path": "raw", "format": "parquet"},
        "invalid_timestamp": "skip",
    }
    found = {}
    for way, engine in (
        ("arrow", arrow_at(tmp_path)),
        ("spark", SparkLandingEngine(spark, project_root=str(tmp_path))),
    ):
        tables = DeltaFeedTables(f"{tmp_path}/{way}")
        recorded = one_log(**log, value=["x"], unreadable="skip")
        report = land(recorded, tables, engine, now_ms=T0)
        # The feed has the partitions 0 to 2.
        assert report.quarantined == sum(row["got"] == 3 for row in rows)
        found[way] = [(row["partition"], row["x"]) for row in log_rows(tables)]
    assert found["spark"] == found["arrow"] == sorted((row["got"], row["x"]) for row in rows if row["got"] < 3)
