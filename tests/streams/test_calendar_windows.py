"""Windows in local time equal those of a brute force with Python's `zoneinfo`, and have their upper bound and digests."""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime, timedelta
from functools import partial
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
import tzdata
from hypothesis import given
from hypothesis import strategies as st

from rewindow import CalendarWindows, TimeWindows
from rewindow.engine.worker.vectorized.window_grids import CalendarGrid
from rewindow.errors import ConfigError
from rewindow.storage.zone_data import read_zone, read_zones
from rewindow.streams.record import Window
from rewindow.streams.windows.zone_table import ZoneTable
from tests.properties.effort import examples
from tests.refusals import refused
from tests.streams.naive_windows import (
    DAY,
    DAYS_OR_MORE,
    HOUR,
    PARTS_OF_DAYS,
    Naive,
    Shape,
    around,
    changes_in,
    instant_of,
    ms_of,
    year,
)

ZONES = [
    "Europe/Berlin",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Africa/Casablanca",
    "America/Sao_Paulo",
]
IN_1970 = ["Africa/Monrovia", "America/New_York", "Pacific/Apia", "Pacific/Kiritimati", "UTC"]
SHAPES = [*PARTS_OF_DAYS, *DAYS_OR_MORE]


def hold_against_brute_force(zone: str, shape: Shape, first: datetime, last: datetime) -> None:
    """Compare the windows around every point of the grid and every clock change between two times."""
    windows = shape.windows(zone).bound_to(read_zone(zone))
    naive = Naive(windows, partial(instant_of, zone), first, last)
    changes = changes_in(zone, first, last)
    near = around(change + quarter * HOUR // 4 for change in changes for quarter in range(-26, 27))
    one_by_one = near if shape in PARTS_OF_DAYS else near + around(naive.points)
    for time in naive.known(one_by_one):
        found = [tuple(window)[:2] for window in windows.windows(time)]
        assert found == naive.at(time), (zone, shape, time)
    for start, end in zip(naive.starts[windows.steps :], naive.ends[windows.steps :], strict=True):
        assert windows.end_of(start) == end
    times = np.array(naive.known(near + around(naive.points)))
    starts, ends = np.array(naive.starts), np.array(naive.ends)
    of_rows = CalendarGrid(windows).windows_of(times)
    before, after = np.searchsorted(ends, times, "right"), np.searchsorted(starts, times, "right")
    rows = np.repeat(np.arange(len(times)), after - before)
    numbers = np.concatenate([np.arange(*between) for between in zip(before.tolist(), after.tolist(), strict=True)])
    assert np.array_equal(np.arange(len(times)) if of_rows.rows is None else of_rows.rows, rows)
    assert np.array_equal(of_rows.starts, starts[numbers])
    assert np.array_equal(of_rows.ends, ends[numbers])
    assert np.array_equal(of_rows.last_ends, ends[after - 1])


@pytest.mark.parametrize("zone", ZONES)
def test_windows_equal_a_brute_force(zone: str) -> None:
    for shape in SHAPES:
        hold_against_brute_force(zone, shape, year(2011), year(2013))


@pytest.mark.parametrize("zone", IN_1970)
def test_windows_begin_at_0(zone: str) -> None:
    for shape in SHAPES:
        hold_against_brute_force(zone, shape, year(1970), year(1971))
        first = shape.windows(zone).bound_to(read_zone(zone)).windows(0)
        assert [window.start_ms for window in first] == [0]


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_windows_of_ten_years_equal_a_brute_force(zone: str) -> None:
    for shape in SHAPES:
        hold_against_brute_force(zone, shape, year(2005), year(2016))


QUARTER = HOUR // 4


@st.composite
def clocks(draw: Any) -> ZoneTable:
    """Generate a clock that no country would have: it changes by hours, several times a day."""
    steps = draw(st.lists(st.integers(1, 200), max_size=12))
    changes = np.cumsum([draw(st.integers(1, 400)), *steps]).tolist()
    offsets = draw(st.lists(st.integers(-50, 50), min_size=len(changes) + 1, max_size=len(changes) + 1))
    changes, offsets = ([number * QUARTER for number in numbers] for numbers in (changes, offsets))
    return ZoneTable("Moon/Base", tuple(changes), tuple(offsets))


def first_with(clock: ZoneTable, wall: datetime) -> int:
    """Return the first instant at which a clock shows a wall time or a later one, period by period."""
    untils = [*clock.changes_ms, 2**62]
    for (start, offset), until in zip(clock.periods(), untils, strict=True):
        time = max(ms_of(wall) - offset, start or -(2**62))
        if time < until:
            return time
    raise AssertionError


@examples(200)
@given(clocks(), st.sampled_from(SHAPES), st.lists(st.integers(0, 40 * DAY), min_size=1, max_size=20))
def test_windows_of_any_clock_equal_a_brute_force(clock: ZoneTable, shape: Shape, times: list[int]) -> None:
    windows = shape.windows(clock.zone).bound_to(clock)
    naive = Naive(windows, partial(first_with, clock), year(1970), year(1970) + timedelta(days=45))
    of_rows = CalendarGrid(windows).windows_of(np.array(times))
    rows = np.arange(len(times)) if of_rows.rows is None else of_rows.rows
    for row, time in enumerate(times):
        expected = naive.at(time)
        period = windows.period(time)
        assert period.from_ms <= time < period.until_ms
        for instant in (time, period.from_ms, period.until_ms - 1):
            assert [tuple(window)[:2] for window in windows.windows(instant)] == expected
        assert windows.windows(period.until_ms) != period.windows
        assert windows.starts(time) == [start for start, _ in expected]
        assert [windows.window(start) for start, _ in expected] == [Window(*bounds) for bounds in expected]
        mine = rows == row
        assert list(zip(of_rows.starts[mine].tolist(), of_rows.ends[mine].tolist(), strict=True)) == expected
        assert of_rows.last_ends[row] == expected[-1][1]
    ends = [windows.end_of(time) for time in times]
    assert CalendarGrid(windows).ends(np.array(times)).tolist() == ends


@examples(60)
@given(clocks(), st.integers(0, 30 * DAY), st.data())
def test_a_digest_knows_the_clock_until_a_time_and_nothing_later(
    clock: ZoneTable, until: int, data: st.DataObject
) -> None:
    until = data.draw(st.sampled_from([until, *clock.changes_ms, *(change + 1 for change in clock.changes_ms)]))
    count = bisect_left(clock.changes_ms, until)
    before = ZoneTable("Other/Name", clock.changes_ms[:count], clock.offsets_ms[: count + 1], "of another edition")
    assert clock.digest(until) == before.digest(until) == before.digest()
    shifted = ZoneTable(clock.zone, clock.changes_ms, tuple(offset + 1 for offset in clock.offsets_ms))
    assert clock.digest(until) != shifted.digest(until)
    if count:
        later = (*clock.changes_ms[: count - 1], clock.changes_ms[count - 1] + 1, *clock.changes_ms[count:])
        assert clock.digest(until) != ZoneTable(clock.zone, later, clock.offsets_ms).digest(until)


def test_a_digest_is_the_same_on_every_machine() -> None:
    assert ZoneTable("Some/Zone", (HOUR, DAY), (0, HOUR, 0)).digest() == "32132d001855bb89"


BOUNDED = [Shape("1d"), Shape("6h"), Shape("1mo")]


def longest(clock: ZoneTable, windows: CalendarWindows) -> int:
    """Return the length of the longest window near clock changes. All others last as long as on the clock."""
    lengths = [0]
    for change in clock.changes_ms:
        time = max(0, change - windows.size_ms)
        while time <= change + windows.size_ms:
            period = windows.period(time)
            lengths += (window.end_ms - window.start_ms for window in period.windows)
            time = period.until_ms
    return max(lengths)


@pytest.mark.slow
def test_no_window_of_any_zone_is_longer_than_the_bound() -> None:
    """A zone with a longer one, such as Antarctica/Vostok, which went back by 7 hours in January 1994, is refused."""
    distinct, refusals = {}, []
    for zone in files(tzdata).joinpath("zones").read_text("utf-8").split():
        try:
            (clock,) = read_zones([zone]).values()
        except ConfigError as error:
            refusals.append((zone, error.code))
            continue
        distinct[clock.changes_ms, clock.offsets_ms] = clock
    assert refusals == [("Antarctica/Vostok", "time-zone-goes-back")]
    for shape in BOUNDED:
        windows = [shape.windows(clock.zone).bound_to(clock) for clock in distinct.values()]
        longest_ms = max(longest(clock, own) for clock, own in zip(distinct.values(), windows, strict=True))
        assert longest_ms <= windows[0].size_ms


def test_a_zone_with_longer_windows_than_the_bound_is_refused() -> None:
    with refused("time-zone-goes-back", zone="Antarctica/Vostok", change="7h", limit="3h"):
        read_zones(["Europe/Berlin", "Antarctica/Vostok"])
    read_zones(["Antarctica/Casey", "Asia/Anadyr"])  # which went back by 3 hours, in one step and in several
    vostok = Shape("1d").windows("Antarctica/Vostok").bound_to(read_zone("Antarctica/Vostok"))
    assert longest(vostok.clock, vostok) == 31 * HOUR


def test_the_bound_depends_on_the_unit_alone() -> None:
    bounds = {"30m": 3.5, "6h": 9, "1d": 27, "1w": 171, "1mo": 31 * 24 + 3, "1q": 92 * 24 + 3, "1y": 366 * 24 + 3}
    for size, hours in bounds.items():
        windows = CalendarWindows.of(size, zone="Asia/Kathmandu", grace="1h")
        assert windows.size_ms == hours * HOUR
        assert windows.needed_retention_ms == windows.closes_after_ms == windows.holds_ms == (hours + 1) * HOUR
    assert CalendarWindows.of("7d", advance="1d", zone="UTC", grace="0s").size_ms == 171 * HOUR


def test_without_clock_changes_windows_are_those_of_fixed_times() -> None:
    for size, advance in (("6h", "6h"), ("1d", "1d"), ("7d", "1d"), ("60m", "30m")):
        fixed = TimeWindows.of(size, grace="1h").advance_by(advance)
        windows = CalendarWindows.of(size, advance=advance, zone="UTC", grace="1h").bound_to(read_zone("UTC"))
        for time in (0, 1, 20 * DAY - 1, 20 * DAY, 15_000 * DAY + 7 * HOUR):
            assert windows.windows(time) == [fixed.window(start) for start in fixed.starts(time)]


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    **{repr(size): ("calendar-length-not-understood", {"size": size}) for size in ("", "d", "0d", "1.5h", "1s", "1M")},
    "size -1d": ("calendar-length-not-understood", {"size": "-1d"}),
    "size 1": ("calendar-length-not-understood", {"size": 1}),
    "size timedelta": ("calendar-length-not-understood", {"size": timedelta(days=1)}),
    "advance 1 day": ("calendar-length-not-understood", {"size": "1d", "advance": "1 day"}),
    **{size: ("calendar-step-invalid", {"size": size}) for size in ("7h", "7m", "25h", "2d", "2w", "3mo", "2q", "2y")},
    "14h by 7h": ("calendar-step-invalid", {"size": "14h", "advance": "7h"}),
    "4d by 2d": ("calendar-step-invalid", {"size": "4d", "advance": "2d"}),
    "3d by 2d": ("calendar-advance-invalid", {"size": "3d", "advance": "2d"}),
    "1d by 2d": ("calendar-advance-invalid", {"size": "1d", "advance": "2d"}),
    "1d by 6h": ("calendar-advance-invalid", {"size": "1d", "advance": "6h"}),
    "1h by 30m": ("calendar-advance-invalid", {"size": "1h", "advance": "30m"}),
    "1q by 1mo": ("calendar-advance-invalid", {"size": "1q", "advance": "1mo"}),
    "offset 1d": ("calendar-offset-invalid", {"size": "1d", "offset": "24h"}),
    "offset 1h": ("calendar-offset-invalid", {"size": "1h", "advance": "1h", "offset": "60m"}),
    "offset -1h": ("calendar-offset-invalid", {"size": "1d", "offset": "-1h"}),
    "offset 28d": ("calendar-offset-invalid", {"size": "1mo", "offset": "28d"}),
    "offset x": ("duration-not-understood", {"size": "1d", "offset": "six"}),
    "grace -1s": ("window-grace-negative", {"size": "1d", "grace": "-1s"}),
    "no zone": ("calendar-zone-invalid", {"size": "1d", "zone": ""}),
    "zone None": ("calendar-zone-invalid", {"size": "1d", "zone": None}),
}


