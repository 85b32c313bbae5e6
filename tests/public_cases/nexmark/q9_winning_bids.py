"""Query 9: each auction with its winning bid, from a join of two streams."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import JoinWindows, StreamsBuilder, Topology

TABLE = True


class Won(NamedTuple):
    id: int
    item_name: str
    description: str
    initial_bid: int
    reserve: int
    date_time: int
    expires: int
    seller: int
    category: int
    extra: str
    auction: int
    bidder: int
    price: int
    bid_date_time: int
    bid_extra: str


def won(auction: Any, bid: Any) -> Won:
    return Won._make([*auction, bid.auction, bid.bidder, bid.price, bid.date_time, bid.extra])


def better(best: Won, other: Won) -> Won:
    return max(best, other, key=lambda one: (one.price, -one.bid_date_time))


def build_topology() -> Topology:
    builder = StreamsBuilder()
    auctions, bids = builder.stream("auction"), builder.stream("bid")
    later = JoinWindows.of("1d", grace="0s").before("0s")
    joined = auctions.join(bids, won, later, name="bids-of-auction", value=Won)
    winning = (
        joined.filter(lambda _, one: one.bid_date_time <= one.expires).group_by_key().reduce(better, store="winning")
    )
    winning.to_stream().to("q9")
    return builder.build()
