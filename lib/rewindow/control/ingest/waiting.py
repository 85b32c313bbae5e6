"""What waits in a feed's sources until its interval of arrival is complete, and when that is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pendulum

from rewindow.contracts.ingest import FeedSpec, SourceLook
from rewindow.control.ingest.intervals import grid_of
from rewindow.control.ingest.later_rows import later_rows

_NAMES = {
    (1, "d"): ("the day", "YYYY-MM-DD"),
    (1, "w"): ("the week from", "YYYY-MM-DD"),
    (1, "mo"): ("the month", "YYYY-MM"),
    (1, "y"): ("the year", "YYYY"),
}
_TIME, _DATE_AND_TIME = "HH:mm", "YYYY-MM-DD HH:mm"


def waiting_rows(feed: FeedSpec, rows: int, first_ms: int, now_ms: int) -> str:
    """Return the sentence for rows that were read and are not due; the first of them arrived at ``first_ms``."""
    what = "1 row is" if rows == 1 else f"{rows:,} rows are"
    return f"{what} waiting: {next_complete(feed, first_ms, now_ms)}"


def waiting_files(feed: FeedSpec, looks: Mapping[str, SourceLook], now_ms: int) -> str:
    """Return the sentence for new files of which no row is due; empty without such files, or without intervals."""
    files = sum(len(look.fresh) for look in looks.values())
    if not files or feed.every is None:
        return ""
    what = "1 file is" if files == 1 else f"{files:,} files are"
    return f"{what} waiting: {next_complete(feed, now_ms, now_ms)}"


def waiting_later(feed: FeedSpec, positions: Iterable[Mapping[str, Any] | None], now_ms: int) -> str:
    """Return the sentence for rows of landed files that arrive later, as the sources' positions record; empty without any."""
    first_ms = min((first for one in positions for first in (later_rows(one) or {}).values()), default=None)
    return "" if first_ms is None else f"rows of landed files are waiting: {next_complete(feed, first_ms, now_ms)}"


def waiting_unread(feed: FeedSpec, looks: Mapping[str, SourceLook], until_ms: int) -> str:
    """Return the sentence for new files when all intervals that were asked for are landed; empty without such files."""
    files = sum(len(look.fresh) for look in looks.values())
    return f"the intervals through {_until(feed, until_ms)} are landed; {_wait(files, 'new file')}" if files else ""


def waiting_read(feed: FeedSpec, count: int, what: str, until_ms: int) -> str:
    """Return the sentence for rows or files that were read: none of it arrived before ``until_ms``. Empty for none."""
    return f"nothing new arrived before {_until(feed, until_ms)}; {_wait(count, what)}" if count else ""


def waiting_refused(feed: FeedSpec, until_ms: int, error: Exception) -> str:
    """Return the sentence for a new file that cannot be read when all intervals that were asked for are landed."""
    return f"the intervals through {_until(feed, until_ms)} are landed. A later landing would fail now: {str(error).rstrip('.')}"


def _wait(count: int, what: str) -> str:
    return f"{f'1 {what} waits' if count == 1 else f'{count:,} {what}s wait'} for a later landing"


def _until(feed: FeedSpec, until_ms: int) -> str:
    end_ms = grid_of(feed).start_of(until_ms)
    return f"{pendulum.from_timestamp(end_ms / 1000, tz=feed.zone).format(_DATE_AND_TIME)} {feed.zone}"


def next_complete(feed: FeedSpec, time_ms: int, now_ms: int) -> str:
    """Return when the interval that contains a time is complete: ``the day 2026-11-22 is complete at 2026-11-23 00:00 UTC``."""
    count, unit = feed.every or (1, "d")
    grid = grid_of(feed)
    start_ms = grid.start_of(time_ms)
    end_ms = grid.after(start_ms)
    name, form = _NAMES.get((count, unit), ("the interval from", _DATE_AND_TIME))
    start, end, now = (pendulum.from_timestamp(ms / 1000, tz=feed.zone) for ms in (start_ms, end_ms, now_ms))
    is_today = end.date() == now.date()
    return f"{name} {start.format(form)} is complete at {end.format(_TIME if is_today else _DATE_AND_TIME)} {feed.zone}"
