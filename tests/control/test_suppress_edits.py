"""Which edits of a suppress are compatible with an old checkpoint, according to the topologies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rewindow import (
    KTable,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    until_time_limit,
    until_window_closes,
)
from rewindow.control.plan.job_diff import differences, removed_suppresses
from rewindow.control.plan.spec import JobBinding
from rewindow.streams.serde.schema import Column
from tests.control.ledgers import BINDING

Edit = Callable[[KTable], KTable]
HOURS = TimeWindows.of("1h", grace="0s")
SESSIONS = SessionWindows.of("5m", grace="0s")


def job(edit: Edit, *, sessions: bool = False) -> JobBinding:
    """Bind a job with two tables, one below the other."""
    builder = StreamsBuilder()
    grouped = builder.stream("events").group_by_key()
    windowed = grouped.windowed_by(SESSIONS) if sessions else grouped.windowed_by(HOURS)
    edit(windowed.count(store="sums")).filter(lambda _key, count: count > 1).to_stream().to("totals")
    return bound(builder.build())


def bound(topology: Topology) -> JobBinding:
    stores = {name: (Column("user", "string"),) for name in topology.stores}
    return replace(BINDING, fingerprint=topology.fingerprint(), topology=topology.describe(), stores=stores)


def nothing(table: KTable) -> KTable:
    return table


def closed(table: KTable) -> KTable:
    return table.suppress(until_window_closes(), name="closed")


def limited(limit: str, name: str = "slow") -> Edit:
    return lambda table: table.suppress(until_time_limit(limit), name=name)


def twice(table: KTable) -> KTable:
    return closed(limited("5s")(table))


@pytest.mark.parametrize(
    ("before", "now", "gone"),
    [
        (nothing, closed, []),
        (closed, nothing, ["closed"]),
        (nothing, twice, []),
        (twice, closed, ["slow"]),
        (closed, limited("5s"), ["closed"]),
        (limited("5s"), limited("0s"), []),
        (limited("0s"), limited("9s"), []),
    ],
)
@pytest.mark.parametrize("sessions", [False, True], ids=["hours", "sessions"])
def test_compatible_edits(before: Edit, now: Edit, gone: list[str], *, sessions: bool) -> None:
    one, other = job(before, sessions=sessions), job(now, sessions=sessions)
    assert differences(one, other) == []
    assert removed_suppresses(one, other) == gone


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (limited("5s"), limited("9s")),
        (limited("5s", "one"), lambda table: limited("5s", "one")(table).filter(lambda _key, count: count > 0)),
        (closed, lambda table: table.suppress(until_time_limit("5s"), name="closed")),
    ],
)
def test_incompatible_edits(before: Edit, now: Edit) -> None:
    assert differences(job(before), job(now)) != []


def test_another_store_with_the_name_of_a_suppress_is_a_difference() -> None:
    builder = StreamsBuilder()
    builder.stream("events").group_by_key().count(store="closed").to_stream().to("totals")
    assert "node closed" in " ".join(differences(job(closed), bound(builder.build())))


def test_a_final_suppress_added_below_a_windowed_cogroup_is_refused_because_it_changes_the_clocks() -> None:
    def cogrouped(edit: Edit) -> JobBinding:
        builder = StreamsBuilder()
        one, other = builder.stream("events").group_by_key(), builder.stream("others").group_by_key()
        both = one.cogroup(lambda _key, value, total: total + value).cogroup(other, lambda _key, _value, total: total)
        edit(both.windowed_by(HOURS).aggregate(int, store="sums", value=int)).to_stream().to("totals")
        return bound(builder.build())

    assert differences(cogrouped(nothing), cogrouped(limited("5s"))) == []
    refused = differences(cogrouped(nothing), cogrouped(closed))
    assert "sums-cogroup-agg-0 changed: " in refused[0]
    assert "clock=sums-cogroup-merge" in refused[0]
