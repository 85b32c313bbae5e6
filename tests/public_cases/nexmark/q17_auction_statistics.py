"""Query 17: prices and numbers of the bids for each auction and day. Averages of RisingWave are exact, those of Feldera truncated."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import Count, KTable, Max, Mean, Min, StreamsBuilder, Sum, Topology
from tests.public_cases.nexmark.auction_events import clock

TABLE = True


class AuctionDay(NamedTuple):
    auction: int
    day: str


class Ranked(NamedTuple):
    price: int
    rank1: int
    rank2: int
    rank3: int


class Statistics(NamedTuple):
    total_bids: int
    rank1_bids: int
    rank2_bids: int
    rank3_bids: int
    min_price: int
    max_price: int
    avg_price: float
    sum_price: int


def ranked(_key: Any, bid: Any) -> tuple[AuctionDay, Ranked]:
    rank = 1 if bid.price < 10_000 else 2 if bid.price < 1_000_000 else 3
    day = clock(bid.date_time, "%Y-%m-%d")
    return AuctionDay(bid.auction, day), Ranked(bid.price, int(rank == 1), int(rank == 2), int(rank == 3))


def _statistics(builder: StreamsBuilder) -> KTable:
    bids = builder.stream("bid").map(ranked, key=AuctionDay, value=Ranked)
    return bids.group_by_key().aggregate(
        {
            "total_bids": Count(),
            "rank1_bids": Sum("rank1"),
            "rank2_bids": Sum("rank2"),
            "rank3_bids": Sum("rank3"),
            "min_price": Min("price"),
            "max_price": Max("price"),
            "avg_price": Mean("price"),
            "sum_price": Sum("price"),
        },
        store="statistics",
    )


def build_topology() -> Topology:
    builder = StreamsBuilder()
    _statistics(builder).to_stream().to("q17")
    return builder.build()


def truncated(row: Any) -> Statistics:
    return Statistics(*row)._replace(avg_price=float(row.sum_price // row.total_bids))


def feldera() -> Topology:
    builder = StreamsBuilder()
    _statistics(builder).map_values(truncated, value=Statistics).to_stream().to("q17")
    return builder.build()