@pytest.mark.parametrize(("code", "given"), REFUSED.values(), ids=REFUSED)
def test_other_arguments_are_refused(code: str, given: dict[str, Any]) -> None:
    with refused(code):
        CalendarWindows.of(**{"zone": "Europe/Berlin", "grace": "0s", **given})


def test_windows_without_a_clock_have_a_definition_only() -> None:
    windows = CalendarWindows.of("7d", advance="1d", zone="Mars/Olympus", offset="6h", grace="1h")
    assert windows == windows.bound_to(read_zone("UTC"))
    assert str(windows) == str(windows.bound_to(read_zone("UTC")))
    with refused("calendar-windows-not-bound"):
        windows.windows(0)
    others = [reof_rows.windows("Mars/Olympus") for reof_rows in (Shape("7d", "1d"), Shape("8d", "1d", "6h"))]
    assert len({str(one) for one in (windows, *others)}) == 3


def test_the_brute_force_knows_special_wall_times() -> None:
    """Berlin skipped 2:30 in March and showed it twice in October; Apia skipped a day; Morocco changes four times a year."""
    skipped, repeated = (
        year(2010).replace(month=month, day=day, hour=2, minute=30) for month, day in ((3, 28), (10, 31))
    )
    assert instant_of("Europe/Berlin", skipped) == 1_269_738_000_000
    assert instant_of("Europe/Berlin", repeated) == 1_288_485_000_000
    thirtieth, last = (instant_of("Pacific/Apia", year(2011).replace(month=12, day=day)) for day in (30, 31))
    assert thirtieth == last == 1_325_239_200_000
    assert len(changes_in("Africa/Casablanca", year(2012), year(2013))) == 4
