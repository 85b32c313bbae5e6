"""Query 1: the prices of the bids in another currency, as exact decimals."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, NamedTuple

from rewindow import StreamsBuilder, Topology

RATE = Decimal("0.908")


class Converted(NamedTuple):
    auction: int
    bidder: int
    price: Annotated[Decimal, "DECIMAL(20,3)"]
    date_time: int
    extra: str


def converted(bid: Any) -> Converted:
    return Converted(bid.auction, bid.bidder, RATE * bid.price, bid.date_time, bid.extra)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("bid").map_values(converted, value=Converted).to("q1")
    return builder.build()
