"""Arrow in this process, Arrow in Spark's workers, and Spark alone land the same rows and decide the same columns."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from rewindow.contracts.text_options import TEXT_FORMATS
from rewindow.control.ingest.feed_progress import fold_progress
from rewindow.control.ingest.intervals import later_rows
from rewindow.control.ingest.land import land
from rewindow.control.ingest.landings import GENERATION
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.land_by_arrow import Unused
from tests.ingest.local_engine import HOUR, T0, landings, log_rows, one_log

pytestmark = pytest.mark.spark

QUOTE = '"'
START = datetime(1900, 1, 1, tzinfo=UTC)
KINDS = {
    "user": (pa.string(), ["", "a", "B", "ä", "\uffff", "\U0001f600", "ann"]),
    "t": (pa.int64(), [0, 1, T0, T0 + 1]),
    "got": (pa.timestamp("us", "UTC"), [datetime.fromtimestamp(T0 / 1000 + n * 900, UTC) for n in range(16)]),
    "tiny": (pa.int8(), [-128, 0, 127]),
    "whole": (pa.int32(), [-(2**31), 5]),
    "single": (pa.float32(), [0.1, -0.0, 3e38, float("nan")]),
    "double": (pa.float64(), [-0.0, 0.0, float("inf"), 1e-300, float("nan")]),
    "flag": (pa.bool_(), [True, False]),
    "raw": (pa.binary(), [b"", b"\x00", b"\xff\xfe"]),
    "day": (pa.date32(), [date(1, 1, 1), date(1582, 10, 10), date(9999, 12, 31)]),
    "price": (pa.decimal128(20, 4), [Decimal("0.0000"), Decimal("-12.5000"), Decimal("9999999999999999.9999")]),
    "local": (pa.timestamp("us"), [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2026, 3, 29, 2, 30)]),  # noqa: DTZ001
    "moment": (pa.timestamp("ms", "UTC"), [START, START + timedelta(milliseconds=1)]),
}


def awkward(rng, rows):
    """Return rows with awkward values of every type, some of them null."""
    columns = {
        name: pa.array([None if rng.random() < 0.1 else rng.choice(values) for _ in range(rows)], kind)
        for name, (kind, values) in KINDS.items()
    }
    columns["t"] = pa.array([rng.choice(KINDS["t"][1]) for _ in range(rows)], pa.int64())
    columns["got"] = pa.array([rng.choice(KINDS["got"][1]) for _ in range(rows)], KINDS["got"][0])
    return pa.table(columns)


def land_in_every_way(spark, tmp_path, feed, now_ms, *, with_positions=False):
    """Land with each engine; return the landings, the columns of the generation, and the rows of the log.

    ``with_positions``: return instead which files have rows of later intervals. Spark alone reads no text.
    """
    from rewindow.engine.spark.spark_landing import SparkLandingEngine, SparkPasses
    from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine

    other = SparkLandingEngine(spark, project_root=str(tmp_path))
    passes = SparkPasses(lambda: spark, slots=2, project_root=str(tmp_path))
    found = {}
    is_text = feed.logs["events"].source.format in TEXT_FORMATS
    for way, most_rows in (*(() if is_text else (("spark", None),)), ("arrow", 10**9), ("passes", 0)):
        engine = (
            other
            if most_rows is None
            else ArrowLandingEngine(
                Unused, passes, project_root=str(tmp_path), most_rows=most_rows, on_workers=passes.read
            )
        )
        tables = DeltaFeedTables(f"{tmp_path}/{way}")
        land(feed, tables, engine, now_ms=now_ms)
        columns = [row.body["logs"] for row in tables.state("activity") if row.kind == GENERATION]
        if with_positions:
            found[way] = later_rows(fold_progress(tables.state("activity")).positions["events"])
            continue
        found[way] = landings(tables), columns, [list(map(repr, row.items())) for row in log_rows(tables)]
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_awkward_parquet_files_are_landed_alike(spark, tmp_path, seed):
    rng = random.Random(seed)
    for number in range(3):
        path = tmp_path / "raw" / f"{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(awkward(rng, 60), path, row_group_size=25)
    feed = one_log(every="1h", arrived_at="got", key=["user", "whole", "flag", "raw", "double", "price"])
    found = land_in_every_way(spark, tmp_path, feed, T0 + 9 * HOUR)
    assert found["arrow"] == found["spark"], f"seed {seed}"
    assert found["passes"] == found["spark"], f"seed {seed}"


def test_the_key_and_the_time_can_be_values_too_under_other_names(spark, tmp_path):
    (tmp_path / "raw").mkdir()
    rows = pa.table({"user": ["ann", None, "bob"], "t": [T0, T0 + 1, T0 + 2], "x": [1, 2, 3]})
    pq.write_table(rows, tmp_path / "raw" / "a.parquet")
    names = {"owner": "user", "at": "t", "n": "x"}
    feed = one_log(columns=names, value=list(names), arrived_at=None)
    found = land_in_every_way(spark, tmp_path, feed, T0)
    assert found["arrow"] == found["spark"] == found["passes"]
    pairs = {"('user', 'ann')", "('owner', 'ann')", f"('timestamp', {T0})", f"('at', {T0})", "('n', 1)"}
    assert any(pairs <= set(row) for row in found["arrow"][2])


def test_a_delta_table_is_landed_alike(spark, tmp_path):
    rng = random.Random(3)
    path = str(tmp_path / "source")
    for number in range(3):
        rows = awkward(rng, 40).drop_columns(["tiny"] if number == 0 else [])
        rows = rows.append_column("part", pa.array([rng.choice(["x", "y z", None]) for _ in range(40)]))
        write_deltalake(path, rows, partition_by=["part"], mode="append", schema_mode="merge")
    feed = one_log(source={"path": "source", "format": "delta"}, key="part", order=["moment"], timestamp="arrival")
    found = land_in_every_way(spark, tmp_path, feed, T0)
    assert found["arrow"] == found["spark"]
    assert found["passes"] == found["spark"]


def test_files_that_spark_wrote_are_landed_alike(spark, tmp_path):
    rows = [(f"u{n % 7}", n, float(n), None if n % 3 else "x") for n in range(50)]
    spark.createDataFrame(rows, "user string, t bigint, x double, note string comment 'why'").repartition(
        3
    ).write.parquet(str(tmp_path / "raw"))
    found = land_in_every_way(spark, tmp_path, one_log(), T0)
    assert found["arrow"] == found["spark"]
    assert found["passes"] == found["spark"]


DIRECTORIES = {
    "days and hours": ["date=2026-01-04/hour=07", "date=2026-01-05/hour=12"],
    "large numbers": ["n=5", "n=4000000000", "n=__HIVE_DEFAULT_PARTITION__"],
    "words": ["shop=north%3A1", "shop=a b", "shop=Zürich"],
    "a column of the files too": ["x=7", "x=8"],
    "the key of the files too": ["user=zed", "user=__HIVE_DEFAULT_PARTITION__"],
}


@pytest.mark.parametrize("case", DIRECTORIES)
def test_columns_of_directories_are_landed_alike(spark, tmp_path, case):
    for number, folder in enumerate(DIRECTORIES[case]):
        path = tmp_path / "raw" / folder / "a.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"user": ["ann", "bob"], "t": [number, 5], "x": ["p", "q"], "y": [number, 1]}), path)
    found = land_in_every_way(spark, tmp_path, one_log(), T0)
    assert found["arrow"] == found["spark"]
    assert found["passes"] == found["spark"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_each_records_from_when_a_file_has_rows_of_later_intervals(spark, tmp_path, kind):
    folder = tmp_path / "raw" / "with blanks + more"
    folder.mkdir(parents=True)
    for name, hours in (("a", (0, 2, 1)), ("b", (0,)), ("c", (0, 3))):
        got = [datetime.fromtimestamp((T0 + hour * HOUR) / 1000, UTC) for hour in hours]
        table = pa.table({"user": ["ann"] * len(hours), "t": [T0 + hour for hour in hours], "got": got})
        path = f"{folder}/{name} {kind}.{kind}"
        if kind == "parquet":
            pq.write_table(table, path)
        else:
            lines = [f"ann,{T0 + hour},{at:%Y-%m-%dT%H:%M:%SZ}" for hour, at in zip(hours, got, strict=True)]
            Path(path).write_text("\n".join(["user,t,got", *lines, ""]))
    feed = one_log(every="1h", source={"path": "raw", "format": kind}, arrived_at="got")
    found = land_in_every_way(spark, tmp_path, feed, T0 + HOUR, with_positions=True)
    name = f"with blanks + more/%s {kind}.{kind}"
    later = {name % "a": T0 + HOUR, name % "c": T0 + 3 * HOUR}
    assert found == dict.fromkeys(found, later)
    assert found.keys() >= {"arrow", "passes"}


TEXTS = {"csv": "user,t,got,x,note,day\n", "json": ""}
"""What each format's files begin with."""


