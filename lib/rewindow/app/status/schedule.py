"""When the schedule of a job was due."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from croniter import croniter


def last_due(cron: str, before_ms: int, zone: str, count: int) -> list[int]:
    """Return the last ``count`` times (epoch ms) before a time at which a valid schedule was due, newest first.

    Raises `ValueError` for a schedule that is never due.
    """
    times = croniter(cron, datetime.fromtimestamp(before_ms / 1000, ZoneInfo(zone)))
    return [round(times.get_prev(float) * 1000) for _ in range(count)]
