"""The bids that queries 4, 6 and 9 share: those within the time of their auction."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import KStream, StreamsBuilder


class Offer(NamedTuple):
    auction: int
    seller: int
    category: int
    price: int
    date_time: int


def _offer(bid: Any, auction: Any) -> Offer | None:
    if not auction.date_time <= bid.date_time <= auction.expires:
        return None
    return Offer(auction.id, auction.seller, auction.category, bid.price, bid.date_time)


def offers(builder: StreamsBuilder) -> KStream:
    """Return the bids by auction, from a join of the bids with the table of the auctions."""
    auctions = builder.table("auction", store="auctions")
    joined = builder.stream("bid").join(auctions, _offer, value=Offer)
    return joined.filter(lambda _, offer: offer is not None)
