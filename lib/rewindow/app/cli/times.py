"""Times on the command line, as epoch milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pendulum

from rewindow.control.plan.spec import RunRequest
from rewindow.errors import UsageError

TIME_COLUMNS = ("_timestamp", "window_start", "window_end", "key_window_start", "key_window_end")
"""The columns of tables and stores in which rewindow keeps times."""


def parse_time(text: str | None) -> int | None:
    """Return an ISO 8601 time in epoch milliseconds, in UTC if it names no zone. Raises `UsageError` (2) if invalid."""
    if text is None:
        return None
    try:
        parsed = pendulum.parse(text)
    except ValueError as error:
        message = f"{text!r} is not a valid time: write it like 2013-02-01 or 2013-02-01T06:00:00Z"
        raise UsageError(message) from error
    if not isinstance(parsed, pendulum.DateTime):
        message = f"{text!r} is not a point in time: write it like 2013-02-01 or 2013-02-01T06:00:00Z"
        raise UsageError(message)
    return round(parsed.timestamp() * 1000)


def parse_through(text: str | None, until: str | None = None, **others: Any) -> RunRequest:
    """Return a run request. ``text`` is a landing number, an event time or None for all; ``until`` is an arrival time."""
    if until is not None:
        if text is not None:
            message = "--through and --until cannot be used together: choose one"
            raise UsageError(message)
        return RunRequest(until_ms=parse_time(until), **others)
    number = whole_number(text)
    if number is not None:
        if number == 0:
            message = "--through 0: landings are numbered from 1. Omit --through to take all"
            raise UsageError(message)
        return RunRequest(through_landing=number, **others)
    return RunRequest(through_ms=parse_time(text), **others)


def whole_number(text: str | None) -> int | None:
    """Return the number that ASCII digits spell, or None for any other text."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None


def show_instant(epoch_ms: int) -> str:
    """Return a time as `show_time` does, with its milliseconds if there are any."""
    part = epoch_ms % 1000 if 0 <= epoch_ms < 2**62 else 0
    return show_time(epoch_ms) + (f".{part:03}" if part else "")


def show_time(epoch_ms: int) -> str:
    """Return a time in UTC as people read it, or a dash if it is unknown."""
    if epoch_ms < 0:
        return "-"
    if epoch_ms >= 2**62:
        return "the end of time"
    return pendulum.from_timestamp(epoch_ms / 1000).format("YYYY-MM-DD HH:mm:ss")


def with_readable_times(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with the times of rewindow's own columns as text."""
    return [
        {
            name: show_instant(value) if name in TIME_COLUMNS and isinstance(value, int) else value
            for name, value in row.items()
        }
        for row in rows
    ]
