"""Logs that keep their source's partitions: what a topology may combine them with."""

from __future__ import annotations

from dataclasses import replace

from rewindow import KStream, StreamsBuilder
from rewindow.contracts.ingest import SourceOffsets
from rewindow.control.ingest.landings import Feed, FeedDefinition, log_shapes
from rewindow.control.plan.planned_tasks import TablePaths, bind_job
from tests import landed
from tests.refusals import refused

LOGS = {"orders": landed.STRING, "products": landed.STRING}
OFFSETS = SourceOffsets("t", "partition", "offset", "timestamp", {}, "UTC", "{}")
FEED = FeedDefinition("shop", 1, 2, LOGS, "f", source_offsets=dict.fromkeys(LOGS, OFFSETS))


def product_of(_key: str, value: str) -> str:
    return value[:1]


def both(one: str, other: str) -> str:
    return one + other


def bind(builder: StreamsBuilder, joined: KStream, feed: FeedDefinition = FEED) -> None:
    joined.to("out")
    paths = TablePaths(output=str, changelog=lambda store, _columns: store, metrics="metrics")
    bind_job("job", Feed(feed, ()), builder.build(), log_shapes(LOGS), {}, paths)


def test_they_join_a_global_table_whatever_its_partitions() -> None:
    builder = StreamsBuilder()
    products = builder.global_table("products", store="products")
    bind(builder, builder.stream("orders").join(products, product_of, both))


def test_they_join_no_repartitioned_stream() -> None:
    builder = StreamsBuilder()
    products = builder.table("products", store="products")
    moved = builder.stream("orders").select_key(product_of)
    with refused("log-keeps-source-partitions", log="products", topic="j-repartition"):
        bind(builder, moved.join(products, both, name="j"))


def test_they_join_a_repartitioned_stream_in_the_only_partition() -> None:
    builder = StreamsBuilder()
    products = builder.table("products", store="products")
    moved = builder.stream("orders").select_key(product_of)
    bind(builder, moved.join(products, both, name="j"), replace(FEED, partitions=1))
