"""Query 7: the highest bids of each ten seconds, by a processor whose rows change, and as final results."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import (
    Processor,
    ProcessorContext,
    Record,
    StreamsBuilder,
    TimeWindows,
    Topology,
    Windowed,
    key_value_store,
    until_window_closes,
)

TABLE = True
FINALS = True
WINDOW_MS = 10_000


class Highest(NamedTuple):
    auction: int
    price: int
    bidder: int
    date_time: int
    extra: str


class Position(NamedTuple):
    start_ms: int
    number: int


def highest_of(bid: Any) -> Highest:
    return Highest(bid.auction, bid.price, bid.bidder, bid.date_time, bid.extra)


def with_bid(highest: list[Highest], bid: Highest) -> list[Highest]:
    """Return the bids with the highest price."""
    most = max(one.price for one in [*highest, bid])
    return [one for one in [*highest, bid] if one.price == most]


class FindHighest(Processor):
    """Send the highest bids of a window when they change, and deletions of those that are no longer the highest."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.highest = context.store("highest")

    def process(self, record: Record) -> None:
        before = self.highest.get(record.key) or []
        after = with_bid(before, record.value)
        self.highest.put(record.key, after)
        for number in range(max(len(before), len(after))):
            value = after[number] if number < len(after) else None
            self.context.forward(Record(Position(record.key, number), value, record.timestamp))


def final_rows(windowed: Windowed, highest: list[Highest]) -> list[tuple[Position, Highest]]:
    return [(Position(windowed.window.start_ms, number), bid) for number, bid in enumerate(highest)]


def build_topology() -> Topology:
    builder = StreamsBuilder()
    bids = builder.stream("bid").map_values(highest_of, value=Highest)
    windows = bids.select_key(lambda _, bid: bid.date_time // WINDOW_MS * WINDOW_MS, key=int).repartition(
        name="windows"
    )
    store = key_value_store("highest", key=int, value=list[Highest])
    windows.process(FindHighest, name="find-highest", stores=[store], key=Position, value=Highest).to("q7")
    finals = (
        windows.group_by_key()
        .windowed_by(TimeWindows.of("10s", grace="4s"))
        .aggregate(list, lambda _, bid, highest: with_bid(highest, bid), store="finals", value=list[Highest])
        .suppress(until_window_closes())
        .to_stream()
    )
    finals.flat_map(final_rows, key=Position, value=Highest).to("q7-finals")
    return builder.build()
