"""Query 16: how many bids, bidders and auctions each channel has each day.

The column `minute` is the newest time of a bid, in the form of the published query: RisingWave's has the hour, from 1 to 12, and the
month, Feldera's the hour and the minute.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology
from tests.public_cases.nexmark.auction_events import clock
from tests.public_cases.nexmark.bid_statistics import statistics

TABLE = True


class ChannelDay(NamedTuple):
    channel: str
    day: str


def channel_day(_key: Any, bid: Any) -> ChannelDay:
    return ChannelDay(bid.channel, clock(bid.date_time, "%Y-%m-%d"))


def _topology(form: str) -> Topology:
    builder = StreamsBuilder()
    channels = builder.stream("bid").group_by(channel_day, key=ChannelDay)
    statistics(channels, form).to_stream().to("q16")
    return builder.build()


def build_topology() -> Topology:
    return _topology("%I:%m")


def feldera() -> Topology:
    return _topology("%H:%M")
