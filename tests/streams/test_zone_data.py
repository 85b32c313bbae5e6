"""The clocks of zones, as they are read from the package `tzdata`, equal those of Python's `zoneinfo`."""

from __future__ import annotations

import pickle
import random
import struct
from datetime import timedelta
from importlib.resources import files

import pytest
import tzdata

from rewindow.storage.zone_data import read_zone, read_zones
from rewindow.streams.windows.zone_table import LAST_MS
from tests.refusals import refused
from tests.streams.naive_windows import HOUR, SECOND, instant_of, ms_of, offset_ms, year

ZONES = [
    "Africa/Casablanca",
    "Africa/Monrovia",
    "America/Argentina/Buenos_Aires",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Antarctica/Troll",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "EST5EDT",
    "Europe/Berlin",
    "Europe/Dublin",
    "Pacific/Apia",
]


def names() -> list[str]:
    return files(tzdata).joinpath("zones").read_text("utf-8").split()


@pytest.mark.parametrize("zone", ZONES)
def test_a_clock_equals_that_of_python_at_any_instant(zone: str) -> None:
    clock = read_zone(zone)
    dice = random.Random(zone)
    near = (change + step for change in clock.changes_ms for step in (-SECOND, -1, 0, 1, SECOND))
    for time in (0, 1, LAST_MS - 1, *near, *(dice.randrange(LAST_MS) for _ in range(3_000))):
        assert clock.wall_ms(time) - time == offset_ms(zone, time), time


@pytest.mark.parametrize("zone", ZONES)
def test_a_wall_time_is_resolved_as_python_resolves_it(zone: str) -> None:
    """A missing wall time is the first instant after the gap, and a repeated one is the earlier of two instants."""
    clock = read_zone(zone)
    dice = random.Random(zone)
    changes = [clock.wall_ms(change) for change in clock.changes_ms]
    near = (wall + dice.randrange(-30 * HOUR, 30 * HOUR) for wall in changes for _ in range(8))
    for wall_ms in (*near, *(dice.randrange(24 * HOUR, LAST_MS) for _ in range(1_000))):
        wall = year(1970) + timedelta(seconds=wall_ms // SECOND)
        assert clock.instant_ms(ms_of(wall)) == instant_of(zone, wall), wall


def test_after_2100_a_clock_changes_no_more() -> None:
    clock = read_zone("Europe/Berlin")
    assert clock.changes_ms[-1] < LAST_MS
    for time in (LAST_MS, ms_of(year(2150)), ms_of(year(2150)) + 180 * 24 * HOUR):
        assert clock.wall_ms(time) == time + HOUR
        assert clock.instant_ms(time + HOUR) == time


ODD = ["", " ", "Europe", "europe/berlin", "Europe/Berlin ", "Europe/Berlin\nUTC", "CEST", "../etc/passwd", "zones"]
ODD += ["/usr/share/zoneinfo/UTC", "Europe/../UTC", "UTC\0", "right/UTC", "posixrules", "+01:00", "Mars/Olympus"]


@pytest.mark.parametrize("zone", ODD)
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with refused("time-zone-unknown", zone=zone, version=tzdata.IANA_VERSION):
        read_zone(zone)
    with refused("time-zone-unknown", zone=zone):
        read_zones({"UTC": "first", zone: "second"})


def test_a_clock_travels() -> None:
    clock = read_zone("Pacific/Apia")
    copy = pickle.loads(pickle.dumps(clock))  # noqa: S301 - our own bytes
    assert (copy, copy.version, copy.digest()) == (clock, tzdata.IANA_VERSION, clock.digest())
    assert copy.instant_ms(clock.wall_ms(10**12)) == 10**12
    assert len(list(clock.periods())) == len(clock.offsets_ms)


def stored_changes(zone: str) -> list[int]:
    """Return the instants (s) of all changes that a file of the database lists one by one (RFC 8536, version 2 and later)."""
    data = files(tzdata).joinpath("zoneinfo", *zone.split("/")).read_bytes()
    start = 0
    for size in (4, 8):
        isut, isstd, leap, times, types, chars = struct.unpack_from(">6l", data, start + 20)
        if size == 8:
            return list(struct.unpack_from(f">{times}q", data, start + 44))
        start += 44 + times * (size + 1) + types * 6 + chars + leap * (size + 4) + isstd + isut
    raise AssertionError


@pytest.mark.slow
def test_the_clocks_of_all_names_are_read_with_all_their_changes() -> None:
    """Also those that were undone within a day, of which no zone has any."""
    for zone in names():
        clock = read_zone(zone)
        assert clock.zone == zone
        assert len(clock.offsets_ms) == len(clock.changes_ms) + 1
        assert all(one < other for one, other in zip((-1, *clock.changes_ms), clock.changes_ms, strict=False))
        for time in stored_changes(zone):
            if 0 < time < LAST_MS // 1000:
                is_change = offset_ms(zone, time * 1000 - 1000) != offset_ms(zone, time * 1000)
                assert (time * 1000 in clock.changes_ms) is is_change, (zone, time)
