"""Local times as instants, by the offsets of a zone in Python's zone database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

_DAY_US = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31."""
_FIRST_CHANGE, _BY_RULE, _DAYS_OF_WEEK = -47_482, 43_099, 7
"""1840-01-01, before which no zone changed, and 2088-01-01, since when all changes follow rules and are months apart."""


def instants(local_us: npt.NDArray[np.int64], zone: str) -> npt.NDArray[np.int64]:
    """Return local times (microseconds since 1970-01-01 in the zone) as instants (microseconds since 1970 in UTC).

    A time that the clocks skip becomes that much later. A time that they show twice becomes the earlier instant.
    """
    if zone == "UTC" or not len(local_us):
        return local_us
    first_day, last_day = int(local_us.min()) // _DAY_US - 2, int(local_us.max()) // _DAY_US + 2
    changes, offsets = _offsets(zone, max(first_day, _FIRST_DAY), min(last_day, _LAST_DAY))
    # Until both clocks, the one before a change and the one after it, show a later time, the offset before the change counts.
    until = changes + np.maximum(offsets[:-1], offsets[1:])
    return local_us - offsets[np.searchsorted(until, local_us, side="right")]


@cache
def _offsets(zone: str, first_day: int, last_day: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return when the offset of a zone changes within some days since 1970, and the offsets before and after (microseconds)."""
    info = ZoneInfo(zone)
    changes: list[int] = []
    offsets = [_offset(info, first_day * _DAY_US)]
    days = [
        day
        for day in range(first_day, last_day)
        if first_day == day or _FIRST_CHANGE <= day < _BY_RULE or day % _DAYS_OF_WEEK == 0
    ]
    for day, next_day in pairwise([*days, last_day]):
        start, end = day * _DAY_US, next_day * _DAY_US
        while (after := _offset(info, end)) != offsets[-1]:
            low, high = start, end
            while high - low > 1_000_000:
                middle = (low + high) // 2 // 1_000_000 * 1_000_000
                low, high = (middle, high) if _offset(info, middle) == offsets[-1] else (low, middle)
            changes.append(high)
            offsets.append(_offset(info, high))
            start = high
            if offsets[-1] == after:
                break
    return np.array(changes, np.int64), np.array(offsets, np.int64)


def _offset(info: ZoneInfo, at_us: int) -> int:
    offset = (_EPOCH + timedelta(microseconds=at_us)).astimezone(info).utcoffset() or timedelta()
    return round(offset.total_seconds() * 1_000_000)
