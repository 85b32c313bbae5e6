"""Query 2: the bids for some auctions. RisingWave names the auctions, Feldera takes each 123rd."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology


def build_topology() -> Topology:
    builder = StreamsBuilder()
    bids = builder.stream("bid").where("auction in (1007, 1020, 2001, 2019, 2087)")
    bids.select("auction, price").to("q2")
    return builder.build()


def feldera() -> Topology:
    builder = StreamsBuilder()
    builder.stream("bid").filter(lambda _, bid: bid.auction % 123 == 0).select("auction, price").to("q2")
    return builder.build()
