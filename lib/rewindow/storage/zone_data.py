"""Read the clocks of time zones from the IANA database, as the package ``tzdata`` has it.

The database of the operating system is never used, because its edition differs from machine to machine. ``tzdata`` is pinned
with the other packages of a job.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache, partial
from importlib.resources import files
from zoneinfo import ZoneInfo

import tzdata

from rewindow.errors import ConfigError
from rewindow.streams.duration import in_words
from rewindow.streams.windows.zone_table import CLOCK_CHANGE_MS, LAST_MS, ZoneTable

_DAY_S = 86_400
_NAMES = "zones"
"""The file of ``tzdata`` that lists all names."""


def read_zones(zones: Iterable[str]) -> dict[str, ZoneTable]:
    """Return the clocks of zones by name, for windows.

    Raises `ConfigError` (78) as `read_zone` does, and for a clock that goes back so far that windows would be longer than their
    upper bound (`CalendarWindows.size_ms`). In tzdata 2026f, only Antarctica/Vostok has such a clock.
    """
    read = {zone: read_zone(zone) for zone in zones}
    for zone, zone_table in read.items():
        if zone_table.goes_back_ms > CLOCK_CHANGE_MS:
            raise ConfigError(
                "time-zone-goes-back",
                "the clock of {zone} goes back by {change}, and windows in local time allow at most {limit}: use another zone",
                zone=zone,
                change=in_words(zone_table.goes_back_ms),
                limit=in_words(CLOCK_CHANGE_MS),
            )
    return read


@lru_cache(maxsize=32)
def read_zone(zone: str) -> ZoneTable:
    """Return the clock of a zone from 1970 to 2100. Raises `ConfigError` (78) for a name that the database does not have."""
    if zone not in files(tzdata).joinpath(_NAMES).read_text("utf-8").splitlines():
        raise ConfigError(
            "time-zone-unknown",
            "tzdata {version} has no time zone {zone!r}: use a name of the IANA database, such as Europe/Berlin or UTC",
            version=tzdata.IANA_VERSION,
            zone=zone,
        )
    clock = zone_info(zone)

    def offset_s(time_s: int) -> int:
        difference = datetime.fromtimestamp(time_s, clock).utcoffset()
        return 0 if difference is None else int(difference.total_seconds())

    changes, offsets = [], [offset_s(0)]
    # No zone changes its clock twice within a day.
    for start in range(0, LAST_MS // 1000, _DAY_S):
        before, after = offsets[-1], offset_s(start + _DAY_S)
        if after != before:
            times = range(start, start + _DAY_S + 1)
            changes.append(1000 * times[bisect_left(times, True, key=partial(_differs, offset_s, before))])
            offsets.append(after)
    return ZoneTable(zone, tuple(changes), tuple(1000 * offset for offset in offsets), tzdata.IANA_VERSION)


def zone_info(zone: str) -> ZoneInfo:
    """Return a time zone of the standard library with the data of ``tzdata``. The name must exist."""
    with files(tzdata).joinpath("zoneinfo", *zone.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=zone)


def _differs(offset_s: Callable[[int], int], before: int, time_s: int) -> bool:
    return offset_s(time_s) != before
