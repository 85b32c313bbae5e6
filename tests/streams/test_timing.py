"""Suppliers declare what waits for a clock, and the ledger keeps it: the durations of windows, suppresses and joins."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rewindow import (
    CalendarWindows,
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    UnlimitedWindows,
    until_time_limit,
    until_window_closes,
    versioned_store,
)
from rewindow.streams.timing import TimedNode
from rewindow.streams.topology import Topology

MINUTE = 60_000


def windowed(windows: object, *, closes: bool = False, suppress: object = None) -> Topology:
    builder = StreamsBuilder()
    grouped = builder.stream("events").group_by_key().windowed_by(windows)  # type: ignore[call-overload]
    if closes:
        grouped = grouped.emit_strategy(EmitStrategy.on_window_close())
    table = grouped.count(store="sums")
    if suppress is not None:
        table = table.suppress(suppress, name="held")
    table.to_stream().to("totals")
    return builder.build()


LOCAL = CalendarWindows.of("7d", advance="1d", zone="Asia/Tokyo", offset="6h", grace="5m")


def left_join() -> Topology:
    builder = StreamsBuilder()
    left, right = builder.stream("events"), builder.stream("others")
    windows = JoinWindows.of("10m", grace="1m").before("2m")
    left.outer_join(right, lambda one, other: (one, other), windows, name="pairs").to("totals")
    return builder.build()


def table_join() -> Topology:
    builder = StreamsBuilder()
    prices = builder.table("others", store=versioned_store("prices", history="1h"))
    builder.stream("events").join(prices, lambda one, other: (one, other), grace="5m", name="priced").to("totals")
    return builder.build()


def by_store(topology: Topology) -> dict[str, TimedNode]:
    return {timed.store: timed for timed in topology.timed_nodes()}


TUMBLING, HOPPING = TimeWindows.of("30m", grace="5m"), TimeWindows.of("1h", grace="10m").advance_by("15m")
SESSIONS, SLIDING = SessionWindows.of("10m", grace="20m"), SlidingWindows.of("10m", grace="5m")


@pytest.mark.parametrize(
    ("windows", "closes", "final_after_ms", "text", "has_one_window"),
    [
        (TUMBLING, False, None, "size 30m, grace 5m", True),
        (TUMBLING, True, 5 * MINUTE, "size 30m, grace 5m", True),
        (HOPPING, True, 10 * MINUTE, "size 1h, advance 15m, grace 10m", False),
        (SESSIONS, True, 30 * MINUTE + 1, "gap 10m, grace 20m", True),
        (SLIDING, True, 5 * MINUTE + 1, "difference 10m, grace 5m", False),
        (LOCAL, False, None, "size 7d in Asia/Tokyo, every 1d, offset 6h, grace 5m", False),
        (UnlimitedWindows.of(), False, None, "", False),
    ],
)
def test_a_windowed_aggregate_declares_its_windows(
    *, windows: object, closes: bool, final_after_ms: int | None, text: str, has_one_window: bool
) -> None:
    timed = by_store(windowed(windows, closes=closes))["sums"]
    assert (timed.final_after_ms, timed.windows, timed.has_one_window) == (final_after_ms, text, has_one_window)
    assert (timed.node, timed.topics, timed.is_buffer, timed.is_join) == ("sums", ("events",), False, False)


@pytest.mark.parametrize(
    ("windows", "suppress", "final_after_ms", "sends_nulls", "all_final_at"),
    [
        (TUMBLING, until_window_closes(), 5 * MINUTE, False, 95 * MINUTE),
        (HOPPING, until_window_closes(), 10 * MINUTE, False, 130 * MINUTE),
        (SESSIONS, until_window_closes(), 30 * MINUTE + 1, False, 90 * MINUTE + 1),
        (SLIDING, until_window_closes(), 5 * MINUTE + 1, False, 75 * MINUTE + 1),
        (TUMBLING, until_time_limit("1m"), MINUTE, True, 91 * MINUTE),
    ],
)
def test_a_suppress_declares_its_delay_and_knows_the_windows_above_it(
    *, windows: object, suppress: object, final_after_ms: int, sends_nulls: bool, all_final_at: int
) -> None:
    timed = by_store(windowed(windows, suppress=suppress))["held"]
    assert (timed.final_after_ms, timed.sends_nulls, timed.is_buffer) == (final_after_ms, sends_nulls, True)
    assert timed.all_final_at(60 * MINUTE, {}) == all_final_at


def test_results_of_windows_in_local_time_are_final_by_the_newest_end_in_the_stores() -> None:
    day = CalendarWindows.of("1d", zone="Asia/Tokyo", grace="5m")
    timed = by_store(windowed(day, suppress=until_window_closes()))["held"]
    assert timed.all_final_at(0, {}) == 27 * 60 * MINUTE + 5 * MINUTE
    assert timed.all_final_at(0, {"Asia/Tokyo": 15 * 60 * MINUTE}) == 15 * 60 * MINUTE + 5 * MINUTE
    assert TimedNode.from_json(timed.as_json()) == timed


def test_each_side_of_a_join_of_streams_waits_for_its_own_time() -> None:
    waits = {store: timed.final_after_ms for store, timed in by_store(left_join()).items()}
    assert waits == {"pairs-left-unmatched": 11 * MINUTE + 1, "pairs-right-unmatched": 3 * MINUTE + 1}
    assert all(timed.is_join for timed in by_store(left_join()).values())


def test_a_join_with_a_table_waits_for_its_grace() -> None:
    assert by_store(table_join())["priced"].final_after_ms == 5 * MINUTE


@pytest.mark.parametrize("make", [lambda: windowed(SESSIONS, suppress=until_window_closes()), left_join, table_join])
def test_the_ledger_gives_back_what_a_plan_stored(make: Callable[[], Topology]) -> None:
    timed = make().timed_nodes()
    assert timed
    assert tuple(TimedNode.from_json(node.as_json()) for node in timed) == timed
    assert make().fingerprint() == make().fingerprint()


def test_a_processor_of_a_user_declares_nothing() -> None:
    builder = StreamsBuilder()
    builder.stream("events").filter(lambda _key, _value: True, name="window").to("totals")
    assert builder.build().timed_nodes() == ()
