"""Query 3: who sells in three states, in category 10. A person may come after the auction, so this is a join of two streams.

Feldera writes the names of the states in capitals, and inserts two auctions with the same number, which are two rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import JoinWindows, StreamsBuilder, Topology


class LocalItem(NamedTuple):
    name: str
    city: str
    state: str
    id: int


def local_item(auction: Any, person: Any) -> LocalItem:
    return LocalItem(person.name, person.city, person.state, auction.id)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    auctions = builder.stream("auction").where("category = 10").select_key(lambda _, auction: auction.seller, key=int)
    persons = builder.stream("person").filter(lambda _, person: person.state.lower() in {"or", "id", "ca"})
    days = JoinWindows.of("1d", grace="0s")
    auctions.join(persons, local_item, days, name="sellers", value=LocalItem).to("q3")
    return builder.build()
