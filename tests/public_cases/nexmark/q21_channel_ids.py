"""Query 21: the numbers of the channels, which four channels have and the others name in their address.

Feldera's form of the query looks for the number in the name of the channel, and a number may follow any character.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

KNOWN = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}


class Channel(NamedTuple):
    auction: int
    bidder: int
    price: int
    channel: str
    channel_id: str


def _topology(column: str, pattern: str) -> Topology:
    def channels(bid: Any) -> list[Channel]:
        named = re.search(pattern, getattr(bid, column))
        number = KNOWN.get(bid.channel.lower()) or (named and named[1])
        return [] if number is None else [Channel(bid.auction, bid.bidder, bid.price, bid.channel, number)]

    builder = StreamsBuilder()
    builder.stream("bid").flat_map_values(channels, value=Channel).to("q21")
    return builder.build()


def build_topology() -> Topology:
    return _topology("url", "(?:&|^)channel_id=([^&]*)")


def feldera() -> Topology:
    return _topology("channel", "channel_id=([^&]*)")
