"""What a user is told about a changed job: the node, the parameter, the old and the new value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rewindow import (
    Count,
    JoinWindows,
    SessionWindows,
    StreamsBuilder,
    Sum,
    TimeWindows,
    Topology,
    session_store,
    until_time_limit,
    versioned_store,
)
from rewindow.control.plan.compatibility import obstacles
from rewindow.control.plan.job_diff import changed_parameters, differences
from rewindow.control.plan.spec import JobBinding
from rewindow.streams.serde.schema import Column
from tests.control.ledgers import BINDING


def bound(topology: Topology) -> JobBinding:
    stores = {name: (Column("user", "string"),) for name in topology.stores}
    return replace(BINDING, fingerprint=topology.fingerprint(), topology=topology.describe(), stores=stores)


def windowed(windows: TimeWindows | SessionWindows, *aggregates: object) -> JobBinding:
    builder = StreamsBuilder()
    table = (
        builder.stream("orders")
        .group_by_key()
        .windowed_by(windows)
        .aggregate(*aggregates or (Count(),), store="orders-per-day")
    )  # type: ignore[arg-type, call-overload]
    table.to_stream().to("out")
    return bound(builder.build())


def joined(grace: str) -> JobBinding:
    builder = StreamsBuilder()
    windows = JoinWindows.of("1h", grace=grace)
    builder.stream("l").join(builder.stream("r"), lambda one, other: one or other, windows, name="pairs").to("out")
    return bound(builder.build())


def limited(limit: str) -> JobBinding:
    builder = StreamsBuilder()
    table = builder.table("orders", store=versioned_store("known", history="1d") if limit == "1d" else "known")
    table.suppress(until_time_limit(limit), name="slow").to_stream().to("out")
    return bound(builder.build())


def kept(retention: str) -> JobBinding:
    builder = StreamsBuilder()
    grouped = builder.stream("orders").group_by_key().windowed_by(SessionWindows.of("5m", grace="0s"))
    grouped.count(store=session_store("visits", retention=retention)).to_stream().to("out")
    return bound(builder.build())


DAY = TimeWindows.of("1d", grace="6h")
CHANGES: dict[str, tuple[Callable[[], JobBinding], Callable[[], JobBinding], list[str]]] = {
    "grace": (
        lambda: windowed(DAY),
        lambda: windowed(TimeWindows.of("1d", grace="12h")),
        ["grace of orders-per-day changed: 6h -> 12h", "retention of store orders-per-day changed: 1d6h -> 1d12h"],
    ),
    "advance": (
        lambda: windowed(DAY),
        lambda: windowed(DAY.advance_by("90m")),
        ["advance of orders-per-day changed: 1d -> 1h30m"],
    ),
    "aggregate": (lambda: windowed(DAY), lambda: windowed(DAY, Sum()), ["orders-per-day changed: count -> sum()"]),
    "one of several aggregates": (
        lambda: windowed(DAY, {"n": Count(), "total": Sum("amount")}),
        lambda: windowed(DAY, {"n": Count(), "total": Sum("price")}),
        ["total of orders-per-day changed: sum(amount) -> sum(price)"],
    ),
    "kind of windows": (
        lambda: windowed(DAY),
        lambda: windowed(SessionWindows.of("1d", grace="6h")),
        [
            (
                "orders-per-day changed: window(count, size=1d, advance=1d, grace=6h, store=orders-per-day) -> "
                "window(count, session, gap=1d, grace=6h, store=orders-per-day)"
            ),
            "window size of store orders-per-day changed: 1d -> 0s",
            "store orders-per-day: kind: window -> session",
        ],
    ),
    "grace of a join": (
        lambda: joined("5m"),
        lambda: joined("1h"),
        [
            "grace of pairs changed: 5m -> 1h",
            "retention of store pairs-left changed: 2h5m -> 3h",
            "retention of store pairs-right changed: 2h5m -> 3h",
        ],
    ),
    "limit of a suppress": (
        lambda: limited("90m"),
        lambda: limited("1m"),
        ["limit of slow changed: 1h30m -> 1m", "holding time of node slow changed: 1h30m -> 1m"],
    ),
    "retention": (
        lambda: kept("1h"),
        lambda: kept("2h"),
        ["retention of store visits changed: 1h -> 2h"],
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_names_node_parameter_old_and_new_value(what: str) -> None:
    before, now, said = CHANGES[what]
    assert sorted(differences(before(), now())) == sorted(said)


def test_the_effect_on_a_store_names_the_parameter_too() -> None:
    (line,) = obstacles(windowed(DAY), windowed(TimeWindows.of("1d", grace="12h")), {})
    assert line == "store orders-per-day is incompatible: grace of orders-per-day changed: 6h -> 12h"


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("map", "filter", ["n changed: map -> filter"]),
        ("where(a > 1)", "where(a > 2)", ["n changed: a > 1 -> a > 2"]),
        ("f(size=1, size=2)", "f(size=1, size=3)", ["n changed: f(size=1, size=2) -> f(size=1, size=3)"]),
        ("f(x=sum(a, b), y=[1, 2])", "f(x=sum(a, c), y=[1, 2])", ["x of n changed: sum(a, b) -> sum(a, c)"]),
        ("", "f()", ["n changed: no description -> f()"]),
        ("f(", "f)", ["n changed: f( -> f)"]),
    ],
)
def test_any_two_descriptions_can_be_compared(before: str, now: str, said: list[str]) -> None:
    assert changed_parameters("n", before, now) == said
