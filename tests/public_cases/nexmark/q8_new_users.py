"""Query 8: who came and opened an auction within the same ten seconds: a join of two windowed tables, and its final results."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, TimeWindows, Topology, Windowed, until_window_closes

TABLE = True
FINALS = True


class NewUser(NamedTuple):
    id: int
    name: str
    starttime: int


def new_user(windowed: Windowed, person: Any, _auctions: int) -> NewUser:
    return NewUser(person.id, person.name, windowed.window.start_ms)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    windows = TimeWindows.of("10s", grace="4s")
    persons = builder.stream("person").group_by_key().windowed_by(windows).reduce(lambda _, new: new, store="persons")
    sellers = builder.stream("auction").group_by(lambda _, auction: auction.seller, key=int)
    auctions = sellers.windowed_by(windows).count(store="auctions-of-seller")
    users = persons.join(auctions, new_user, with_key=True, store="users", value=NewUser)
    users.to_stream().to("q8")
    users.suppress(until_window_closes()).to_stream().to("q8-finals")
    return builder.build()
