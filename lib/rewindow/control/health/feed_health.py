"""The health of a feed: what is new in its sources, what waits for the end of its interval, and what its last landings took."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pendulum

from rewindow.contracts.ingest import FeedSpec, SourceLook
from rewindow.control.health.entries import Entry, Status, age_ms
from rewindow.control.health.inputs import held_records
from rewindow.control.health.phrases import counted, waits
from rewindow.control.ingest.feed_progress import Progress
from rewindow.control.ingest.intervals import grid_of, later_rows
from rewindow.control.ingest.landings import Landing
from rewindow.errors import Message, ReasonMessage
from rewindow.streams.duration import in_words
from rewindow.streams.record import known_time

LANDINGS = 24
"""The number of last landings over which the shares in a feed's figures are computed."""
UNKNOWN_ROWS = ReasonMessage(
    "later-rows-unknown", "only `land` reads whether files that an older version landed hold rows of later intervals"
)
LATER_ROWS = ReasonMessage("later-rows-due", "landed files hold rows of later intervals")
_NAMES = {
    (1, "d"): ("the day", "YYYY-MM-DD"),
    (1, "w"): ("the week from", "YYYY-MM-DD"),
    (1, "mo"): ("the month", "YYYY-MM"),
    (1, "y"): ("the year", "YYYY"),
}
_TIME, _DATE_AND_TIME = "HH:mm", "YYYY-MM-DD HH:mm"


@dataclass(frozen=True, slots=True)
class FeedHealth:
    """The state of a feed's ledger and sources. ``details``: what is new, what waits, and what is not known.

    ``every`` is the length of the feed's intervals as written in its file.
    """

    progress: Progress
    is_due: bool
    is_landing: bool
    details: Sequence[Message] = ()
    spec: FeedSpec | None = None
    every: str = ""
    behind: Sequence[str] = ()
    """The logs whose new files have rows of landed intervals, although their landings declared them complete."""


def feed_entry(name: str, health: FeedHealth) -> Entry:
    """Return the line of a feed in a listing."""
    landed = health.progress.feed
    status = Status.NEVER_LANDED if landed is None else Status.DUE if health.is_due else Status.FRESH
    held_ms = landed.landings[-1].held_ms if landed and landed.landings else 0
    below = ReasonMessage(
        "watermark-below-job",
        "complete through {lag} less than its job, which may hold rows back",
        lag=in_words(held_ms),
    )
    return Entry(
        name,
        Status.RUNNING if health.is_landing else status,
        health.details or ([below] if held_ms else ()),
        epoch=len(landed.landings) if landed else None,
        watermark_ms=known_time(health.progress.watermark_ms),
    )


def new_in_sources(files: int, epochs: Collection[int]) -> Iterator[ReasonMessage]:
    """Yield what is new in a feed's sources: the number of new files, or else of new epochs of the job that it reads."""
    if files or epochs:
        what = counted(files, "new file") if files else f"{counted(len(epochs), 'new epoch')} of its job"
        yield ReasonMessage("sources-have-new", "{what}", what=what)


def waiting_sources(
    feed: FeedSpec, inspected: Mapping[str, SourceLook], positions: Mapping[str, Mapping[str, Any]], now_ms: int
) -> ReasonMessage | None:
    """Return what waits for the end of its interval: new files, or else later rows of landed files. None if nothing waits."""
    return waiting_files(feed, inspected, now_ms) or waiting_later(
        feed, (positions.get(log.topic) for log in feed.logs), now_ms
    )


def waiting_rows(feed: FeedSpec, rows: int, first_ms: int, now_ms: int) -> ReasonMessage:
    """Return the reason that none of the ``rows`` that were read is due. The first of them arrived at ``first_ms``."""
    return _waiting(feed, f"{counted(rows, 'row')} {'is' if rows == 1 else 'are'}", first_ms, now_ms)


def _waiting(feed: FeedSpec, what: str, first_ms: int, now_ms: int) -> ReasonMessage:
    return ReasonMessage(
        "interval-not-complete", "{what} waiting: {until}", what=what, until=next_complete(feed, first_ms, now_ms)
    )


def waiting_files(feed: FeedSpec, inspected: Mapping[str, SourceLook], now_ms: int) -> ReasonMessage | None:
    """Return the reason that no row of the new files is due; None without new files, or without intervals."""
    files = sum(len(look.fresh) for look in inspected.values())
    if not files or feed.every is None:
        return None
    return _waiting(feed, f"{counted(files, 'file')} {'is' if files == 1 else 'are'}", now_ms, now_ms)


