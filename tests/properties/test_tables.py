"""Tables over random updates end with the rows that their definitions give, and cuts change nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rewindow import KTable, StreamsBuilder, Topology, until_time_limit, versioned_store
from rewindow.streams.settings import Semantics
from rewindow.testing import Epoch, LocalReplay
from rewindow.testing.strategies import epochs
from tests.properties.effort import examples

KEYS = ("a", "b", "c", "d")
VALUES = st.none() | st.sampled_from([*KEYS, "", "x"])
"""A left row's value is a key of the right table. The empty value refers to none."""
EPOCHS = epochs(("L", "R"), keys=KEYS, values=VALUES)
CUTS = st.lists(st.integers(1, 4))
HOWS = st.sampled_from(["inner", "left", "outer"])


def text(left: Any, right: Any) -> str:
    return f"{left}|{right}"


def replayed(topology: Topology, given_epochs: list[Epoch], cuts: list[int], **varied: Any) -> LocalReplay:
    replay = LocalReplay(topology, partitions=2, semantics=Semantics(stream_time_from="watermark"))
    bounds = [0, *sorted({cut for cut in cuts if 0 < cut < len(given_epochs)}), len(given_epochs)]
    for start, end in pairwise(bounds):
        replay.run(given_epochs[start:end], **varied)
    return replay


def check_cuts(make: Callable[[], Topology], given_epochs: list[Epoch], cuts: list[int]) -> LocalReplay:
    """Check that a replay in one run equals a cut one, and return the former."""
    whole = replayed(make(), given_epochs, [], restarts=False, batch=1)
    cut = replayed(make(), given_epochs, cuts, backwards=True)
    assert whole.sent == cut.sent
    assert whole.checkpoints() == cut.checkpoints()
    assert whole.metrics == cut.metrics
    return whole


def last_sent(replay: LocalReplay, topic: str = "out") -> dict[str, Any]:
    """Return the final value of each key in an output."""
    last: dict[str, Any] = {}
    for sent in replay.sent:
        if sent.topic == topic:
            last[sent.record.key] = sent.record.value
    return {key: value for key, value in last.items() if value is not None}


def table_of(topic: str, given_epochs: list[Epoch]) -> dict[str, Any]:
    """Return the final rows of a table: the last value of each key."""
    last = {key: value for epoch in given_epochs for name, key, value, _ in epoch.records if name == topic}
    return {key: value for key, value in last.items() if value is not None}


@given(EPOCHS, CUTS, st.sampled_from(["inner", "left"]))
@examples(100)
def test_a_foreign_key_join_says_in_the_end_what_the_tables_say(
    given_epochs: list[Epoch], cuts: list[int], how: str
) -> None:
    def make() -> Topology:
        builder = StreamsBuilder()
        left, right = builder.table("L", store="L"), builder.table("R", store="R")
        join = left.join if how == "inner" else left.left_join
        joined = join(right, text, foreign_key=lambda _key, value: value or None, store="joined", value=str)
        joined.to_stream().to("out")
        return builder.build()

    left, right = table_of("L", given_epochs), table_of("R", given_epochs)
    expected = {
        key: text(value, right.get(value))
        for key, value in left.items()
        if how == "left" or right.get(value) is not None
    }
    assert last_sent(check_cuts(make, given_epochs, cuts)) == expected


@given(EPOCHS, CUTS, HOWS, st.sampled_from([None, "joined"]))
@examples(60)
def test_a_join_by_key_says_in_the_end_what_the_tables_say(
    given_epochs: list[Epoch], cuts: list[int], how: str, store: str | None
) -> None:
    def make() -> Topology:
        builder = StreamsBuilder()
        left, right = builder.table("L", store="L"), builder.table("R", store="R")
        join = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[how]
        join(right, text, store=store, value=str).to_stream().to("out")
        return builder.build()

    left, right = table_of("L", given_epochs), table_of("R", given_epochs)
    keys = {"inner": left.keys() & right.keys(), "left": left.keys(), "outer": left.keys() | right.keys()}[how]
    expected = {key: text(left.get(key), right.get(key)) for key in keys}
    assert last_sent(check_cuts(make, given_epochs, cuts)) == expected


@st.composite
def chains(draw: st.DrawFn) -> list[tuple[str, bool]]:
    """Draw the verbs above a group, each with or without a store."""
    verbs = st.sampled_from(["filter", "map", "join", "left", "outer", "suppress", "source"])
    return draw(st.lists(st.tuples(verbs, st.booleans()), max_size=4))


def chained(builder: StreamsBuilder, chain: list[tuple[str, bool]]) -> KTable:
    table, other = builder.table("L", store="L"), builder.table("R", store="R")
    is_joined = False
    for number, (verb, is_kept) in enumerate(chain):
        store = f"{verb}-{number}" if is_kept else None
        if verb == "filter":
            table = table.filter(lambda key, value: len(key + value) % 3 > 0, store=store)
        elif verb == "map":
            table = table.map_values(lambda value: value[1:] or None, store=store, value=str)
        elif verb == "suppress":
            table = table.suppress(until_time_limit("20ms"), name=f"{verb}-{number}")
        elif verb == "source":
            table = table.to_stream().to_table(store=f"{verb}-{number}")
        else:
            join = {"join": table.join, "left": table.left_join, "outer": table.outer_join}[verb]
            table = join(other, text, store=store if not is_joined else f"{verb}-{number}", value=str)
            is_joined = True
    return table


@given(EPOCHS, CUTS, chains())
@examples(100)
def test_a_group_takes_back_exactly_what_it_was_given(
    given_epochs: list[Epoch], cuts: list[int], chain: list[tuple[str, bool]]
) -> None:
    """A group below any verbs has exactly the rows that were sent last (D13)."""

    def make() -> Topology:
        builder = StreamsBuilder()
        table = chained(builder, chain)
        table.to_stream().to("out")
        groups = table.group_by(lambda key, value: (len(value), f"{key}={value}"))
        groups.aggregate(
            list,
            lambda _key, value, rows: sorted([*rows, value]),
            lambda _key, value, rows: _without(rows, value),
            store="groups",
            value=list[str],
        ).to_stream().to("groups")
        return builder.build()

    replay = check_cuts(make, given_epochs, cuts)
    rows = sorted(row for rows in last_sent(replay, "groups").values() for row in rows)
    assert rows == sorted(f"{key}={value}" for key, value in last_sent(replay).items())


def _without(rows: list[str], value: str) -> list[str]:
    left = list(rows)
    left.remove(value)  # fails if it was never added
    return left


@given(EPOCHS, CUTS, st.sampled_from([0, 10, 40, 1000]))
@examples(100)
def test_a_versioned_table_counts_the_newest_rows_by_timestamp(
    given_epochs: list[Epoch], cuts: list[int], history: int
) -> None:
    def make() -> Topology:
        builder = StreamsBuilder()
        table = builder.table("L", store=versioned_store("L", history=f"{history}ms", value=str))
        table.map_values(lambda value: value).group_by(lambda key, value: (value, key)).count(store="n").to_stream().to(
            "out"
        )
        return builder.build()

    replay = check_cuts(make, given_epochs, cuts)
    counts = {key: count for key, count in last_sent(replay).items() if count}
    newest: dict[str, int] = {}
    for partition in range(2):
        store = replay.task(0, partition).stores["L"]
        for key in KEYS:
            if (row := store.find(key)) is not None:  # type: ignore[attr-defined]
                newest[row.value] = newest.get(row.value, 0) + 1
    assert counts == newest
