"""Nested fields of Parquet and of tables, through Spark: as columns, and as the values of a struct."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from rewindow.streams.serde.canonical_json import load_value
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import log_rows
from tests.ingest.text_files import Files

pytestmark = pytest.mark.spark


def test_nested_fields_of_parquet_and_of_a_table_are_columns_too(engine_at, tmp_path):
    rows = pa.table({"user": [{"name": "ann"}, {"name": "bob"}], "t": [1, 2], "amount": [5, 6]})
    feed = Files(tmp_path, engine_at(tmp_path), "parquet")
    pq.write_table(rows, tmp_path / "raw" / "d1.parquet")
    assert feed.land(key="name", value=["amount"], columns={"name": "user.name"}).rows == 2
    assert {(row["name"], row["amount"]) for row in log_rows(feed.tables)} == {("ann", 5), ("bob", 6)}
    (tmp_path / "t").mkdir()
    write_deltalake(str(tmp_path / "t" / "raw"), rows)
    table = Files.__new__(Files)
    table.root, table.engine, table.kind, table.options = tmp_path / "t", engine_at(tmp_path / "t"), "delta", {}
    table.tables = DeltaFeedTables(f"{tmp_path}/t/w")
    assert table.land(key="name", value=["amount"], columns={"name": "user.name"}).rows == 2
    assert {(row["name"], row["amount"]) for row in log_rows(table.tables)} == {("ann", 5), ("bob", 6)}


def test_values_in_a_struct_are_those_of_columns_but_for_times_and_bytes(engine_at, tmp_path):
    at = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
    values = {
        "amount": (pa.decimal128(20, 2), Decimal("123456789012345678.91")),
        "few": (pa.decimal128(20, 2), Decimal("0.10")),
        "rate": (pa.float64(), 0.1),
        "none": (pa.float64(), float("-inf")),
        "at": (pa.timestamp("us", "UTC"), at),
        "day": (pa.date32(), at.date()),
        "raw": (pa.binary(), b"ab"),
    }
    kind = pa.struct([(name, one) for name, (one, _) in values.items()])
    price = pa.array([{name: value for name, (_, value) in values.items()}], kind)
    feed = Files(tmp_path, engine_at(tmp_path), "parquet")
    pq.write_table(pa.table({"user": ["ann"], "t": [1], "price": price}), tmp_path / "raw" / "d1.parquet")
    assert feed.land(key="user").rows == 1
    (row,) = log_rows(feed.tables)
    found = load_value(row["price"])
    times = ("2026-01-05T08:30:00.000Z", "2026-01-05", "YWI=")
    assert tuple(found) == (*(value for _, value in list(values.values())[:4]), *times)
    assert str(found.few) == "0.10"


def test_the_keys_of_a_map_are_texts_as_its_values_would_be(engine_at, tmp_path):
    at = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
    maps = {
        "name": (pa.string(), "a", "a"),
        "number": (pa.int32(), 7, "7"),
        "amount": (pa.decimal128(5, 2), Decimal("1.50"), "1.50"),
        "day": (pa.date32(), at.date(), "2026-01-05"),
        "at": (pa.timestamp("us", "UTC"), at, "2026-01-05T08:30:00.000Z"),
        "raw": (pa.binary(), b"ab", "YWI="),
        "cell": (pa.struct([("x", pa.int64())]), {"x": 1}, '{"x":1}'),
    }
    of = {name: pa.array([[(key, 1)], None], pa.map_(kind, pa.int64())) for name, (kind, key, _) in maps.items()}
    kind = pa.struct([("days", pa.list_(pa.map_(pa.date32(), pa.map_(pa.binary(), pa.int64()))))])
    feed = Files(tmp_path, engine_at(tmp_path), "parquet")
    table = pa.table(
        {
            "user": ["ann", "bob"],
            "t": [1, 2],
            **of,
            "deep": pa.array([{"days": [[(at.date(), [(b"ab", None)])]]}, None], kind),
        }
    )
    pq.write_table(table, tmp_path / "raw" / "d1.parquet")
    assert feed.land(key="user").rows == 2
    ann, bob = sorted(log_rows(feed.tables), key=lambda row: row["user"])
    assert {name: load_value(ann[name]) for name in maps} == {name: {text: 1} for name, (*_, text) in maps.items()}
    assert load_value(ann["deep"]).days == [{"2026-01-05": {"YWI=": None}}]
    assert [bob[name] for name in (*maps, "deep")] == [None] * 8
