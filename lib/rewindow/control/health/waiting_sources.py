"""Reasons why `land` lands nothing: what is new in a feed's sources, and which rows wait for the end of their interval."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from rewindow.contracts.ingest import FeedSpec, SourceLook
from rewindow.control.health.phrases import counted, waits
from rewindow.control.ingest.intervals import grid_of, later_rows
from rewindow.errors import Lines, ReasonMessage

UNKNOWN_ROWS = ReasonMessage(
    "later-rows-unknown", "only `land` reads whether files that an older version landed hold rows of later intervals"
)


LATER_ROWS = ReasonMessage("later-rows-due", "landed files hold rows of later intervals")


_NAMES = {
    (1, "d"): ("the day", "%Y-%m-%d"),
    (1, "w"): ("the week from", "%Y-%m-%d"),
    (1, "mo"): ("the month", "%Y-%m"),
    (1, "y"): ("the year", "%Y"),
}


_TIME, _DATE_AND_TIME = "%H:%M", "%Y-%m-%d %H:%M"


def new_in_sources(files: int, epochs: Collection[int]) -> Iterator[ReasonMessage]:
    """Yield the number of new files in a feed's sources, or else the number of new epochs of the job that the feed reads."""
    if files or epochs:
        what = counted(files, "new file") if files else f"{counted(len(epochs), 'new epoch')} of its job"
        yield ReasonMessage("sources-have-new", "{what}", what=what)


def waiting_sources(
    feed: FeedSpec, inspected: Mapping[str, SourceLook], positions: Mapping[str, Mapping[str, Any]], now_ms: int
) -> ReasonMessage | None:
    """Return the reason that rows wait for the end of their interval, in new or else in landed files; None if none do."""
    return waiting_files(feed, inspected, now_ms) or waiting_later(
        feed, (positions.get(log.topic) for log in feed.logs), now_ms
    )


def waiting_rows(feed: FeedSpec, rows: int, first_ms: int, now_ms: int) -> ReasonMessage:
    """Return the reason that none of the ``rows`` that were read is due. ``first_ms`` is the arrival of the first of them."""
    return _waiting(feed, f"{counted(rows, 'row')} {'is' if rows == 1 else 'are'}", first_ms, now_ms)


def _waiting(feed: FeedSpec, what: str, first_ms: int, now_ms: int) -> ReasonMessage:
    return ReasonMessage(
        "interval-not-complete", "{what} waiting: {until}", what=what, until=next_complete(feed, first_ms, now_ms)
    )


def waiting_files(feed: FeedSpec, inspected: Mapping[str, SourceLook], now_ms: int) -> ReasonMessage | None:
    """Return the reason that no row of the new files is due; None if there are no new files, or the feed has no intervals."""
    files = sum(len(look.fresh) for look in inspected.values())
    if not files or feed.every is None:
        return None
    return _waiting(feed, f"{counted(files, 'file')} {'is' if files == 1 else 'are'}", now_ms, now_ms)


def waiting_later(feed: FeedSpec, positions: Iterable[Mapping[str, Any] | None], now_ms: int) -> ReasonMessage | None:
    """Return the reason that later rows of landed files wait, read from the sources' positions; None if there are none."""
    first_ms = min(
        (arrival for position in positions for arrival in (later_rows(position) or {}).values()), default=None
    )
    return None if first_ms is None else _waiting(feed, "rows of landed files are", first_ms, now_ms)


def waiting_unread(feed: FeedSpec, inspected: Mapping[str, SourceLook], until_ms: int) -> ReasonMessage | None:
    """Return the reason that new files wait although all requested intervals are landed; None without new files."""
    files = sum(len(look.fresh) for look in inspected.values())
    if not files:
        return None
    return ReasonMessage(
        "intervals-landed",
        "the intervals through {until} are landed; {files} for a later landing",
        until=_until(feed, until_ms),
        files=waits(files, "new file"),
    )


def waiting_read(feed: FeedSpec, count: int, unit: str, until_ms: int) -> ReasonMessage | None:
    """Return the reason that none of ``count`` rows or files (``unit``) arrived before ``until_ms``; None if ``count`` is 0."""
    if not count:
        return None
    return ReasonMessage(
        "nothing-arrived-in-time",
        "nothing new arrived before {until}; {what} for a later landing",
        until=_until(feed, until_ms),
        what=waits(count, unit),
    )


def waiting_refused(feed: FeedSpec, until_ms: int, error: Exception) -> ReasonMessage:
    """Return the reason that all requested intervals are landed, and ``error``, with which landing later ones would fail."""
    return ReasonMessage(
        "later-landing-refused",
        "the intervals through {until} are landed. A later landing would fail now: {reason}",
        until=_until(feed, until_ms),
        reason=Lines(str(error).rstrip(".").split("\n")),
    )


def not_followed(feed: FeedSpec, time_ms: int | None) -> ReasonMessage:
    """Return the reason that intervals are over but not landed. ``time_ms``: the end of the landed intervals."""
    return ReasonMessage(
        "intervals-not-followed",
        "the sources have nothing from after the interval that begins at {begin}, so rows of it may be missing. Once later rows "
        "are there, `rewindow land {feed}` lands it; `--until TIME` does now, and declares all rows until then complete",
        begin=_until(feed, time_ms or 0),
        feed=feed.feed,
    )


def _until(feed: FeedSpec, until_ms: int) -> str:
    end_ms = grid_of(feed).start_of(until_ms)
    return f"{grid_of(feed).local_time(end_ms):{_DATE_AND_TIME}} {feed.zone}"


def next_complete(feed: FeedSpec, time_ms: int, now_ms: int) -> str:
    """Return when the interval that contains a time is complete.

    Example: ``the day 2026-11-22 is complete at 2026-11-23 00:00 UTC``.
    """
    count, unit = feed.every or (1, "d")
    grid = grid_of(feed)
    start_ms = grid.start_of(time_ms)
    end_ms = grid.after(start_ms)
    name, form = _NAMES.get((count, unit), ("the interval from", _DATE_AND_TIME))
    start, end, now = map(grid.local_time, (start_ms, end_ms, now_ms))
    is_today = end.date() == now.date()
    return f"{name} {start:{form}} is complete at {end:{_TIME if is_today else _DATE_AND_TIME}} {feed.zone}"
