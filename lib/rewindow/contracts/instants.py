"""Points in time as people read and type them. Every time that rewindow shows is in UTC and says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

END_OF_TIME_MS = 2**62
"""From this time on, a time means that there is none: the end of an unlimited window."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS = len("2026-01-05 10:00:00")


def instant(time_ms: int | None, unknown: str = "-") -> str:
    """Return a time (epoch ms) like ``2026-01-05 10:00:00Z``, with milliseconds if there are any.

    ``unknown`` stands for None and for negative times, which are unknown.
    """
    if time_ms is None or time_ms < 0:
        return unknown
    if time_ms >= END_OF_TIME_MS:
        return "the end of time"
    try:
        text = str(_EPOCH + timedelta(milliseconds=time_ms))
    except OverflowError:  # after the year 9999
        return f"{time_ms} ms"
    whole, milliseconds = text[:_SECONDS], time_ms % 1000
    return f"{whole}.{milliseconds:03}Z" if milliseconds else f"{whole}Z"


def as_argument(time_ms: int) -> str:
    """Return a time as an argument of a command line: `instant` without a blank."""
    return instant(time_ms).replace(" ", "T")
