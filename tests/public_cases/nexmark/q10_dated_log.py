"""Query 10: the bids with day and time as text. RisingWave's form of the time has hours from 1 to 12. Feldera publishes no rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology
from tests.public_cases.nexmark.auction_events import clock


class Logged(NamedTuple):
    auction: int
    bidder: int
    price: int
    date_time: int
    date: str
    time: str


def logged(bid: Any) -> Logged:
    ms = bid.date_time
    return Logged(bid.auction, bid.bidder, bid.price, ms, clock(ms, "%Y-%m-%d"), clock(ms, "%I:%M"))


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("bid").map_values(logged, value=Logged).to("q10")
    return builder.build()
