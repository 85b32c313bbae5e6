"""Times for records that were published without any: one second apart, and those of a second topic a minute later."""

from __future__ import annotations

from rewindow import Record

FIRST_MS = 1_577_836_800_000  # 2020-01-01


def first(record: Record, partition_time: int) -> int:
    """Return the time of a record of the first topic."""
    return max(FIRST_MS, partition_time + 1_000)


def second(record: Record, partition_time: int) -> int:
    """Return the time of a record of the second topic."""
    return max(FIRST_MS + 60_000, partition_time + 1_000)
