"""Times on the command line, as epoch milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any

from rewindow.contracts.instants import instant
from rewindow.control.plan.spec import RunRequest
from rewindow.errors import UsageError
from rewindow.streams.serde.schema import has_bounds

ZONE = "(UTC unless it has an offset)"
"""The note on time zones in the help of an option that takes a time."""

_HOW = "write it like 2013-02-01 or 2013-02-01T06:00:00Z (UTC unless it has an offset like +02:00)"

_TIMESTAMP = "_timestamp"


def parse_time(text: str | None) -> int | None:
    """Return an ISO 8601 time in epoch milliseconds. A time without zone is in UTC. Raises `UsageError` (2) if it is invalid.

    A time of day without a date is refused, because its date would depend on when the command runs.
    """
    if text is None:
        return None
    import pendulum  # noqa: PLC0415 - most commands are given no time

    try:
        parsed: object = pendulum.parse(text, exact=True)
    except ValueError as error:
        raise UsageError("time-invalid", "{given!r} is not a valid time: {fix}", given=text, fix=_HOW) from error
    if isinstance(parsed, time):
        raise UsageError("time-without-day", "{given!r} names no day: {fix}", given=text, fix=_HOW)
    if not isinstance(parsed, date):
        raise UsageError("time-not-point", "{given!r} is not a point in time: {fix}", given=text, fix=_HOW)
    if not isinstance(parsed, datetime):
        parsed = datetime(parsed.year, parsed.month, parsed.day, tzinfo=UTC)
    return round(parsed.timestamp() * 1000)


def parse_through(text: str | None, until: str | None = None, **others: Any) -> RunRequest:
    """Return a run request. ``text`` is a landing number, an event time or None for all; ``until`` is a time of arrival."""
    if until is not None:
        if text is not None:
            raise UsageError("through-with-until", "--through and --until cannot be used together: choose one")
        return RunRequest(until_ms=parse_time(until), **others)
    number = whole_number(text)
    if number == 0 or (text is not None and text.startswith("-") and whole_number(text[1:]) is not None):
        raise UsageError(
            "landing-number-invalid",
            "--through {given}: landings are numbered from 1. Omit --through to take all",
            given=text,
        )
    if number is not None:
        return RunRequest(through_landing=number, **others)
    return RunRequest(through_ms=parse_time(text), **others)


def whole_number(text: str | None) -> int | None:
    """Return the number that a text of ASCII digits represents; None for any other text."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None


def time_columns(keys: Iterable[str]) -> frozenset[str]:
    """Return the columns of an output or store that contain times of rewindow, given the key columns.

    They are ``_timestamp`` and the bounds of windows, including windows of windowed keys, at the end of the key. Value columns
    are left out, because a value column may have the name of a bound and another meaning.
    """
    own, times = [name for name in keys if not name.startswith("_")], {_TIMESTAMP}
    while has_bounds(own):
        times |= {*own[-2:]}
        own = own[:-2]
    return frozenset(times)


def with_readable_times(rows: Sequence[Mapping[str, Any]], keys: Iterable[str]) -> list[dict[str, Any]]:
    """Return rows of an output or store, with the times in rewindow's own columns as text. ``keys``: its key columns."""
    times = time_columns(keys)
    return [
        {name: instant(value) if name in times and isinstance(value, int) else value for name, value in row.items()}
        for row in rows
    ]
