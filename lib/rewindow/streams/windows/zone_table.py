"""The clock of a time zone as data: when the difference between its local time and UTC changes.

A table is made from a time zone database once, before a run, and travels with the run's work. So results depend on the table
alone, not on the database of the machine that runs a task. All times are epoch milliseconds; a *wall time* is what the zone's
clock shows, as if it were UTC.

Two kinds of wall time are special. Where the clock jumps forward, some wall times are missing; a missing one stands for the
first instant after the jump. Where the clock jumps back, some wall times are shown twice; such a one stands for the earlier
instant.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

_MONTH_STARTS: Final = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
"""The days of a common year before each month."""
_DAY: Final = 86_400_000
LAST_MS: Final = 4_102_444_800_000
"""2100-01-01T00:00Z, the end of every table. After it, the clock is that of the last change."""

CLOCK_CHANGE_MS: Final = 3 * 3_600_000
"""By how much clock changes may make a window longer than its unit nominally is."""


@dataclass(frozen=True, slots=True)
class ZoneTable:
    """The clock of one zone.

    ``changes_ms`` are the instants at which the difference to UTC changes, ascending, from 1970 to `LAST_MS`.
    ``offsets_ms`` has the difference (local time minus UTC) before the first change, and after each change. ``version`` names
    the edition of the database, such as ``2026b``. It does not count when tables are compared.
    """

    zone: str
    changes_ms: tuple[int, ...]
    offsets_ms: tuple[int, ...]
    version: str = field(default="", compare=False)
    until_wall_ms: tuple[int, ...] = field(init=False, compare=False, repr=False)
    """For each change, the latest wall time that the clock has reached up to it."""

    def __post_init__(self) -> None:
        """Compute the wall times of the changes."""
        reached = (change + before for change, before in zip(self.changes_ms, self.offsets_ms, strict=False))
        object.__setattr__(self, "until_wall_ms", tuple(accumulate(reached, max)))

    @property
    def goes_back_ms(self) -> int:
        """By how much the clock goes back at most, in one change or in several."""
        return max(most - now for most, now in zip(accumulate(self.offsets_ms, max), self.offsets_ms, strict=True))

    def wall_ms(self, time_ms: int) -> int:
        """Return the wall time at an instant."""
        return time_ms + self.offsets_ms[bisect_right(self.changes_ms, time_ms)]

    def instant_ms(self, wall_ms: int) -> int:
        """Return the instant that a wall time stands for: see the docstring of this module for missing and repeated ones."""
        # The first period whose clock gets beyond the wall time contains it, or begins after it because the clock skipped it.
        period = bisect_right(self.until_wall_ms, wall_ms)
        time_ms = wall_ms - self.offsets_ms[period]
        return max(time_ms, self.changes_ms[period - 1]) if period else time_ms

    def first_change_ms(self, after_ms: int, until_ms: int) -> int | None:
        """Return the first change in ``(after_ms, until_ms]``; None if there is none."""
        index = bisect_right(self.changes_ms, after_ms)
        return self.changes_ms[index] if index < bisect_right(self.changes_ms, until_ms) else None

    def last_change_ms(self, after_ms: int, until_ms: int) -> int | None:
        """Return the last change in ``(after_ms, until_ms]``; None if there is none."""
        index = bisect_right(self.changes_ms, until_ms)
        return self.changes_ms[index - 1] if index > bisect_right(self.changes_ms, after_ms) else None

    def digest(self, until_ms: int = LAST_MS) -> str:
        """Return a hash, in 16 hexadecimal digits, of the clock before ``until_ms``. Later changes do not affect it."""
        count = bisect_left(self.changes_ms, until_ms)
        text = " ".join(map(str, (*self.changes_ms[:count], *self.offsets_ms[: count + 1])))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def periods(self) -> Iterator[tuple[int, int]]:
        """Yield ``(first instant, difference to UTC)`` of each period, in order. The first begins at 0."""
        yield from zip((0, *self.changes_ms), self.offsets_ms, strict=True)


UTC: Final = ZoneTable("UTC", (), (0,))
"""The clock of UTC."""


def month_start_ms(month: int) -> int:
    """Return the start of a month in ms of wall time. Months are numbered from 1970-01, which is 0."""
    years, months = divmod(month, 12)
    year = 1970 + years
    before = year - 1
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = before * 365 + before // 4 - before // 100 + before // 400 - 719_162
    return (days + _MONTH_STARTS[months] + (is_leap and months > 1)) * _DAY
