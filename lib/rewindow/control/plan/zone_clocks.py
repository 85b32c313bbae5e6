"""The clocks of the time zones in a plan: stored with the plan, compared with those of the present job. Pure.

A job with windows in local time depends on the clocks of their zones, which countries change now and then. So a plan contains
the clock of each zone, and every replay of the run uses it, whatever edition of the database is installed then. A commit has,
for each zone, the latest end of a window in the job's stores (`Commit.zone_ends`).

If a new edition changes a clock only after that time, no stored window or sent result depends on the change. It is accepted and
noted in the next plan. A change until that time is a change of the job's code (R3). One at that very time may move the end.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise, zip_longest
from typing import TYPE_CHECKING

from rewindow.contracts.instants import instant
from rewindow.control.plan.spec import JobBinding
from rewindow.streams.record import MAX_MS

if TYPE_CHECKING:
    from rewindow.streams.windows.zone_table import ZoneTable

_VERSION, _DIGEST, _CLOCK = "tzdata", "digest", "clock"


def recorded(zone_tables: Mapping[str, ZoneTable]) -> dict[str, dict[str, str]]:
    """Return the JSON form of clocks by zone: the edition of the database, the hash, and the clock itself as a short text."""
    return {
        zone: {_VERSION: table.version, _DIGEST: table.digest(), _CLOCK: _packed(table)}
        for zone, table in sorted(zone_tables.items())
    }


def clocks_in(binding: JobBinding) -> dict[str, ZoneTable]:
    """Return the clocks of a binding by zone."""
    return {zone: _unpacked(zone, stored) for zone, stored in binding.zones.items()}


def clock_changes(before: JobBinding, now: JobBinding, ends: Mapping[str, int]) -> list[str]:
    """Return a line for each zone whose clock differs before the time in ``ends`` (`Commit.zone_ends`)."""
    return [
        f"clock of {zone}: tzdata {new.version} changes it from {instant(since)} on, and windows until "
        f"{instant(ends[zone])} were computed with tzdata {old.version}"
        for zone, old, new, since in _different(before, now)
        if since <= ends.get(zone, -1)
    ]


def clock_notes(before: JobBinding, now: JobBinding, ends: Mapping[str, int]) -> list[str]:
    """Return a line for each zone whose clock differs only later than the time in ``ends``."""
    return [
        f"clock of {zone}: tzdata {new.version} changes it from {instant(since)} on (tzdata {old.version} before)"
        for zone, old, new, since in _different(before, now)
        if since > ends.get(zone, -1)
    ]


def _different(before: JobBinding, now: JobBinding) -> Iterator[tuple[str, ZoneTable, ZoneTable, int]]:
    """Yield each zone whose clocks differ, both clocks, and the first time (epoch ms) at which they differ."""
    for zone in sorted(before.zones.keys() & now.zones.keys()):
        if before.zones[zone][_DIGEST] != now.zones[zone][_DIGEST]:
            old, new = _unpacked(zone, before.zones[zone]), _unpacked(zone, now.zones[zone])
            since = next(
                min(one[0], other[0])
                for one, other in zip_longest(old.periods(), new.periods(), fillvalue=(MAX_MS, 0))
                if one != other
            )
            yield zone, old, new, since


def _packed(table: ZoneTable) -> str:
    """Return the changes of a clock as a text of 100 to 300 characters. Rules repeat, so it compresses well."""
    seconds = [change // 1000 for change in table.changes_ms]
    steps = [later - earlier for earlier, later in pairwise([0, *seconds])]
    text = json.dumps([steps, [offset // 1000 for offset in table.offsets_ms]], separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _unpacked(zone: str, stored: Mapping[str, str]) -> ZoneTable:
    from rewindow.streams.windows.zone_table import ZoneTable  # noqa: PLC0415 - few jobs have windows in local time

    steps, offsets = json.loads(zlib.decompress(base64.b64decode(stored[_CLOCK])))
    changes = tuple(1000 * second for second in accumulate(steps))
    return ZoneTable(zone, changes, tuple(1000 * offset for offset in offsets), stored[_VERSION])
