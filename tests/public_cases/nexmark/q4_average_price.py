"""Query 4: the average winning bid of each category. Averages of RisingWave are exact, those of Feldera are truncated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rewindow import Count, StreamsBuilder, Sum, Topology
from tests.public_cases.nexmark.winning_bids import Offer, offers


class Average(NamedTuple):
    category: int
    avg: float


def higher(best: Offer, offer: Offer) -> Offer:
    return max(best, offer, key=lambda one: one.price)


def _topology(average: Callable[[int, int], float]) -> Topology:
    def averaged(category: int, totals: Any) -> Average:
        return Average(category, average(totals.sum, totals.count))

    builder = StreamsBuilder()
    winning = offers(builder).group_by_key().reduce(higher, store="winning")
    categories = winning.group_by(lambda _, offer: (offer.category, offer), key=int, value=Offer)
    totals = categories.aggregate({"sum": Sum("price"), "count": Count()}, store="totals")
    totals.map_values(averaged, with_key=True, value=Average).to_stream().to("q4")
    return builder.build()


TABLE = True


def build_topology() -> Topology:
    return _topology(lambda total, count: total / count)


def feldera() -> Topology:
    return _topology(lambda total, count: float(total // count))
