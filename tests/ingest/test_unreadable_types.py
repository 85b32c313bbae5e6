"""Columns of Parquet files of types that neither Spark nor a log has."""

from __future__ import annotations

from datetime import time
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.ingest.land_by_arrow import land_by_arrow
from tests.refusals import containing, refused

VALUES = {
    "TIME": (pa.time64("us"), time(8)),
    "FLOAT16": (pa.float16(), 1.5),
    "UUID": (pa.uuid(), UUID(int=5).bytes),
    "DECIMAL(40,1)": (pa.decimal256(40, 1), Decimal("1.1")),
}


def write(root, kind, value, **more):
    (root / "raw").mkdir(exist_ok=True)
    columns = {"user": pa.array(["ann"]), "t": pa.array([1]), "x": pa.array([value], kind), "y": pa.array([1])}
    pq.write_table(pa.table({**columns, **more}), root / "raw" / "a.parquet")


@pytest.mark.parametrize("name", VALUES)
def test_such_a_column_is_named_with_its_file_and_type(tmp_path, name):
    write(tmp_path, *VALUES[name])
    facts = {"file": containing("a.parquet"), "column": "x", "type": name, "hint": containing("`ignore: [x]`")}
    with refused("parquet-type-unreadable", **facts):
        land_by_arrow(tmp_path)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("log", [{"ignore": ["x"]}, {"value": ["y"]}])
def test_such_a_column_does_not_matter_if_it_is_not_landed(tmp_path, name, log):
    write(tmp_path, *VALUES[name])
    assert [row["y"] for row in land_by_arrow(tmp_path, **log)] == [1]


def test_a_field_of_such_a_type_makes_its_column_one(tmp_path):
    write(tmp_path, pa.list_(pa.time64("us")), [time(8)])
    with refused("parquet-type-unreadable", file="a.parquet", column="x", type="TIME"):
        land_by_arrow(tmp_path)


def test_a_key_of_such_a_type_cannot_be_left_out(tmp_path):
    write(tmp_path, *VALUES["UUID"])
    with refused("parquet-type-unreadable"):
        land_by_arrow(tmp_path, key="x")


def test_beside_nested_columns_such_a_column_is_refused_in_any_case(tmp_path):
    write(tmp_path, *VALUES["TIME"], z=pa.array([{"a": 1}]))
    with refused(
        "parquet-columns-not-inferred", file="a.parquet", column="x", type="TIME", reason="the column z.a is INT64 None"
    ):
        land_by_arrow(tmp_path, ignore=["x"])