def waiting_later(feed: FeedSpec, positions: Iterable[Mapping[str, Any] | None], now_ms: int) -> ReasonMessage | None:
    """Return the reason that later rows of landed files wait, as recorded in the sources' positions; None without later rows."""
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
    """Return the reason that all requested intervals are landed, while a later landing would fail with an error."""
    return ReasonMessage(
        "later-landing-refused",
        "the intervals through {until} are landed. A later landing would fail now: {reason}",
        until=_until(feed, until_ms),
        reason=str(error).rstrip("."),
    )


def not_followed(feed: FeedSpec, time_ms: int | None) -> ReasonMessage:
    """Return the reason that intervals are not landed although they are over. ``time_ms``: the end of the last landed one."""
    return ReasonMessage(
        "intervals-not-followed",
        "the sources have nothing from after the interval that begins at {begin}, so rows of it may be missing. Once later rows "
        "are there, `rewindow land {feed}` lands it; `--until TIME` does now, and declares all rows until then complete",
        begin=_until(feed, time_ms or 0),
        feed=feed.feed,
    )


def _until(feed: FeedSpec, until_ms: int) -> str:
    end_ms = grid_of(feed).start_of(until_ms)
    return f"{pendulum.from_timestamp(end_ms / 1000, tz=feed.zone).format(_DATE_AND_TIME)} {feed.zone}"


def next_complete(feed: FeedSpec, time_ms: int, now_ms: int) -> str:
    """Return when the interval that contains a time is complete.

    Example: ``the day 2026-11-22 is complete at 2026-11-23 00:00 UTC``.
    """
    count, unit = feed.every or (1, "d")
    grid = grid_of(feed)
    start_ms = grid.start_of(time_ms)
    end_ms = grid.after(start_ms)
    name, form = _NAMES.get((count, unit), ("the interval from", _DATE_AND_TIME))
    start, end, now = (pendulum.from_timestamp(ms / 1000, tz=feed.zone) for ms in (start_ms, end_ms, now_ms))
    is_today = end.date() == now.date()
    return f"{name} {start.format(form)} is complete at {end.format(_TIME if is_today else _DATE_AND_TIME)} {feed.zone}"


def rows_of_passed_intervals(health: FeedHealth, now_ms: int) -> str:
    """Return what waits although the two intervals after the last landed interval are over; empty if nothing waits."""
    spec, through_ms = health.spec, health.progress.through_ms
    if spec is None or spec.every is None or through_ms is None:
        return ""
    grid = grid_of(spec)
    if grid.after(grid.after(through_ms)) > now_ms:
        return ""
    if health.is_due:
        return "rows that arrived since then wait"
    return UNKNOWN_ROWS if [*health.details] == [UNKNOWN_ROWS] else ""


def quarantined_logs(progress: Progress) -> Iterator[tuple[str, int]]:
    """Yield each log whose records were all quarantined in the last landing, with the number of these records."""
    last = progress.feed.landings[-1] if progress.feed and progress.feed.landings else None
    for topic, count in ((last.quarantined or {}) if last else {}).items():
        if last and not any(landed.end > landed.start for tp, landed in last.ranges.items() if tp.topic == topic):
            yield topic, count


def future_rows(progress: Progress, now_ms: int) -> Iterator[tuple[str, str, int]]:
    """Yield ``(log, file, time)`` of the first row that arrives after ``now_ms``, for each log with such rows in landed files.

    The files and times (epoch ms) are in the position of the log's source, which the last landing recorded.
    """
    # Logs that a new generation has removed still have a position.
    logs = progress.declared.get("logs", progress.positions)
    for topic, position in progress.positions.items():
        later = {name: arrival_ms for name, arrival_ms in (later_rows(position) or {}).items() if arrival_ms > now_ms}
        if topic in logs and later:
            name = min(later, key=lambda file: (later[file], file))
            yield topic, name, later[name]


def feed_figures(entry: Entry, progress: Progress | None, landed_at_ms: int | None, now_ms: int) -> dict[str, Any]:
    """Return figures by name: how far a feed is, and what its last landings quarantined or took late. Unknown is None."""
    feed = progress.feed if progress else None
    landings: Sequence[Landing] = feed.landings if feed else ()
    counts = [landing.counts or {} for landing in landings[-LANDINGS:]]
    landed, quarantined, behind = (
        sum(count.get(word, 0) for count in counts) for word in ("rows", "quarantined", "behind")
    )
    return {
        "landings": len(landings) if progress else None,
        "watermark_ms": entry.watermark_ms,
        "age_ms": age_ms(entry.watermark_ms, now_ms),
        "through_ms": progress.through_ms if progress else None,
        "landed_at_ms": known_time(landed_at_ms) if landed_at_ms else None,
        "over_landings": len(counts),
        "rows": landed,
        "behind": behind,
        "behind_share": behind / landed if landed else None,
        "quarantined": quarantined,
        "quarantined_share": quarantined / (landed + quarantined) if landed + quarantined else None,
        "held": sum(held.records for held in held_records(feed)) if feed else 0,
    }
