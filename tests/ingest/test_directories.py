"""Parquet as pandas and polars write it: times in nanoseconds, and columns in the names of directories."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewindow.control.ingest.land import land
from rewindow.control.ingest.landings import GENERATION
from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.land_by_arrow import Unused, land_by_arrow
from tests.ingest.local_engine import HOUR, T0, log_rows, one_log
from tests.refusals import refused

NANOS, NANOS_IN_UTC = pa.timestamp("ns"), pa.timestamp("ns", "UTC")


def write(root, name, **columns):
    path = root / "raw" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"user": ["ann"], "t": pa.array([1]), **columns}), path)


def landed(root, zone="UTC", **log):
    return sorted(land_by_arrow(root, zone, **log), key=lambda row: (row["landing"], row["offset"]))


def types(root):
    (made,) = [row.body for row in DeltaFeedTables(f"{root}/w").state("activity") if row.kind == GENERATION]
    return dict(made["logs"]["events"]["value"])


@pytest.mark.parametrize("kind", [NANOS, NANOS_IN_UTC])
def test_times_in_nanoseconds_are_landed_as_milliseconds_rounded_down(tmp_path, kind):
    at = pa.array([1_767_600_900_123_999_999, None, -1, 0], pa.int64()).cast(kind)
    write(tmp_path, "a.parquet", user=["ann"] * 4, t=at.take(pa.array([0] * 4)), x=at)
    rows = landed(tmp_path)
    assert {row["x"] for row in rows} == {1_767_600_900_123, None, -1, 0}
    assert {row["timestamp"] for row in rows} == {1_767_600_900_123}


def test_later_files_may_have_another_unit(tmp_path):
    at = datetime(2026, 1, 5, 8, 15, 0, 123_456, UTC)
    for number, unit in enumerate(("us", "ns", "ms")):
        given = pa.array([at], pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, "UTC"), safe=False)
        write(tmp_path, f"{number}.parquet", x=given, y=[number])
        assert [row["x"] for row in landed(tmp_path)] == [1_767_600_900_123] * (number + 1)


def test_nanoseconds_that_spark_would_have_to_read_are_refused_with_file_column_and_fix(tmp_path):
    write(tmp_path, "a.parquet", x=pa.array([0], NANOS), tags=[["a"]])
    with refused(
        "parquet-times-in-nanoseconds",
        file="a.parquet",
        column="x",
        reason="the column tags.list.element is BYTE_ARRAY String",
    ):
        landed(tmp_path)


def test_columns_of_directories_are_landed(tmp_path):
    for day in ("2026-01-04", "2026-01-05"):
        for hour in ("07", "12"):
            write(tmp_path, f"date={day}/hour={hour}/shop=a%20b/a.parquet", x=[f"{day} {hour}"])
    rows = landed(tmp_path)
    assert types(tmp_path) == {"x": "string", "date": "string", "hour": "long", "shop": "string"}
    assert [(row["date"], row["hour"], row["shop"], row["x"]) for row in sorted(rows, key=lambda row: row["x"])] == [
        (day, int(hour), "a b", f"{day} {hour}") for day in ("2026-01-04", "2026-01-05") for hour in ("07", "12")
    ]


def test_types_of_files_in_directories_may_differ_where_they_fit(tmp_path):
    write(tmp_path, "date=2026-01-04/a.parquet", x=pa.array([1], pa.int32()), y=pa.nulls(1))
    write(tmp_path, "date=2026-01-05/a.parquet", x=pa.array([2**40]), y=["text"])
    assert {(row["x"], row["y"]) for row in landed(tmp_path)} == {(1, None), (2**40, "text")}


def test_a_column_of_a_directory_takes_part_in_the_key(tmp_path):
    write(tmp_path, "shop=north/a.parquet", x=[1])
    write(tmp_path, "shop=__HIVE_DEFAULT_PARTITION__/a.parquet", x=[2])
    assert {row["shop"] for row in landed(tmp_path, key="shop")} == {"north", None}


def test_a_directory_that_is_no_value_of_its_column_is_refused(tmp_path):
    write(tmp_path, "date=2026-01-04/a.parquet", x=[1])
    landed(tmp_path)
    write(tmp_path, "date=unknown/a.parquet", x=[2])
    with refused("directory-value-invalid", column="date", value="unknown", type="DATE"):
        landed(tmp_path)
    assert len(log_rows(DeltaFeedTables(f"{tmp_path}/w"))) == 1


@pytest.mark.parametrize(
    "names", [("date=2026-01-04/a", "b"), ("x=1.5/a",), ("x=T10/a",), ("x=now/a",), ("date=2026-1-4/a",), ("a=1/c/a",)]
)
def test_what_only_spark_decides_is_left_to_it(tmp_path, names):
    for number, name in enumerate(names):
        write(tmp_path, f"{name}.parquet", y=[number])
    with pytest.raises((AssertionError, TypeError)):
        landed(tmp_path)


def test_the_value_of_a_directory_wins_over_that_of_its_files_also_in_the_partition(tmp_path):
    for user, stored in (("ann", "x1"), ("bob", "x2"), ("cyd", None)):
        write(tmp_path, f"user={user}/a.parquet", user=pa.array([stored], pa.string()))
    found = {row["user"]: row["partition"] for row in landed(tmp_path)}
    assert found == {user: partition_of(user, 3) for user in ("ann", "bob", "cyd")}


def test_the_statistics_of_a_column_that_directories_give_are_not_used(tmp_path):
    """A file's own ``got`` is long over, but its directory's is not."""
    engine = ArrowLandingEngine(Unused, Unused(), project_root=str(tmp_path), most_rows=10**9)
    feed, tables = one_log(every="1h", arrived_at="got"), DeltaFeedTables(f"{tmp_path}/w")
    write(tmp_path, f"got={T0}/a.parquet", got=[1])
    write(tmp_path, f"got={T0 + HOUR}/b.parquet", got=[2])
    for hours in (1, 2):
        land(feed, tables, engine, now_ms=T0 + hours * HOUR)
    assert sorted((row["arrived_at"], row["landing"]) for row in log_rows(tables)) == [(T0, 1), (T0 + HOUR, 2)]


def test_codes_in_the_names_of_directories_are_texts(tmp_path):
    for code in ("1d", "2f", "30"):
        write(tmp_path, f"p={code}/a.parquet", y=[code])
    assert sorted(row["p"] for row in landed(tmp_path)) == ["1d", "2f", "30"]


@pytest.mark.spark
def test_codes_in_the_names_of_directories_are_texts_for_spark_too(engine_at, tmp_path):
    for number, code in enumerate(("1d", "2f", "30")):
        write(tmp_path, f"p={code}/a.parquet", t=pa.array([number]), z=pa.array([[number]]))
    tables = DeltaFeedTables(f"{tmp_path}/w")
    land(one_log(), tables, engine_at(tmp_path), now_ms=T0)
    assert sorted(row["p"] for row in log_rows(tables)) == ["1d", "2f", "30"]