def in_quotes(value):
    return "" if value is None else f'"{str(value).replace(QUOTE, QUOTE * 2)}"'


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("part_bytes", [1 << 20, 997])
def test_text_files_are_landed_alike_in_this_process_and_divided_among_workers(
    spark, tmp_path, kind, part_bytes, monkeypatch
):
    monkeypatch.setattr("rewindow.engine.worker.landing.text_source.PART_BYTES", part_bytes)
    rng = random.Random(5)
    for number in range(3):
        folder = tmp_path / "raw" / f"shop={'north' if number else '__HIVE_DEFAULT_PARTITION__'}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for _ in range(40):
            row = {
                "user": rng.choice(["ann", "bob", "\u00d6l", "a, b", ""]),
                "t": T0 + rng.randrange(9),
                "got": f"{datetime.fromtimestamp(T0 / 1000 + rng.randrange(8) * 900, UTC):%Y-%m-%dT%H:%M:%SZ}",
                "x": rng.choice([0.5, 2.25, None]),
                "note": rng.choice(['say "so"', "n/a", None]),
                "day": "2026-01-05",
            }
            if kind == "json":
                lines.append(json.dumps(row))
            else:
                lines.append(",".join(map(in_quotes, row.values())))
        (folder / f"{number}.{kind}").write_text(TEXTS[kind] + "\n".join(lines) + "\n", encoding="utf-8")
    feed = one_log(source={"path": "raw", "format": kind}, every="1h", arrived_at="got", order=["x"])
    found = land_in_every_way(spark, tmp_path, feed, T0 + 9 * HOUR)
    assert len(found["arrow"][2]) == 120
    assert found["passes"] == found["arrow"]


def test_csv_columns_with_signs_in_their_names_are_landed_alike(spark, tmp_path):
    (tmp_path / "raw").mkdir()
    header = "Öl (user),t,days (n),share [%],a/b & c+d,no #1: why?!,cost €$,at 5°,it's,x-y*,z\n"
    for number in range(2):
        rows = "".join(f"u{row},{T0 + row},{row},0.5,x{number},y,2,3,z,,\n" for row in range(3))
        (tmp_path / "raw" / f"{number}.csv").write_text(header + rows, encoding="utf-8")
    source = {"format": "csv", "path": "raw"}
    signs = [name for name in header.strip().split(",") if name != "t"]
    renamed = dict(zip(["user", *(f"c{number}" for number in range(1, len(signs)))], signs, strict=True))
    found = land_in_every_way(spark, tmp_path, one_log(source=source, columns=renamed), T0 + HOUR)
    assert found["arrow"] == found["passes"]
    assert {"('user', 'u1')", "('c1', 1)", "('c2', 0.5)"} < {*found["arrow"][2][-1]}
