"""Query 14: bids of some prices, with the time of the day and the number of times that a letter occurs."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, NamedTuple

from rewindow import StreamsBuilder, Topology

RATE = Decimal("0.908")


class Calculated(NamedTuple):
    auction: int
    bidder: int
    price: Annotated[Decimal, "DECIMAL(20,3)"]
    bid_time_type: str
    date_time: int
    extra: str
    c_counts: int


def time_type(hour: int) -> str:
    if 8 <= hour <= 18:
        return "dayTime"
    return "nightTime" if hour <= 6 or hour >= 20 else "otherTime"


def calculated(bid: Any) -> Calculated:
    hour = bid.date_time // 3_600_000 % 24
    count = bid.extra.count("c")
    return Calculated(bid.auction, bid.bidder, RATE * bid.price, time_type(hour), bid.date_time, bid.extra, count)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    bids = builder.stream("bid").filter(lambda _, bid: 1_000_000 < RATE * bid.price < 50_000_000)
    bids.map_values(calculated, value=Calculated).to("q14")
    return builder.build()
