"""Query 15: how many bids, bidders and auctions there are each day."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology
from tests.public_cases.nexmark.auction_events import clock
from tests.public_cases.nexmark.bid_statistics import statistics

TABLE = True


class Day(NamedTuple):
    day: str


def day_of(_key: Any, bid: Any) -> Day:
    return Day(clock(bid.date_time, "%Y-%m-%d"))


def build_topology() -> Topology:
    builder = StreamsBuilder()
    days = builder.stream("bid").group_by(day_of, key=Day)
    statistics(days, "%H:%M").to_stream().to("q15")
    return builder.build()
