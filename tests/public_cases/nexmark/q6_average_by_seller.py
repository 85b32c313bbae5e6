"""Query 6: running averages of the winning bids of each seller, over eleven auctions: a row for each auction.

The winning bid of RisingWave's query is the lowest; averages are exact there and truncated in Feldera.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rewindow import StreamsBuilder, Topology
from tests.public_cases.nexmark.winning_bids import Offer, offers

TABLE = True
ROWS = 11


class Position(NamedTuple):
    seller: int
    number: int


class Average(NamedTuple):
    seller: int
    avg: float


def _topology(average: Callable[[int, int], float], better: Callable[[Offer, Offer], Offer]) -> Topology:
    def averages(seller: int, winning: list[Offer]) -> list[tuple[Position, Average]]:
        prices = [offer.price for offer in sorted(winning, key=lambda one: (one.date_time, one.auction))]
        spans = [prices[max(0, number + 1 - ROWS) : number + 1] for number in range(len(prices))]
        return [
            (Position(seller, number), Average(seller, average(sum(span), len(span))))
            for number, span in enumerate(spans)
        ]

    builder = StreamsBuilder()
    winning = offers(builder).group_by_key().reduce(better, store="winning")
    sellers = winning.group_by(lambda _, offer: (offer.seller, offer), key=int, value=Offer).aggregate(
        list,
        lambda _, offer, winning: [*winning, offer],
        lambda _, offer, winning: [other for other in winning if other.auction != offer.auction],
        store="sellers",
        value=list[Offer],
    )
    sellers.to_stream().flat_map(averages, key=Position, value=Average).to("q6")
    return builder.build()


def build_topology() -> Topology:
    return _topology(
        lambda total, count: total / count, lambda best, offer: min(best, offer, key=lambda one: one.price)
    )


def feldera() -> Topology:
    return _topology(
        lambda total, count: float(total // count), lambda best, offer: max(best, offer, key=lambda one: one.price)
    )
