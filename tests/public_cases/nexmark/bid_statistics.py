"""The statistics that queries 15 and 16 share: how many bids, bidders and auctions there are, in all and in three ranges of prices."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import KGroupedStream, KTable
from tests.public_cases.nexmark.auction_events import clock


class Seen(NamedTuple):
    """The bids, and the distinct bidders and auctions, in all and of each rank."""

    newest_ms: int
    bids: list[int]
    bidders: list[list[int]]
    auctions: list[list[int]]


def _nothing() -> Seen:
    return Seen(0, [0] * 4, [[] for _ in range(4)], [[] for _ in range(4)])


def _with_bid(_key: Any, bid: Any, seen: Seen) -> Seen:
    ranks = {0, 1 if bid.price < 10_000 else 2 if bid.price < 1_000_000 else 3}
    return Seen(
        max(seen.newest_ms, bid.date_time),
        [number + (rank in ranks) for rank, number in enumerate(seen.bids)],
        _with(seen.bidders, bid.bidder, ranks),
        _with(seen.auctions, bid.auction, ranks),
    )


def _with(distinct: list[list[int]], one: int, ranks: set[int]) -> list[list[int]]:
    return [sorted({*ids, one}) if rank in ranks else ids for rank, ids in enumerate(distinct)]


class Statistics(NamedTuple):
    minute: str
    total_bids: int
    rank1_bids: int
    rank2_bids: int
    rank3_bids: int
    total_bidders: int
    rank1_bidders: int
    rank2_bidders: int
    rank3_bidders: int
    total_auctions: int
    rank1_auctions: int
    rank2_auctions: int
    rank3_auctions: int


def statistics(bids: KGroupedStream, form: str) -> KTable:
    """Return the statistics of each group. `minute` is the time of its newest bid, in a form of `strftime`."""

    def of(seen: Seen) -> Statistics:
        return Statistics(clock(seen.newest_ms, form), *seen.bids, *map(len, seen.bidders), *map(len, seen.auctions))

    return bids.aggregate(_nothing, _with_bid, store="seen", value=Seen).map_values(of, value=Statistics)
