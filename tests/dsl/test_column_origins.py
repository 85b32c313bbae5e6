"""Where the columns of outputs come from. Nothing is claimed below a Python function."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import Count, SessionWindows, StreamsBuilder, Sum, TimeWindows, until_window_closes
from rewindow.control.ingest.landings import LogSchema, log_shapes
from rewindow.dsl.column_origins import OutputOrigins, column_origins
from rewindow.streams.serde.schema import Column

ORDERS = LogSchema(
    (Column("customer", "string"),),
    (Column("price", "double"), Column("pieces", "long"), Column("country", "string")),
    scalar_key=True,
    scalar_value=False,
)
LOGS = log_shapes({"orders": ORDERS, "returns": ORDERS})


def origins(build: Any) -> OutputOrigins | None:
    builder = StreamsBuilder()
    build(builder).to("out")
    return column_origins(builder.build(), LOGS).get("out")


def shown(found: Any) -> list[tuple[str, str, str]]:
    return sorted((origin.topic, origin.column, origin.how) for origin in found)


def test_where_select_and_windows_tell_each_column_and_what_decides_the_rows():
    found = origins(
        lambda builder: (
            builder.stream("orders")
            .where("country = 'de'")
            .select("price * pieces as total, country")
            .group_by_key()
            .windowed_by(TimeWindows.of("1d", grace="6h"))
            .aggregate({"orders": Count(), "total": Sum("total")}, store="sums")
            .suppress(until_window_closes())
            .to_stream()
        )
    )
    assert found is not None
    assert shown(found.columns["customer"]) == [("orders", "customer", "IDENTITY")]
    assert shown(found.columns["window_start"]) == [("orders", "timestamp", "TRANSFORMATION")]
    assert shown(found.columns["orders"]) == []
    assert shown(found.columns["total"]) == [
        ("orders", "pieces", "AGGREGATION"),
        ("orders", "price", "AGGREGATION"),
    ]
    assert {origin.described for origin in found.columns["total"]} == {"sum(total)"}
    assert shown(found.rows) == [("orders", "country", "FILTER"), ("orders", "customer", "GROUP_BY")]
    assert not any(origin.is_direct for origin in found.rows)


def test_a_selected_name_is_the_column_itself_and_a_literal_comes_from_nowhere():
    found = origins(lambda builder: builder.stream("orders").select("country, key as who, 1 as one, timestamp as at"))
    assert found is not None
    assert shown(found.columns["country"]) == [("orders", "country", "IDENTITY")]
    assert shown(found.columns["who"]) == [("orders", "customer", "IDENTITY")]
    assert shown(found.columns["one"]) == []
    assert shown(found.columns["at"]) == [("orders", "timestamp", "IDENTITY")]
    assert shown(found.columns["_timestamp"]) == [("orders", "timestamp", "TRANSFORMATION")]
    assert found.rows == frozenset()


def test_merged_streams_have_the_origins_of_both():
    found = origins(lambda builder: builder.stream("orders").merge(builder.stream("returns")))
    assert found is not None
    assert shown(found.columns["price"]) == [("orders", "price", "IDENTITY"), ("returns", "price", "IDENTITY")]


def test_sessions_of_built_in_aggregates_are_known():
    found = origins(
        lambda builder: (
            builder.stream("orders")
            .group_by_key()
            .windowed_by(SessionWindows.of("30m", grace="5m"))
            .aggregate({"spent": Sum("price")}, store="sessions")
            .to_stream()
        )
    )
    assert found is not None
    assert shown(found.columns["spent"]) == [("orders", "price", "AGGREGATION")]


@pytest.mark.parametrize(
    "build",
    [
        lambda stream: stream.map_values(lambda row: row.price, value=float),
        lambda stream: stream.filter(lambda _key, row: row.price > 1),
        lambda stream: stream.select_key(lambda _key, row: row.country, key=str),
        lambda stream: (
            stream.group_by_key().aggregate(lambda: 0, lambda _k, _v, n: n + 1, store="n", value=int).to_stream()
        ),
        lambda stream: stream.group_by(lambda _key, row: row.country, key=str).count(store="n").to_stream(),
    ],
    ids=["map_values", "filter", "select_key", "aggregate", "group_by"],
)
def test_nothing_is_claimed_below_a_python_function(build: Any):
    assert origins(lambda builder: build(builder.stream("orders"))) is None
