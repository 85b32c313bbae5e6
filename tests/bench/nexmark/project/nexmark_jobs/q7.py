"""Query 7, highest bid: the highest bid of each ten seconds.

The highest bid for an auction is found in its partition; the highest bids of a window meet in one. Of two bids of the same price
that with the greater bidder is the highest, then that for the newer auction.
"""

from typing import NamedTuple

from rewindow import Max, StreamsBuilder, TimeWindows, Topology, Windowed, until_window_closes

BIDDERS = 1_000_000_000
"""More than there are bidders: a price and a bidder become one integer in this order."""


class Bid(NamedTuple):
    """A price in cents, who offered it, and for what."""

    price: int
    bidder: int
    auction: int


def by_window(of: Windowed, highest: NamedTuple) -> tuple[int, Bid]:
    """Key the highest bid for an auction by the start of its window."""
    price, bidder = divmod(highest.best, BIDDERS)  # type: ignore[attr-defined]
    return of.window.start_ms, Bid(price, bidder, of.key)


def higher(one: Bid, other: Bid) -> Bid:
    """Return the higher of two bids."""
    return max(one, other)


def start_of(of: Windowed, bid: Bid) -> int:
    """Return the start of the window."""
    del bid
    return int(of.key)


def build_topology() -> Topology:
    """Build the topology. The second grace period waits for the bids of all partitions."""
    builder = StreamsBuilder()
    (
        builder.stream("bids")
        .select(f"price * {BIDDERS} + bidder as best")
        .group_by_key()
        .windowed_by(TimeWindows.of("10s", grace="1s"))
        .aggregate({"best": Max("best")}, store="highest-bid-for-auction")
        .suppress(until_window_closes(), name="closed-auctions")
        .to_stream()
        .map(by_window, key=int, value=Bid)
        .group_by_key()
        .windowed_by(TimeWindows.of("10s", grace="20s"))
        .reduce(higher, store="highest-bid")
        .suppress(until_window_closes(), name="closed-windows")
        .to_stream()
        .select_key(start_of, key=int)
        .to("q7")
    )
    return builder.build()
