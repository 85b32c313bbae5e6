"""Query 20: bids with their auctions, if these are of category 10: a join with a global table."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology


class ExpandedBid(NamedTuple):
    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    bid_date_time: int
    bid_extra: str
    item_name: str
    description: str
    initial_bid: int
    reserve: int
    auction_date_time: int
    expires: int
    seller: int
    category: int
    auction_extra: str


def expanded(bid: Any, auction: Any) -> ExpandedBid:
    return ExpandedBid(*bid, *auction[1:])


def build_topology() -> Topology:
    builder = StreamsBuilder()
    auctions, bids = builder.global_table("auction", store="auctions"), builder.stream("bid")
    joined = bids.join(auctions, lambda _, bid: bid.auction, expanded, value=ExpandedBid)
    joined.where("category = 10").to("q20")
    return builder.build()
