"""D20: the grid of intervals depends only on unit, count and time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.contracts.ingest import GRID_OF_1970, FeedSpec, ReadWindow
from rewindow.control.ingest.decide import WatermarkPolicy, decide_watermark
from rewindow.control.ingest.intervals import Grid, Idleness, due_intervals, kept_grid
from rewindow.control.ingest.landings import Delivery
from rewindow.streams.record import TopicPartition
from tests.refusals import containing, refused

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia"]
grids = st.builds(
    Grid,
    st.integers(1, 6),
    st.sampled_from(["m", "h", "d", "w", "mo", "y"]),
    st.sampled_from(ZONES),
    st.sampled_from(["day", GRID_OF_1970]),
)
times = st.integers(-(10**12), 4 * 10**12)


def ms(*parts, zone="UTC"):
    return round(datetime(*parts, tzinfo=ZoneInfo(zone)).timestamp() * 1000)


@given(grids, times)
def test_intervals_cover_time_without_gaps(grid, time):
    start, end = grid.start_of(time), grid.after(time)
    assert start <= time < end
    assert grid.start_of(end) == end
    assert grid.start_of(end - 1) == start
    assert grid.start_of(start) == start


@given(grids, times, times)
def test_only_complete_intervals_are_due(grid, first, length):
    until = first + abs(length) % (40 * 86_400_000)
    starts = list(islice(grid.starts(first, until), 100))
    assert all(grid.after(start) <= until for start in starts)
    assert all(grid.after(a) == b for a, b in pairwise(starts))
    if starts and len(starts) < 100:
        assert starts[0] == grid.start_of(first)
        assert grid.after(grid.after(starts[-1])) > until


@pytest.mark.parametrize(
    ("grid", "time", "start"),
    [
        (Grid(1, "mo"), ms(2013, 3, 31, 23), ms(2013, 3, 1)),
        (Grid(1, "mo", "Europe/Berlin"), ms(2013, 3, 31, 23), ms(2013, 4, 1, zone="Europe/Berlin")),
        (Grid(1, "w"), ms(2026, 11, 21), ms(2026, 11, 16)),
        (Grid(3, "mo"), ms(2026, 11, 21), ms(2026, 10, 1)),
        (Grid(1, "h", "Asia/Kolkata"), ms(2026, 11, 21, 5, 10), ms(2026, 11, 21, 4, 30)),
        (Grid(1, "y"), ms(2026, 11, 21), ms(2026, 1, 1)),
        (Grid(6, "h", "Europe/London"), ms(2026, 11, 21, 5, 10), ms(2026, 11, 21)),
        (Grid(6, "h", "Europe/London", GRID_OF_1970), ms(2026, 11, 21, 5, 10), ms(2026, 11, 21, 5)),
        (Grid(5, "h", "Europe/London"), ms(2026, 11, 21), ms(2026, 11, 21) - ms(2026, 11, 21) % (5 * 3_600_000)),
    ],
)
def test_examples(grid, time, start):
    assert grid.start_of(time) == start


CHANGING = [
    *("Europe/London", "Europe/Berlin", "America/New_York", "America/Havana", "Asia/Kolkata", "Asia/Kathmandu"),
    *("Australia/Lord_Howe", "Asia/Tehran", "Asia/Beirut", "Atlantic/Azores", "Africa/Casablanca", "Pacific/Apia"),
]


QUARTER = 900_000
"""Fifteen minutes in ms. All offsets of these zones in these years are multiples of it."""


@cache
def clock_of(zone):
    """Return the quarters of thirteen months since 1970, each with that which the zone's clock shows."""
    here, first, last = ZoneInfo(zone), ms(2011, 1, 1) // QUARTER, ms(2012, 2, 1) // QUARTER
    shown = [datetime.fromtimestamp(quarter * 900, here).replace(tzinfo=UTC) for quarter in range(first, last)]
    return [
        (quarter, round(clock.timestamp()) // 900) for quarter, clock in zip(range(first, last), shown, strict=True)
    ]


@pytest.mark.parametrize("zone", CHANGING)
@pytest.mark.parametrize("length", [2, 3, 4, 8, 24, 48])
def test_hours_that_divide_a_day_divide_the_local_day(zone, length):
    """Walk through years in quarters of an hour, and start an interval when the zone's clock shows or skips a multiple."""
    starts, shown = [], None
    for quarter, now in clock_of(zone):
        passed = range(shown + 1, now + 1) if shown is not None and now > shown else (now,)
        if any(one % length == 0 for one in passed):
            starts.append(quarter * QUARTER)
        shown = now
    grid = Grid(15 * length, "m", zone)
    assert list(grid.starts(starts[0], starts[-1])) == starts[:-1]
    assert all(grid.start_of(end - 1) == start for start, end in list(pairwise(starts))[:: 50 // length])


def test_an_hourly_feed_with_a_zone_keeps_its_hours():
    for zone in ("Europe/Berlin", "America/New_York", "UTC"):
        hours = [
            list(Grid(1, "h", zone, rule).starts(ms(2026, 1, 1), ms(2027, 1, 1))) for rule in ("day", GRID_OF_1970)
        ]
        assert hours[0] == hours[1]


def test_a_feed_is_told_of_its_older_intervals_only_if_they_differ():
    now = ms(2026, 11, 29)
    told = [
        kept_grid(FeedSpec("f", 1, (), every, zone, grid=GRID_OF_1970), now)
        for every, zone in [
            ((6, "h"), "Europe/London"),
            ((6, "h"), "UTC"),
            ((1, "h"), "Europe/London"),
            ((5, "h"), "UTC"),
        ]
    ]
    assert [bool(one) for one in told] == [True, False, False, False]


def test_a_day_has_as_many_hours_as_its_zone_says():
    days = Grid(1, "d", "Europe/Berlin")
    spring, autumn = ms(2026, 3, 29, zone="Europe/Berlin"), ms(2026, 10, 25, zone="Europe/Berlin")
    assert days.after(spring) - spring == timedelta(hours=23) / timedelta(milliseconds=1)
    assert days.after(autumn) - autumn == timedelta(hours=25) / timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("zone", "day"),
    [("Atlantic/Azores", (2025, 10, 26)), ("America/Havana", (2025, 11, 2)), ("Asia/Beirut", (2025, 3, 30))],
)
def test_a_day_begins_with_its_first_hour_when_midnight_comes_twice_or_never(zone, day):
    noon = ms(*day, 12, zone=zone)
    start = Grid(1, "d", zone).start_of(noon)
    dates = [datetime.fromtimestamp(time / 1000, ZoneInfo(zone)).date() for time in (start - 1, start, noon)]
    assert dates[0] < dates[1] == dates[2]


def test_bad_words_are_refused():
    with refused("interval-unknown"):
        Grid(0, "h")
    with refused("time-zone-unknown", zone=containing("Mars")):
        Grid(1, "h", "Mars/Olympus")


def test_what_a_call_goes_through():
    grid, hour = Grid(1, "h"), 3_600_000

    def never():
        raise AssertionError("asked unnecessarily")

    assert due_intervals(grid, ReadWindow(0, hour), never, all_of_them=False) == ([(0, hour)], [(0, hour)])
    everything = [(0, hour), (hour, 2 * hour), (2 * hour, 3 * hour)]
    first, second, third = everything
    window = ReadWindow(0, 3 * hour)
    assert due_intervals(grid, window, never, all_of_them=True) == (everything, everything)
    assert due_intervals(grid, window, lambda: {2 * hour}, all_of_them=False) == ([first, third], [third])
    for behind in (-hour, None):
        assert due_intervals(grid, window, lambda: {behind}, all_of_them=False) == ([first, third], [first])  # noqa: B023
    assert due_intervals(grid, ReadWindow(None, 3 * hour), lambda: {hour, None}, all_of_them=False) == (
        [second, third],
        [second],
    )
    assert due_intervals(grid, ReadWindow(None, 3 * hour), set, all_of_them=True) == ([], [])


def landings_of(intervals, rows, deliveries, policy, before_ms):
    """Return the intervals that become landings with their watermarks. ``rows``: start -> partition -> largest timestamp."""
    known, reached, found = dict(deliveries), before_ms, []
    for start, end in intervals:
        known |= {tp: Delivery(largest, end) for tp, largest in rows.get(start, {}).items()}
        at = decide_watermark(policy, known, landed_ms=end, interval_end_ms=end, before_ms=reached).time_ms
        if start in rows or at > reached:
            found.append((start, at))
        reached = at
    return found


partitions = st.sampled_from([TopicPartition("t", number) for number in range(3)])
hours = st.integers(0, 60)


@given(
    st.dictionaries(hours, st.dictionaries(partitions, st.integers(0, 70), min_size=1), max_size=6),
    st.dictionaries(partitions, st.tuples(st.integers(0, 70), st.integers(-40, 0)), max_size=3),
    st.one_of(st.none(), st.integers(0, 40)),
    st.integers(0, 3),
    st.integers(-5, 40),
    st.integers(1, 3),
)
def test_intervals_that_a_call_leaves_out_make_no_landing(rows, before, idle, lag, reached, count):
    """All intervals, and those that a call goes through, give the same landings. Times are in quarters of an hour."""
    quarter, grid = 900_000, Grid(count, "h")
    starts = {grid.start_of(4 * hour * quarter): hour for hour in rows}
    arrived = {start: {tp: at * 4 * quarter for tp, at in rows[hour].items()} for start, hour in starts.items()}
    deliveries = {tp: Delivery(at * 4 * quarter, landed * 3 * quarter) for tp, (at, landed) in before.items()}
    policy = WatermarkPolicy(None if idle is None else idle * 3 * quarter, lag * quarter)
    window = ReadWindow(0, grid.start_of(64 * 4 * quarter))
    idleness = Idleness(policy.max_task_idle_ms, tuple(one.landed_ms for one in deliveries.values()))
    every, _ = due_intervals(grid, window, set, all_of_them=True)
    some, expected = due_intervals(grid, window, lambda: set(arrived), all_of_them=False, idleness=idleness)
    told = [landings_of(one, arrived, deliveries, policy, reached * quarter) for one in (some, every)]
    assert told[0] == told[1]
    assert some[-1] == every[-1]
    assert [start for start, _ in expected] == sorted(arrived)


def test_years_without_rows_cost_nothing():
    grid, hour = Grid(1, "h"), 3_600_000
    through, until = ms(2013, 1, 1), ms(2026, 11, 24)
    some, expected = due_intervals(grid, ReadWindow(through, until), lambda: {through + hour}, all_of_them=False)
    assert [start for start, _ in some] == [through, through + hour, until - hour]
    assert expected == some[1:2]


def test_absurdly_many_intervals_are_refused():
    with refused("intervals-too-many"):
        due_intervals(Grid(1, "s"), ReadWindow(0, 10**12), set, all_of_them=True)


def test_zones_are_not_the_machines(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert Grid(1, "d").start_of(ms(2026, 1, 1, 20)) == datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000
