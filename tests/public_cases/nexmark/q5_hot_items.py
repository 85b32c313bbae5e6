"""Query 5: the auctions with the most bids in each ten seconds, every two. The counts are joined with the largest of their window.

Windows do not begin before 1970, in Kafka and here. In Feldera they do, and its events happen at the beginning of 1970, so they are
moved by a day. Times are not among the compared columns.
"""

from __future__ import annotations

from typing import NamedTuple

from rewindow import StreamsBuilder, TimeWindows, Topology, Windowed

TABLE = True
FELDERA_MOVED_MS = 86_400_000


class HotItem(NamedTuple):
    auction: int
    num: int


def by_window(windowed: Windowed, count: int) -> tuple[int, int]:
    return windowed.window.start_ms, count


def start_of(windowed: Windowed, _count: int) -> int:
    return windowed.window.start_ms


def hot_item(windowed: Windowed, count: int, counts: list[int]) -> HotItem | None:
    return HotItem(windowed.key, count) if count == max(counts) else None


def without(count: int, counts: list[int]) -> list[int]:
    left = list(counts)
    left.remove(count)
    return left


def build_topology() -> Topology:
    builder = StreamsBuilder()
    windows = TimeWindows.of("10s", grace="1d").advance_by("2s")
    counts = builder.stream("bid").group_by_key().windowed_by(windows).count(store="bids-of-auction")
    counts_of_window = counts.group_by(by_window, key=int, value=int).aggregate(
        list,
        lambda _, count, counts: [*counts, count],
        lambda _, count, counts: without(count, counts) or None,
        store="counts-of-window",
        value=list[int],
    )
    hot = counts.join(counts_of_window, hot_item, foreign_key=start_of, store="hot-items", with_key=True, value=HotItem)
    hot.to_stream().to("q5")
    return builder.build()
