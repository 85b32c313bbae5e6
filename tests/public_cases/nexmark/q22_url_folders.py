"""Query 22: the first three folders of the address of a bid. Feldera's addresses may have fewer, and then the others are null."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology


class Folders(NamedTuple):
    auction: int
    bidder: int
    price: int
    channel: str
    dir1: str | None
    dir2: str | None
    dir3: str | None


def folders(bid: Any) -> Folders:
    parts = [*bid.url.split("/")[3:6], None, None, None]
    return Folders(bid.auction, bid.bidder, bid.price, bid.channel, *parts[:3])


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("bid").map_values(folders, value=Folders).to("q22")
    return builder.build()
