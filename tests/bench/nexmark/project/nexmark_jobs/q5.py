"""Query 5, hot items: for each ten seconds, every five seconds, the auction with the most bids.

The bids of an auction are counted in its partition; the counts of a window meet in one. Of two auctions with as many bids the
newer one is hot.
"""

from typing import NamedTuple

from rewindow import Max, StreamsBuilder, TimeWindows, Topology, Windowed, until_window_closes

AUCTIONS = 1_000_000_000
"""More than there are auctions: a number of bids and an auction become one integer in this order."""


class HotItem(NamedTuple):
    """An auction and the number of its bids in the window."""

    auction: int
    bids: int


def by_window(of: Windowed, bids: int) -> tuple[int, int]:
    """Key the number of bids by the start of the window."""
    return of.window.start_ms, bids * AUCTIONS + of.key


def is_own_window(of: Windowed, most: int) -> bool:
    """Whether counts were compared in the window that they are of: they also fall into one that overlaps it."""
    del most
    return bool(of.key == of.window.start_ms)


def hot_item(of: Windowed, most: int) -> tuple[int, HotItem]:
    """Return the start of the window and the auction with the most bids."""
    bids, auction = divmod(most, AUCTIONS)
    return of.key, HotItem(auction, bids)


def build_topology() -> Topology:
    """Build the topology. The second grace period waits for the counts of all partitions."""
    builder = StreamsBuilder()
    (
        builder.stream("bids")
        .group_by_key()
        .windowed_by(TimeWindows.of("10s", grace="1s").advance_by("5s"))
        .count(store="bids-of-auction")
        .suppress(until_window_closes(), name="closed-auctions")
        .to_stream()
        .map(by_window, key=int, value=int)
        .group_by_key()
        .windowed_by(TimeWindows.of("10s", grace="20s").advance_by("5s"))
        .aggregate(Max(), store="most-bids")
        .suppress(until_window_closes(), name="closed-windows")
        .to_stream()
        .filter(is_own_window)
        .map(hot_item, key=int, value=HotItem)
        .to("q5")
    )
    return builder.build()
