"""Query 18: the last bid of each bidder for each auction; of several at that time, the one whose text is the first."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

TABLE = True


class Bidding(NamedTuple):
    auction: int
    bidder: int


def last(old: Any, new: Any) -> Any:
    return min(old, new, key=lambda bid: (-bid.date_time, bid.extra))


def build_topology() -> Topology:
    builder = StreamsBuilder()
    bids = builder.stream("bid").group_by(lambda _, bid: Bidding(bid.auction, bid.bidder), key=Bidding)
    bids.reduce(last, store="last-bids").to_stream().to("q18")
    return builder.build()
