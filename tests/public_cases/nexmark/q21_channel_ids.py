"""Query 21: the numbers of the channels, which four channels have and the others name in their address."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

KNOWN = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
IN_ADDRESS = re.compile("(?:&|^)channel_id=([^&]*)")


class Channel(NamedTuple):
    auction: int
    bidder: int
    price: int
    channel: str
    channel_id: str


def channels(bid: Any) -> list[Channel]:
    named = IN_ADDRESS.search(bid.url)
    number = KNOWN.get(bid.channel.lower()) or (named and named[1])
    return [] if number is None else [Channel(bid.auction, bid.bidder, bid.price, bid.channel, number)]


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("bid").flat_map_values(channels, value=Channel).to("q21")
    return builder.build()
