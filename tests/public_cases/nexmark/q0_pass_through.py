"""Query 0: the bids as they are."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("bid").select("auction, bidder, price, date_time, extra").to("q0")
    return builder.build()
