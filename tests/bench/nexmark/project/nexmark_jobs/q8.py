"""Query 8, new users: who came within the same ten seconds in which they opened an auction."""

from typing import NamedTuple

from rewindow import StreamsBuilder, TimeWindows, Topology, Windowed, until_window_closes


class User(NamedTuple):
    """A name, null if the person came at another time, and the number of auctions that they opened."""

    name: str | None
    auctions: int


def with_person(person_id: int, person: NamedTuple, user: User) -> User:
    """Add the person."""
    del person_id
    return user._replace(name=person.name)  # type: ignore[attr-defined]


def with_auction(seller: int, auction: NamedTuple, user: User) -> User:
    """Add an auction."""
    del seller, auction
    return user._replace(auctions=user.auctions + 1)


def is_new_seller(of: Windowed, user: User) -> bool:
    """Whether somebody both came and opened an auction."""
    del of
    return user.name is not None and user.auctions > 0


def build_topology() -> Topology:
    """Build the topology."""
    builder = StreamsBuilder()
    persons, auctions = builder.stream("persons").group_by_key(), builder.stream("auctions").group_by_key()
    (
        persons.cogroup(with_person)
        .cogroup(auctions, with_auction)
        .windowed_by(TimeWindows.of("10s", grace="1s"))
        .aggregate(lambda: User(None, 0), store="users", value=User)
        .suppress(until_window_closes(), name="closed-windows")
        .to_stream()
        .filter(is_new_seller)
        .to("q8")
    )
    return builder.build()
