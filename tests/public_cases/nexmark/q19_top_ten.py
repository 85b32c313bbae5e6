"""Query 19: the ten highest bids for each auction, with their rank."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology
from tests.public_cases.nexmark.auction_events import Bid

TABLE = True
RANKS = 10


class Rank(NamedTuple):
    of: int
    number: int


class RankedBid(NamedTuple):
    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    date_time: int
    extra: str
    rank_number: int


def with_bid(_auction: int, bid: Any, top: list[Bid]) -> list[Bid]:
    return sorted([*top, Bid(*bid)], key=lambda one: -one.price)[:RANKS]


def ranked(auction: int, top: list[Bid]) -> list[tuple[Rank, RankedBid]]:
    return [(Rank(auction, number), RankedBid(*bid, number)) for number, bid in enumerate(top, 1)]


def build_topology() -> Topology:
    builder = StreamsBuilder()
    top = builder.stream("bid").group_by_key().aggregate(list, with_bid, store="top", value=list[Bid])
    top.to_stream().flat_map(ranked, key=Rank, value=RankedBid).to("q19")
    return builder.build()
